package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// What a rule asks for where a log lacks the fact.
const (
	askGraph = "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,GRAPH,NET, or name the host's recorded /sys or nvidia-smi topo -m beside the log"
	askHost  = "name the host's recorded /sys or inventory beside the log"
	askRanks = "give the logs of all ranks, written with NCCL_DEBUG=INFO"
)

// spread says how far a communicator reaches.
type spread int

const (
	spreadUnknown spread = iota
	oneHost
	manyHosts
)

// hostsOf returns the hosts of a communicator's ranks, sorted.
func hostsOf(c *probe.Comm) []string {
	var out []string
	for _, m := range c.Members {
		if m.Host != "" {
			out = append(out, m.Host)
		}
	}
	return names(out)
}

// reaches reports a communicator with a rank on a host.
func reaches(c *probe.Comm, host string) bool {
	return slices.ContainsFunc(c.Members, func(m probe.Member) bool { return m.Host == host })
}

// spreadOf tells whether a communicator's ranks are on several hosts. NCCL's count
// of nodes is used only for ranks that did not print: it counts a host as several
// where its ranks cannot share memory.
func spreadOf(c *probe.Comm) spread {
	hosts := hostsOf(c)
	nodes, known := c.Nodes.Get()
	switch {
	case len(hosts) > 1:
		return manyHosts
	case len(hosts) == 1 && len(c.Members) >= c.Ranks && c.Ranks > 0, known && nodes == 1:
		return oneHost
	case known:
		return manyHosts
	}
	return spreadUnknown
}

// jobSpread is the widest of the communicators. Where none is printed, a log that
// several hosts wrote is one of several hosts.
func (a *Across) jobSpread() spread {
	out := spreadUnknown
	for i := range a.Job.Comms {
		out = max(out, spreadOf(&a.Job.Comms[i]))
	}
	if out == manyHosts || len(a.Job.Comms) > 0 {
		return out
	}
	for _, l := range a.Job.Logs {
		if len(l.Hosts) > 1 {
			return manyHosts
		}
	}
	return out
}

// wideHosts returns the hosts of communicators that reach over several.
func (a *Across) wideHosts() []string {
	var out []string
	for i := range a.Job.Comms {
		if c := &a.Job.Comms[i]; spreadOf(c) == manyHosts {
			out = append(out, hostsOf(c)...)
		}
	}
	if len(a.Job.Comms) == 0 && a.jobSpread() == manyHosts {
		out = a.Job.JobHosts()
	}
	return names(out)
}

// member returns a rank of a communicator; nil where it did not print.
func member(c *probe.Comm, rank int) *probe.Member {
	i, ok := slices.BinarySearchFunc(c.Members, rank, func(m probe.Member, r int) int { return m.Rank - r })
	if !ok {
		return nil
	}
	return &c.Members[i]
}

// memberKey is the subject for a rank of a communicator by its number, which is the
// job's where that is known.
func memberKey(c *probe.Comm, rank int) string {
	if m := member(c, rank); m != nil {
		return rankKey(m)
	}
	return fmt.Sprintf("rank:%d", rank)
}

// hostOfRank returns the host of a rank, "" where it is not known.
func hostOfRank(c *probe.Comm, rank int) string {
	if m := member(c, rank); m != nil {
		return m.Host
	}
	return ""
}

// setting returns what a host's ranks read for a variable. A file's setting counts
// for every host.
func (a *Across) setting(name, host string) (probe.EnvSetting, bool) {
	for _, e := range a.Job.Env {
		if e.Name == name && (e.How == probe.EnvVariable || e.How == probe.EnvFile) && sets(e) && (e.Host == host || e.Host == "" || host == "") {
			return e, true
		}
	}
	return probe.EnvSetting{}, false
}

// switchedOn reports a variable whose integer value is not 0. NCCL reads it as
// strtoll does: what is no number is 0.
func (a *Across) switchedOn(name, host string) (probe.EnvSetting, bool) {
	e, ok := a.setting(name, host)
	return e, ok && settingInt(e.Value) != 0
}

// switchedOff reports a variable that is set to 0.
func (a *Across) switchedOff(name, host string) (probe.EnvSetting, bool) {
	e, ok := a.setting(name, host)
	return e, ok && settingInt(e.Value) == 0
}

// settingInt reads the number at the begin of a value, of base 8, 10 or 16.
func settingInt(value string) int64 {
	v := strings.TrimSpace(value)
	for n := len(v); n > 0; n-- {
		if i, err := strconv.ParseInt(v[:n], 0, 64); err == nil {
			return i
		}
	}
	return 0
}

// settingEvidence quotes a setting.
func settingEvidence(e probe.EnvSetting) Evidence {
	return evidence(e.Origins, "", "", "%s%s=%s", hostPrefix(e.Host), e.Name, e.Value)
}

