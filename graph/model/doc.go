// Package model computes what NCCL itself believes a collective takes, and what
// it chooses by that: for each collective, algorithm and protocol a latency and
// an algorithm bandwidth, each as a list of terms that can be printed and checked
// one by one; for each size the algorithm, protocol, channels and threads. It
// follows graph/search and takes values only.
//
// These are the figures by which NCCL chooses, not measurements: on the recorded
// machine they were off by a median 22 %. Not modelled: tuner plugins, symmetric
// kernels and copy engines (registered buffers), groups of several operations, a
// latency that a network plugin states for its NICs, and element types other than
// float32 with sum.
//
// Places in the source (tuning.cc:288-383) are those of NCCL 2.30.7. Constants of
// other versions are kept with the release that brought them; [Checks] lists the
// versions that were compared with NCCL's own results, the others were only read.
package model
