package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Limits says what the lines of a communicator do not prove, and how to get what is
// missing. It says only what applies.
func Limits(j *probe.Job, c *probe.Comm) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	lazy := c.NCCL == "" || !check.NCCLBefore(c.NCCL, 2, 22)
	_, rank0 := slices.BinarySearchFunc(c.Members, 0, func(m probe.Member, r int) int { return m.Rank - r })
	switch {
	case c.Ranks < 2:
	case len(c.Conns) == 0 && lazy:
		add("no connections printed: since NCCL 2.22 they are made at first use (NCCL_RUNTIME_CONNECT), so this is no fault")
	case len(c.Conns) == 0:
		add("no connections printed: the log ends before them, or NCCL_DEBUG_SUBSYS leaves INIT out")
	case silentPair(c):
		add("– is a pair without a line: not a neighbour on a ring or tree, or not used yet")
	}
	if c.Ranks > 1 && !rank0 {
		add("rank 0 is not in the log, and it alone prints the rings, the tuning table and often the version")
	}
	if usesRDMA(j, c) && !slices.ContainsFunc(j.Adapters, func(d probe.Adapter) bool { return d.GDR.Known() && d.Network != "Socket" }) && !hasGDR(c) {
		add("whether an adapter can do GPUDirect RDMA is not printed: it needs NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET")
	}
	if nvlsOf(j, c) {
		add("NVLS is set up and has no connection lines")
	}
	return out
}

// silentPair reports a matrix that is printed and has an empty cell off its diagonal.
func silentPair(c *probe.Comm) bool {
	_, cells := transportsOf(c)
	n, hosts := len(ranksIn(c, cells)), len(commHosts(c))
	if n > mostRows {
		return hosts > 1 && hosts <= mostRows
	}
	return len(cells) < n*(n-1)
}

// usesRDMA reports a communicator over several hosts whose network is not TCP.
func usesRDMA(j *probe.Job, c *probe.Comm) bool {
	hosts := commHosts(c)
	return len(hosts) > 1 && slices.ContainsFunc(j.Networks, func(n probe.Network) bool {
		return n.State == probe.NetUsed && n.Name != "Socket" && slices.Contains(hosts, n.Host)
	})
}

func hasGDR(c *probe.Comm) bool {
	return slices.ContainsFunc(c.Conns, func(k probe.Connection) bool { return k.GDR.Or(false) })
}

// nvlsOf reports a communicator whose hosts print NVLS buffers or trees.
func nvlsOf(j *probe.Job, c *probe.Comm) bool {
	hosts := commHosts(c)
	return slices.ContainsFunc(j.Events, func(e probe.Event) bool {
		return e.Kind == probe.EventNote && strings.HasPrefix(e.Text, "NVLS comm ") && slices.Contains(hosts, e.Host)
	})
}
