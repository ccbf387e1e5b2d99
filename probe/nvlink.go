package probe

// nvlinkGenerations holds, per NVLink generation, what one link carries in one
// direction: the data-sheet payload and the signalling rate that the driver
// prints. Payload is what a review should state: 18 × 25 = 450 GB/s for an
// H100, not 18 × 26.562 (NVIDIA data sheets; stas00/ml-engineering network
// page; docs.nvidia.com/health-validation for generations 4 and 5).
var nvlinkGenerations = []Rate{1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9, 6: 50e9}

// NVLinkRate returns the payload rate of one link of a generation, one
// direction; unknown for a generation that is not in the table. On GA102-class
// boards (sm_86) generation 3 carries 14.06 GB/s.
func NVLinkRate(generation Opt[int], cc Opt[int]) Opt[Rate] {
	g, ok := generation.Get()
	if !ok || g < 1 || g >= len(nvlinkGenerations) {
		return Opt[Rate]{}
	}
	if g == 3 && cc.Or(0) == 86 {
		return Some(Rate(14.0625e9))
	}
	return Some(nvlinkGenerations[g])
}

// NVLinkGenerationOf returns the generation that GPUs of a compute capability
// (×10) use; unknown where a capability has parts with and without NVLink of
// several generations.
func NVLinkGenerationOf(cc Opt[int]) Opt[int] {
	switch c := cc.Or(0); {
	case c == 60:
		return Some(1)
	case c == 70, c == 75:
		return Some(2)
	case c == 80, c == 86:
		return Some(3)
	case c == 90:
		return Some(4)
	case c == 100, c == 103:
		return Some(5)
	}
	return Opt[int]{}
}
