// Package inspector reads the JSON lines that NCCL's Inspector profiler plugin
// writes, one file of each process, one of the sources at the head of the
// pipeline: lines → [Dump] → [probe.Inventory].
//
// It knows formats v4.0 to v4.3 (plugins/profiler/inspector of NCCL 2.28 to 2.31):
// before 4.2 no record names algorithm and protocol; in 4.3 the header stands once
// above the records of a dump. A file may be as long as a job runs: operations are
// condensed as they come to one figure for each communicator, collective, size and
// algorithm, in memory that does not grow with their number.
//
// Sizes of AllGather and ReduceScatter are those of one rank; here they become the
// total, as nccl-tests and NCCL's tuner count, and the bandwidth that a record
// states must agree. A time is that of one rank's kernel and holds the wait for
// late peers. Point-to-point operations, records that the CPU timed around the
// launch and the Prometheus file, whose sizes are ranges, give no sample.
package inspector
