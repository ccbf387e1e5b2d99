package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var envDiffers = Rule{
	ID:    "env-differs",
	Title: "Ranks of one communicator have different settings",
	Doc: `Fires for a variable that must be equal on all ranks, or NCCL_IB_HCA, of which the log
confirms different values among the ranks of one communicator.

critical.

Silent for what names a host's own things (NCCL_SOCKET_IFNAME, NCCL_IB_GID_INDEX,
NCCL_TOPO_FILE, NCCL_DEBUG…), for NCCL_IB_HCA that differs between hosts alone while
each host is left with as many adapters, and for ranks that print no value: NCCL
prints a variable only where it reads it.`,
	Across: runEnvDiffers,
}

// mustMatch are the variables whose difference makes a job hang or fail (NCCL 2.30.7;
// NVIDIA/nccl#1478 for NCCL_IB_HCA).
var mustMatch = []string{
	"NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_P2P_NCHANNELS",
	"NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE", "NCCL_LL128_NTHREADS",
	"NCCL_LL128_C2C", "NCCL_THREAD_THRESHOLDS", "NCCL_CHUNK_SIZE", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE",
	"NCCL_P2P_LL_THRESHOLD", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_P2P_DIRECT_DISABLE", "NCCL_P2P_READ_ENABLE", "NCCL_P2P_USE_CUDA_MEMCPY",
	"NCCL_SHM_DISABLE", "NCCL_NVB_DISABLE", "NCCL_PXN_DISABLE", "NCCL_CUMEM_ENABLE", "NCCL_CUMEM_HOST_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_NVLS_NCHANNELS",
	"NCCL_NVLS_CHUNKSIZE", "NCCL_NVLSTREE_MAX_CHUNKSIZE", "NCCL_MNNVL_ENABLE", "NCCL_COLLNET_ENABLE", "NCCL_COLLNET_NODE_THRESHOLD", "NCCL_PAT_ENABLE",
	"NCCL_NET", "NCCL_IB_DISABLE", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_CROSS_NIC", "NCCL_NETDEVS_POLICY", "NCCL_NET_MERGE_LEVEL",
	"NCCL_NET_FORCE_MERGE", "NCCL_RUNTIME_CONNECT", "NCCL_GRAPH_REGISTER", "NCCL_LOCAL_REGISTER", "NCCL_CGA_CLUSTER_SIZE", "NCCL_MULTI_RANK_GPU_ENABLE",
	"NCCL_SOCKET_MAGIC", "NCCL_OOB_NET_ENABLE",
}

const ibHCA = "NCCL_IB_HCA"

func runEnvDiffers(a *Across) {
	type process struct {
		host string
		pid  int
	}
	var done []string // a job's communicators share its processes
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		ranks := map[process][]int{}
		for _, m := range c.Members {
			if pid, ok := m.PID.Get(); ok {
				ranks[process{m.Host, pid}] = append(ranks[process{m.Host, pid}], m.Rank)
			}
		}
		byName := map[string][]rankValue{}
		for _, e := range a.Job.Env {
			if e.How != probe.EnvVariable || e.Name != ibHCA && !slices.Contains(mustMatch, e.Name) {
				continue
			}
			for _, pid := range e.PIDs {
				for _, r := range ranks[process{e.Host, pid}] {
					byName[e.Name] = append(byName[e.Name], rankValue{r, e})
				}
			}
		}
		for _, name := range append([]string{ibHCA}, mustMatch...) {
			values := a.whole(valuesOf(byName[name]))
			if len(values) < 2 || name == ibHCA && a.ownAdapters(byName[name]) || slices.Contains(done, name) {
				continue
			}
			done = append(done, name)
			a.reportDifference(name, values)
		}
	}
}

// rankValue is what a rank read for a variable.
type rankValue struct {
	rank int
	env  probe.EnvSetting
}

// valueRanks is a value and the ranks that have it.
type valueRanks struct {
	value string
	ranks []int
	env   probe.EnvSetting
}

// valuesOf groups by value, that of the most ranks first.
func valuesOf(list []rankValue) []valueRanks {
	var out []valueRanks
	for _, x := range list {
		i := slices.IndexFunc(out, func(v valueRanks) bool { return v.value == x.env.Value })
		if i < 0 {
			i = len(out)
			out = append(out, valueRanks{value: x.env.Value, env: x.env})
		}
		out[i].ranks = append(out[i].ranks, x.rank)
	}
	for i := range out {
		slices.Sort(out[i].ranks)
		out[i].ranks = slices.Compact(out[i].ranks)
	}
	slices.SortFunc(out, func(x, y valueRanks) int {
		return cmp.Or(len(y.ranks)-len(x.ranks), x.ranks[0]-y.ranks[0], strings.Compare(x.value, y.value))
	})
	return out
}

// whole leaves out a value that is the beginning of the usual one, where lines of the
// log were torn: it lost its end.
func (a *Across) whole(values []valueRanks) []valueRanks {
	if !slices.ContainsFunc(a.Job.Logs, func(l probe.LogFile) bool { return l.Torn > 0 }) {
		return values
	}
	return slices.DeleteFunc(values, func(v valueRanks) bool {
		return v.value != values[0].value && strings.HasPrefix(values[0].value, v.value)
	})
}

// ownAdapters reports NCCL_IB_HCA that is equal within each host, and leaves each
// host with as many adapters.
func (a *Across) ownAdapters(list []rankValue) bool {
	value := map[string]string{}
	for _, x := range list {
		if v, ok := value[x.env.Host]; ok && v != x.env.Value {
			return false
		}
		value[x.env.Host] = x.env.Value
	}
	count := map[string]int{}
	for _, d := range a.Job.Adapters {
		if _, ok := value[d.Host]; ok && d.LinkLayer != "" {
			count[d.Host]++
		}
	}
	var n []int
	for h := range value {
		n = append(n, count[h])
	}
	slices.Sort(n)
	return len(n) > 0 && n[0] > 0 && n[0] == n[len(n)-1]
}

func (a *Across) reportDifference(name string, values []valueRanks) {
	subjects := []string{"env:" + name}
	var said []string
	var proof []Evidence
	for i, v := range values {
		said = append(said, fmt.Sprintf("%s on rank %s", v.value, rangeText(v.ranks)))
		proof = append(proof, settingEvidence(v.env))
		if i == 0 {
			continue // the rule, not the exception
		}
		for _, r := range v.ranks[:min(len(v.ranks), 16)] {
			subjects = append(subjects, fmt.Sprintf("rank:%d", r))
		}
	}
	a.Report(Finding{
		Severity: Critical, Subjects: subjects,
		Expected: "one value on all ranks of a communicator",
		Observed: name + " is " + listed(said),
		Evidence: few(proof),
		Fix:      "user: give " + name + " the same value on every rank: set it where the job is launched, and look for the script or profile on some hosts that sets it too." + nicHint(name),
	})
}

// nicHint says why nobody needs a list of adapters for each rank.
func nicHint(name string) string {
	if name != ibHCA {
		return ""
	}
	return ". NCCL picks the adapters near each GPU by itself"
}
