package probe

// GraphFile is a file of search results that NCCL wrote (NCCL_GRAPH_DUMP_FILE) or
// that it is to take instead of searching (NCCL_GRAPH_FILE). It names neither host
// nor communicator nor the number of ranks, so its graphs belong to no Comm. In
// their orders GPU/N is the GPU of NVML index N, NET/N the device N of the network
// plugin; where the file spans hosts, GPU/H-N is that of the host numbered H.
type GraphFile struct {
	File   string  `json:"file"`
	Graphs []Graph `json:"graphs"`
}

// PatternName names NCCL's pattern numbers (graph.h); "" for one that is not
// known.
func PatternName(p int) string {
	switch p {
	case 1:
		return "balanced tree"
	case 2:
		return "split tree"
	case 3:
		return "tree"
	case 4:
		return "ring"
	case 5:
		return "nvls"
	case 6:
		return "collnet direct"
	}
	return ""
}

// RunSummary is what a script kept of one run over many sizes. It is no Sample:
// neither a time nor the size of the peak is known.
type RunSummary struct {
	Log        string   `json:"log"` // file name of the run's output
	Collective string   `json:"collective"`
	Nodes      int      `json:"nodes"`
	GPUs       int      `json:"gpus"` // of each node
	Hosts      []string `json:"hosts"`
	// Unknown where the run came to nothing.
	MinBytes  Opt[int64]   `json:"min_bytes"`
	MaxBytes  Opt[int64]   `json:"max_bytes"`
	MeanBusBW Opt[float64] `json:"mean_busbw_gbs"` // over the sizes
	PeakBusBW Opt[float64] `json:"peak_busbw_gbs"`
	Origins   []Origin     `json:"origins,omitempty"`
}
