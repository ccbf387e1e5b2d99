// Package graph turns an inventory into an immutable topology: one node per
// thing, one link per physical link, each with its maximum and current rate,
// over a gonum multigraph. From it come the path classes of every pair of
// devices, in NCCL's and in nvidia-smi's words, and the topology as NCCL's own
// model sees it ([Topology.NCCL]).
//
// It stands between probe.Merge and graph/search, graph/model and graph/check,
// and takes values only: no file, no environment, no clock.
package graph
