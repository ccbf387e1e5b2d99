package tune

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Unmodelled lists what bears on NCCL's channels here and is no part of the
// prediction.
func (p *Prediction) Unmodelled() (out []string) {
	out = p.bearings()
	r := p.Search
	if r == nil || r.Ranks < 2 {
		return out
	}
	on := func(name string) bool {
		i := slices.IndexFunc(p.Options.Settings, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			return false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(p.Options.Settings[i].Value), 0, 64)
		return err == nil && n != 0
	}
	if on("NCCL_COLLNET_ENABLE") {
		out = append(out, "CollNet, which NCCL_COLLNET_ENABLE asks for: its graphs, and that it raises the number of channels")
	}
	if r.Nodes > 1 && p.anyNet("rail", "plane") {
		out = append(out, "rails and planes of NICs, which a source states: NCCL since 2.30.7 keeps channels on them")
	}
	if r.Nodes > 1 && r.NVLSChannels > 0 && r.MinCC >= 100 && p.Options.NCCL.Version.AtLeast(25, 0) && p.Options.Search.NVLSCount == 0 {
		out = append(out, "that NCCL takes 24 or 32 NVLS channels on Blackwell by the NICs' speed and the ranks per node: 32 are taken")
	}
	return out
}

// anyNet reports an adapter of which a source states one of some attributes.
func (p *Prediction) anyNet(names ...string) bool {
	for _, t := range p.topos {
		for _, n := range t.Of(graph.KindHCA) {
			if slices.ContainsFunc(n.HCA.Extra, func(a probe.Attr) bool { return slices.Contains(names, a.Name) && !strings.HasPrefix(a.Value, "-") }) {
				return true
			}
		}
	}
	return false
}
