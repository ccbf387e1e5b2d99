package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// bearing is a variable that changes what NCCL builds or believes and that no part
// of the prediction knows.
type bearing struct {
	name string
	net  network  // where it counts
	idle []string // values beside the default that change nothing
}

// network says on which network between nodes a variable counts.
type network int

const (
	always  network = iota // also within a node
	anyNet                 // between nodes
	rdma                   // between nodes, over RDMA adapters
	sockets                // between nodes, over network interfaces
)

var bearings = []bearing{
	{name: "NCCL_CONF_FILE"},
	{name: "NCCL_CTA_POLICY", idle: []string{"0"}},
	{name: "NCCL_CUMEM_ENABLE", idle: []string{"1", "-2"}},
	{name: "NCCL_ENV_PLUGIN", idle: []string{"none"}},
	{name: "NCCL_GRAPH_FILE"},
	{name: "NCCL_HOSTID"},
	{name: "NCCL_MULTI_RANK_GPU_ENABLE"},
	{name: "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", idle: []string{"0"}},
	{name: "NCCL_TOPO_FILE"},
	{name: "NCCL_TOPO_SPLIT_MLOPART"},
	{name: "NCCL_TUNER_PLUGIN", idle: []string{"none"}},

	{name: "NCCL_DMABUF_ENABLE", net: rdma},
	{name: "NCCL_IB_DATA_DIRECT", net: rdma},
	{name: "NCCL_IB_DEVICE_PCI_ORDER", net: rdma},
	{name: "NCCL_IB_DISABLE", net: rdma, idle: []string{"0"}},
	{name: "NCCL_IB_GDR_LEVEL", net: rdma},
	{name: "NCCL_IB_MERGE_NICS", net: rdma},
	{name: "NCCL_IB_MERGE_VFS", net: rdma},
	{name: "NCCL_IB_QUERY_PORT_SPEED", net: rdma},
	{name: "NCCL_MNNVL_CLIQUE_ID", net: anyNet},
	{name: "NCCL_MNNVL_CROSS_CLIQUE", net: anyNet},
	{name: "NCCL_MNNVL_RAIL_PER_HOST", net: anyNet},
	{name: "NCCL_MNNVL_SCATTER_NETS_ENABLE", net: anyNet},
	{name: "NCCL_MNNVL_UUID", net: anyNet},
	{name: "NCCL_NET", net: anyNet},
	{name: "NCCL_NET_FORCE_MERGE", net: anyNet},
	{name: "NCCL_NET_GDR_MLOPART", net: rdma},
	{name: "NCCL_NET_MERGE_POLICY", net: anyNet},
	{name: "NCCL_NET_PLUGIN", net: anyNet, idle: []string{"none"}},
	{name: "NCCL_P2P_PER_CHANNEL_NET_BW", net: anyNet},
	{name: "NCCL_SOCKET_IFNAME", net: sockets},
	{name: "NCCL_TOPO_SCATTER_START_NET", net: anyNet},
}

// Bears reports a setting with which the prediction does not hold.
func (p *Prediction) Bears(s Setting) bool {
	if s.Used || s.Contradicted || p.Search != nil && p.Search.Ranks < 2 {
		return false
	}
	if s.undecided && known(s.Name) {
		return true
	}
	i := slices.IndexFunc(bearings, func(b bearing) bool { return b.name == s.Name })
	v, ok := ncclenv.Lookup(s.Name)
	if i < 0 || !ok {
		return false
	}
	if read, sure := v.ReadBy(p.version().String()); sure && !read {
		return false
	}
	b, value := bearings[i], strings.TrimSpace(s.Value)
	if value == "" || strings.EqualFold(value, v.Default) || slices.Contains(b.idle, value) {
		return false
	}
	if b.net == always {
		return true
	}
	if p.Search == nil {
		return p.HostCount() > 1
	}
	if p.Search.Nodes < 2 && p.HostCount() < 2 {
		return false
	}
	overRDMA := p.overRDMA()
	switch {
	case s.Name == "NCCL_NET" && (overRDMA && strings.EqualFold(value, "IB") || !overRDMA && strings.EqualFold(value, "Socket")):
		return false
	case b.net == rdma:
		return overRDMA
	case b.net == sockets:
		return !overRDMA
	}
	return true
}

// HostCount counts the hosts of the job, seen or like one that was.
func (p *Prediction) HostCount() int { return max(len(p.topos), p.Options.Search.Hosts) }

// overRDMA reports that NCCL's network is RDMA adapters.
func (p *Prediction) overRDMA() bool {
	for _, v := range p.views {
		for _, at := range v.Nets {
			if n := v.Nodes[at].Node; n != nil && n.Kind == graph.KindHCA {
				return true
			}
		}
	}
	return false
}

// known reports that some part of the prediction knows a variable.
func known(name string) bool {
	var o ModelOptions
	o.Set(name, "")
	s := o.Settings[0]
	return s.Used || s.Why != unknownSetting
}

// matters reports that a prediction changes with a variable, or does not hold.
func matters(name string) bool {
	return known(name) || slices.ContainsFunc(bearings, func(b bearing) bool { return b.name == name })
}

// bearings lists the settings with which the prediction does not hold.
func (p *Prediction) bearings() (out []string) {
	for _, s := range p.Options.Settings {
		if p.Bears(s) {
			out = append(out, fmt.Sprintf("%s=%s; the prediction does not hold with it", s.Name, s.Value))
		}
	}
	return out
}
