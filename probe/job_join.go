package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// AddJob takes in what another source says of jobs. Communicators with the same id
// are one: each rank printed its part into a file of its own.
func (j *Job) AddJob(o *Job) {
	j.Logs = append(j.Logs, o.Logs...)
	j.Versions = append(j.Versions, o.Versions...)
	j.Networks = append(j.Networks, o.Networks...)
	j.Adapters = append(j.Adapters, o.Adapters...)
	j.Interfaces = append(j.Interfaces, o.Interfaces...)
	j.GDRPairs = append(j.GDRPairs, o.GDRPairs...)
	j.Fabrics = append(j.Fabrics, o.Fabrics...)
	j.Systems = append(j.Systems, o.Systems...)
	j.Products = append(j.Products, o.Products...)
	j.Env = append(j.Env, o.Env...)
	j.Graphs = append(j.Graphs, o.Graphs...)
	j.Choices = append(j.Choices, o.Choices...)
	j.Events = append(j.Events, o.Events...)
	j.addRuns(o)
	j.Summaries = append(j.Summaries, o.Summaries...)
	at := make(map[string]int, len(j.Comms))
	for i, c := range j.Comms {
		at[c.ID] = i
	}
	for _, c := range o.Comms {
		i, known := at[c.ID]
		if c.ID == "" || !known || j.Comms[i].Ranks != c.Ranks {
			at[c.ID] = len(j.Comms)
			j.Comms = append(j.Comms, c)
			continue
		}
		j.Comms[i].join(c)
	}
}

// addRuns takes in runs with their samples. Files of one name are told apart by a
// number.
func (j *Job) addRuns(o *Job) {
	taken := make(map[string]bool, len(j.Runs))
	for _, r := range j.Runs {
		taken[r.File] = true
	}
	renamed := map[string]string{}
	for _, r := range o.Runs {
		if taken[r.File] {
			id, n := r.ID, 2
			for ; taken[fmt.Sprintf("%s#%d", r.File, n)]; n++ {
			}
			r.ID, r.File = fmt.Sprintf("%s#%d", id, n), fmt.Sprintf("%s#%d", r.File, n)
			renamed[id] = r.ID
		}
		j.Runs = append(j.Runs, r)
	}
	for _, s := range o.Samples {
		if id, ok := renamed[s.Run]; ok {
			s.Run = id
		}
		j.Samples = append(j.Samples, s)
	}
}

// join takes in what another source shows of the same communicator. What both
// know differently stays as it was first seen.
func (c *Comm) join(o Comm) {
	if c.NCCL == "" {
		c.NCCL = o.NCCL
	}
	if c.Name == "" {
		c.Name = o.Name
	}
	fill(&c.Nodes, o.Nodes)
	fill(&c.Channels, o.Channels)
	c.joinMembers(o.Members)
	c.Rings = joinBy(c.Rings, o.Rings, func(r Ring) int { return r.Channel }, nil)
	c.Trees = joinBy(c.Trees, o.Trees, func(t TreeNode) [2]int { return [2]int{t.Channel, t.Rank} }, nil)
	c.Graphs = joinBy(c.Graphs, o.Graphs, Graph.key, nil)
	c.Tuning = joinBy(c.Tuning, o.Tuning, func(t TuningCell) [3]string { return [3]string{t.Collective, t.Algorithm, t.Protocol} }, nil)
	c.Conns = append(slices.Clip(c.Conns), o.Conns...)
	c.Origins = append(slices.Clip(c.Origins), o.Origins...)
}

// joinMembers takes in what another source shows of the ranks; processes that do
// not tell their rank stay apart.
func (c *Comm) joinMembers(members []Member) {
	known := func(list []Member) (ranks, rest []Member) {
		for _, m := range list {
			if m.Rank == UnknownRank {
				rest = append(rest, m)
				continue
			}
			ranks = append(ranks, m)
		}
		return ranks, rest
	}
	mine, myRest := known(c.Members)
	theirs, theirRest := known(members)
	c.Members = slices.Concat(joinBy(mine, theirs, func(m Member) int { return m.Rank }, (*Member).join), myRest, theirRest)
}

type graphKey struct {
	pattern, typeIntra, typeInter string
	channels, crossNIC            int
	bwIntra, bwInter              float64
}

// key is what makes two print-outs the same search result: ranks print their own
// orders.
func (g Graph) key() graphKey {
	return graphKey{g.Pattern, g.TypeIntra, g.TypeInter, g.Channels, g.CrossNIC, g.BWIntra, g.BWInter}
}

// join fills in what another source knows of the same rank.
func (m *Member) join(o Member) {
	if m.Host == "" {
		m.Host = o.Host
	}
	if m.UUID == "" {
		m.UUID = o.UUID
	}
	if m.NCCL == "" {
		m.NCCL = o.NCCL
	}
	// What was seen last holds: a rank may recover.
	if o.At > m.At || o.At == m.At && m.State == "" {
		m.State, m.Error, m.At = o.State, o.Error, o.At
	}
	if m.Init == "" || m.Init == InitStarted && o.Init != "" {
		m.Init = o.Init
	}
	if m.Seconds == nil {
		m.Seconds = o.Seconds
	}
	fill(&m.Global, o.Global)
	fill(&m.PID, o.PID)
	fill(&m.GPU, o.GPU)
	fill(&m.CUDADev, o.CUDADev)
	fill(&m.Addr, o.Addr)
	m.Progress = joinBy(m.Progress, o.Progress, func(p Progress) [2]string { return [2]string{p.Collective, p.At} }, nil)
	m.Origins = append(slices.Clip(m.Origins), o.Origins...)
}

func fill[T any](dst *Opt[T], src Opt[T]) {
	if !dst.Known() {
		*dst = src
	}
}

// joinBy adds the elements of src whose key dst lacks, and gives the others to
// join (nil: the first stays).
func joinBy[T any, K comparable](dst, src []T, key func(T) K, join func(*T, T)) []T {
	at := make(map[K]int, len(dst))
	for i, d := range dst {
		at[key(d)] = i
	}
	dst = slices.Clip(dst)
	for _, s := range src {
		i, known := at[key(s)]
		switch {
		case !known:
			at[key(s)] = len(dst)
			dst = append(dst, s)
		case join != nil:
			join(&dst[i], s)
		}
	}
	return dst
}

// normalize sorts what has a key of its own; the rest stays in the order in which
// it happened.
func (j *Job) normalizeJob() {
	for i := range j.Comms {
		c := &j.Comms[i]
		c.Members = sortedOrNil(c.Members, func(a, b Member) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), CompareNames(OriginOf(a.Origins, "").Where, OriginOf(b.Origins, "").Where))
		})
		c.Rings = sortedOrNil(c.Rings, func(a, b Ring) int { return cmp.Compare(a.Channel, b.Channel) })
		c.Trees = sortedOrNil(c.Trees, func(a, b TreeNode) int { return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Rank, b.Rank)) })
		c.Conns = sortedOrNil(c.Conns, func(a, b Connection) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), strings.Compare(a.Via, b.Via), strings.Compare(a.Side, b.Side))
		})
	}
}
