// Package tune decides on NCCL settings. A variable is written only if the
// evidence says that NCCL's default is wrong on this machine; what was
// considered and left alone is listed with its reason. The decisions are those
// of the rule catalogue's section 11.
//
// It takes a topology and the findings of graph/check and returns a [Plan];
// probe/ncclenv spells it as a file.
package tune
