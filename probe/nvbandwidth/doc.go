// Package nvbandwidth reads matrices of copy bandwidth and latency: what
// nvbandwidth prints as text and JSON, what p2pBandwidthLatencyTest of the CUDA
// samples prints, and plain lists of pairs. It is one of the sources at the head
// of the pipeline: text → [Output] → [probe.Inventory].
//
// The vocabulary of package probe has no word for the bandwidth of a pair, so
// the matrices stay in [Output]; the inventory holds the GPUs and the driver.
package nvbandwidth
