// Package flightrec reads the flight recorder of PyTorch's NCCL process groups,
// one dump of one process, one of the sources at the head of the pipeline:
// JSON → [Dump] → [probe.Inventory].
//
// It knows versions 2.3 to 2.10 of the dump, and takes any other 2.x for one that
// only added keys, as its authors promise (version_val in
// torch/csrc/distributed/c10d/FlightRecorder.hpp). JSON is what
// torch._C._distributed_c10d._dump_nccl_trace_json returns, and what json.dump
// makes of the pickled form. A pickle can run code when it is opened: it is refused.
//
// A dump does not say whose it is. Its rank follows from the send and receive
// operations, which name both ends, or where only one process is in all the groups
// that were used; else it is unknown.
//
// Progress counts collectives by collective_seq_id, which all ranks of a group
// count alike. Not used are p2p_seq_id, which they do not, and pg_status, whose
// numbers mix both. Operations of a coalesced one share its number and are never
// marked completed themselves.
package flightrec
