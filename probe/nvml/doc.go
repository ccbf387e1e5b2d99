// Package nvml reads GPUs and their NVLinks as NVIDIA's management library
// reports them. It is one of the readers that feed probe.Merge, and the most
// trusted one for GPUs.
//
// What is read is written once, against a small interface of NVML calls; a
// recording of such calls ([Replay]) is one implementation of it. Each value is
// known or unknown on its own: "not supported" leaves it unknown without a word,
// any other error is a gap.
package nvml
