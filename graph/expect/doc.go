// Package expect says how long a collective will really take, beside what NCCL
// believes (graph/model). The form is physical: what a launch costs, latency per
// step, bytes over the bottleneck with the protocol's efficiency, the ceiling of
// the channels, the fan-in of NVLS, the goodput of the network. Its parameters were
// fitted to measured runs (data/own.csv, data/published.csv) by
//
//	UPDATE_FIT=1 go test ./graph/expect -run TestShipped
//
// which writes data/fit.json. Where nothing like it was measured there is no
// estimate: [Curve.At] then says so, and only bounds remain.
//
// [ScoreOf] scores it on runs that a fit had not seen. The form, the priors and what
// counts as alike were settled while looking at that score, so it flatters: runs of
// machines yet unseen will fare somewhat worse.
//
// Of the published runs most do not state algorithm and protocol; machines.csv says
// where they were inferred. Own runs are of two GPUs on NVLink in virtual machines,
// NVLS off; eight GPUs, NVLS and every network are known from published runs only.
//
// It follows graph/model and takes values only.
package expect
