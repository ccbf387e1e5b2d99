// Package search predicts the channels that NCCL lays over one node: which GPUs
// each ring visits in which order, how many rings there are and what bandwidth
// NCCL's model gives each. [Compute] takes the host as NCCL sees it
// ([graph.NCCLView]) and returns plain values that graph/model turns into time.
//
// The method is ours; the order in which NCCL tries speeds and path classes, and
// what it charges to a link, are facts of NCCL 2.30.7. The search is
// deterministic and bounded: an answer that a budget cut short says so.
package search