// used returns the networks that carry a host's traffic.
func (a *Across) used(host string) []probe.Network {
	var out []probe.Network
	for _, n := range a.Job.Networks {
		if n.State == probe.NetUsed && n.Host == host {
			out = append(out, n)
		}
	}
	return out
}

// tree returns NCCL's own print-outs of a host.
func (a *Across) trees(host string) []probe.SystemTree {
	var out []probe.SystemTree
	for _, t := range a.Job.Systems {
		if t.Host == host {
			out = append(out, t)
		}
	}
	return out
}

// treeAddr returns the address in a name of a print-out: GPU/0-1b000, and before
// NCCL 2.20 GPU/1B000.
func treeAddr(name string) (probe.BDF, bool) {
	_, id, _ := strings.Cut(name, "/")
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		id = id[i+1:]
	}
	v, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return probe.BDF{}, false
	}
	return probe.BDFOfBusID(v)
}

// pairClass returns the path class between the GPUs of two ranks of one host, by
// NCCL's own print-out or by the host's inventory, and where it stands.
func (a *Across) pairClass(x, y *probe.Member) (graph.PathClass, []Evidence) {
	from, ok1 := x.Addr.Get()
	to, ok2 := y.Addr.Get()
	if !ok1 || !ok2 {
		return graph.Unknown, nil
	}
	for _, t := range a.trees(x.Host) {
		for _, p := range t.Paths {
			f, ok1 := treeAddr(p.From)
			g, ok2 := treeAddr(p.To)
			if !ok1 || !ok2 || (f != from || g != to) && (f != to || g != from) || !strings.HasPrefix(p.From, "GPU/") || !strings.HasPrefix(p.To, "GPU/") {
				continue
			}
			for _, c := range graph.PathClasses() {
				if c.String() == p.Class {
					return c, []Evidence{evidence(t.Origins, "", "", "%s%s to %s is %s", hostPrefix(x.Host), p.From, p.To, p.Class)}
				}
			}
		}
	}
	if h := a.Host(x.Host); h != nil {
		m, n := h.Node("gpu:"+from.String()), h.Node("gpu:"+to.String())
		if m != nil && n != nil {
			if c := h.Class(m, n); c != graph.Unknown {
				return c, []Evidence{evidence(m.GPU.Origins, "", "", "%s to %s is %s", m.Label, n.Label, c)}
			}
		}
	}
	return graph.Unknown, nil
}

// nvlinkAt returns what shows that GPUs of a host are joined by NVLink.
func (a *Across) nvlinkAt(host string) []Evidence {
	for _, t := range a.trees(host) {
		for _, n := range t.Nodes {
			if n.Link == "NVL" {
				return []Evidence{evidence(t.Origins, "", "", "%s%s at NVL[%.1f] in NCCL's topology", hostPrefix(host), n.Name, n.GBs)}
			}
		}
	}
	for _, c := range a.Job.Comms {
		if !reaches(&c, host) {
			continue
		}
		for _, g := range c.Graphs {
			if g.TypeIntra == "NVL" && g.Channels > 0 && len(c.Members) > 1 {
				return []Evidence{evidence(g.Origins, "", "", "%s search: %d channels over NVL", g.Pattern, g.Channels)}
			}
		}
	}
	if h := a.Host(host); h != nil {
		gpus := h.Of(graph.KindGPU)
		for i, m := range gpus {
			for _, n := range gpus[i+1:] {
				if h.Class(m, n) == graph.NVL {
					return []Evidence{evidence(m.GPU.Origins, "nvlinks", "", "%s and %s are joined by NVLink", m.Label, n.Label)}
				}
			}
		}
	}
	return nil
}

// ncclOf returns the NCCL version of a host where the sources name one alone.
func (a *Across) ncclOf(host string) (version string, proof []Evidence) {
	differ := false
	take := func(v string, origins []probe.Origin) {
		if v == "" {
			return
		}
		if version == "" {
			version, proof = v, []Evidence{evidence(origins, "", "", "%sNCCL %s", hostPrefix(host), v)}
		}
		differ = differ || v != version
	}
	for _, v := range a.Job.Versions {
		if v.Host == host || v.Host == "" {
			take(v.NCCL, v.Origins)
		}
	}
	if version == "" {
		for _, c := range a.Job.Comms {
			if reaches(&c, host) {
				take(c.NCCL, c.Origins)
			}
		}
	}
	if h := a.Host(host); h != nil && version == "" {
		take(h.Inv.Runtime.NCCL, h.Inv.Runtime.Origins)
	}
	if differ {
		return "", nil
	}
	return version, proof
}

// rangeText prints sorted numbers in few words: "0-7, 12".
func rangeText(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(list[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
