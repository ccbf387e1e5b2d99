// Package nvml reads GPUs and their NVLinks as NVIDIA's management library
// reports them. It is one of the readers that feed probe.Merge, and the most
// trusted one for GPUs.
//
// What is read is written once (read.go, counts.go), against a small interface
// of NVML calls (calls.go). Two libraries answer it: the driver of this machine
// ([Read], behind deadlines for each call) and a recording of such calls
// ([Replay]); [Record] reads the driver and keeps what it answered. Nothing here
// changes a state of the machine.
//
// Each value is known or unknown on its own: "not supported" leaves it unknown
// without a word, any other error is a gap that names the call and what NVML
// returned. A GPU that is lost, or keeps a call waiting too long, keeps what it
// said before, and the others go on.
package nvml
