// Package smitopo reads the matrix that nvidia-smi topo -m prints, one of the
// sources at the head of the pipeline: text → [probe.Inventory].
//
// The matrix says how each pair of GPUs and adapters is connected and on which
// CPUs and NUMA node a GPU sits, but no address. Such text reaches ncclmap
// through terminals, tickets and web pages, so colours, prompts, lost tabs and
// changed encodings are tolerated; a row that lost cells is not shifted into
// place but refused with its line, unless the matrix, which is symmetric, says
// the lost cells a second time.
package smitopo
