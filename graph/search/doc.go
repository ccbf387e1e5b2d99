// Package search predicts what NCCL builds on a topology: the graphs of ring,
// tree and NVLS that each node searches, what the nodes agree on, the
// communicator's channels and its rings and trees over all ranks. [Compute] takes
// the host as NCCL sees it ([graph.NCCLView]) and returns plain values that
// graph/model turns into time; [ComputePhysical] says beside it what the links
// themselves allow.
//
// The code is ours; the order in which NCCL tries shapes, speeds, path classes,
// GPUs and NICs, what it charges to a link and when it gives up are facts of NCCL
// 2.21.5 to 2.30.7. As its outcome hangs on that order and its budgets of steps,
// they are kept, so the search is deterministic and bounded; an answer that a
// budget cut short says so.
package search
