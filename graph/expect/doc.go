// Package expect says how long a collective will really take, beside what NCCL
// believes (graph/model). The form is physical: what a launch costs, latency per
// step, bytes over the bottleneck with the protocol's efficiency, the ceiling of
// the channels, the fan-in of NVLS, the goodput of the network. Its parameters were
// fitted to measured runs (data/points.csv) by
//
//	UPDATE_FIT=1 go test ./graph/expect -run TestShipped
//
// which writes data/fit.json. Where nothing like it was measured there is no
// estimate: [Curve.At] then says so, and only bounds remain.
//
// It follows graph/model and takes values only.
package expect
