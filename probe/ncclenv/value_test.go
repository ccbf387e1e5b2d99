package ncclenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEffective(t *testing.T) {
	for _, c := range []struct {
		name, value, nccl string
		want              string
		complaint         string // part of the complaints joined; "" = none
		fix               string
		fails             bool
	}{
		// strtoll with base 0 (misc/param.cc).
		{"NCCL_P2P_DISABLE", "1", "", "1", "", "", false},
		{"NCCL_P2P_DISABLE", "0", "", "0", "", "", false},
		{"NCCL_P2P_DISABLE", "true", "", "0", "no number; NCCL takes 0", "1", false},
		{"NCCL_IB_DISABLE", "off", "", "0", "no number", "0", false},
		{"NCCL_P2P_DISABLE", "2", "", "2", "neither 0 nor 1", "", false},
		{"NCCL_CUMEM_ENABLE", "-2", "", "-2", "", "", false},
		{"NCCL_BUFFSIZE", "8M", "", "8", "reads 8", "8388608", false},
		{"NCCL_BUFFSIZE", "8388608", "", "8388608", "", "", false},
		{"NCCL_BUFFSIZE", "0x800000", "", "8388608", "", "", false},
		{"NCCL_IB_TC", "0106", "", "70", "octal, 70", "106", false},
		{"NCCL_IB_TC", "08", "", "0", "reads 0", "", false},
		{"NCCL_IB_TIMEOUT", " 22 ", "", "22", "", "", false},
		{"NCCL_IB_TIMEOUT", "99", "", "99", "outside 0 to 31", "", false},
		{"NCCL_IB_TIMEOUT", "99999999999999999999", "", "20", "out of range", "", false},
		{"NCCL_NTHREADS", "300", "", "300", "none of 64 128 256 512", "", false},
		{"NCCL_NTHREADS", "256", "", "256", "", "", false},
		{"NCCL_IB_GID_INDEX", `"3"`, "", "0", "quotes are part", "3", false},
		{"NCCL_IB_GID_INDEX", "", "", "", "", "", false},
		{"NCCL_SOCKET_RETRY_CNT", "0", "", "0", "outside 1 and above", "", false},
		// Path classes (graph/paths.cc).
		{"NCCL_P2P_LEVEL", "NVL", "", "NVL", "", "", false},
		{"NCCL_P2P_LEVEL", "nvl", "", "", "ignores it", "NVL", false},
		{"NCCL_P2P_LEVEL", "1", "", "PIX", "", "PIX", false},
		{"NCCL_P2P_LEVEL", "5", "", "SYS", "", "SYS", false},
		{"NCCL_NET_GDR_LEVEL", "0", "", "LOC", "", "LOC", false},
		{"NCCL_NET_GDR_LEVEL", "-1", "", "", "ignores it", "", false},
		{"NCCL_NET_GDR_LEVEL", "NET", "", "", "ignores it", "", false},
		{"NCCL_NET_MERGE_LEVEL", "PORT", "", "PORT", "", "", false},
		{"NCCL_NET_MERGE_LEVEL", "port", "", "LOC", "no fusion", "PORT", false},
		// Words.
		{"NCCL_DEBUG", "info", "", "INFO", "", "", false},
		{"NCCL_DEBUG", "DEBUG", "", "", "logs nothing", "", false},
		{"NCCL_DEBUG", "1", "", "", "logs nothing", "", false},
		{"NCCL_DEBUG", "ATTN", "2.30.7", "", "logs nothing", "", false},
		{"NCCL_DEBUG", "ATTN", "2.32.3", "ATTN", "", "", false},
		{"NCCL_SOCKET_FAMILY", "AF_INET6", "", "AF_INET6", "", "", false},
		{"NCCL_SOCKET_FAMILY", "af_inet", "", "", "ignores it", "AF_INET", false},
		{"NCCL_NETDEVS_POLICY", "max:2", "", "MAX:2", "", "", false},
		{"NCCL_NETDEVS_POLICY", "MAX:0", "", "AUTO", "takes AUTO", "", false},
		{"NCCL_CTA_POLICY", "EFFICIENCY|zero", "", "EFFICIENCY|ZERO", "", "", false},
		{"NCCL_CTA_POLICY", "1", "2.27.3", "EFFICIENCY", "", "EFFICIENCY", false},
		{"NCCL_CTA_POLICY", "ZERO", "2.28.3", "DEFAULT", "before 2.29", "", false},
		{"NCCL_CTA_POLICY", "7", "", "DEFAULT", "none of 0 1 2", "", false},
		{"NCCL_DEBUG_SUBSYS", "init,GRAPH,NOPE", "", "INIT,GRAPH", `"NOPE"`, "", false},
		{"NCCL_DEBUG_SUBSYS", "^NET", "", "^NET", "", "", false},
		{"NCCL_PARAM_DUMP_ALL", "TRUE", "", "TRUE", "", "", false},
		{"NCCL_PARAM_DUMP_ALL", "on", "", "on", "none of 0 1", "", false},
		{"NCCL_DEBUG_FILE", "~/nccl.log", "", "~/nccl.log", "expand ~", "", false},
		{"NCCL_NET_PLUGIN", "ofi,none", "2.27.3", "ofi,none", "takes one name", "", false},
		{"NCCL_NET_PLUGIN", "ofi,none", "2.28.3", "ofi,none", "", "", false},
		{"NCCL_HOSTID", "rack 1", "", "rack 1", "", "", false},
		// Lists of devices.
		{"NCCL_IB_HCA", "^=mlx5_8,mlx5_14", "", "^=mlx5_8,mlx5_14", "", "", false},
		{"NCCL_IB_HCA", "^mlx5_8,^mlx5_14", "", "^mlx5_8,^mlx5_14", "counts only once", "^mlx5_8,mlx5_14", false},
		{"NCCL_IB_HCA", "=mlx5_0,=mlx5_1", "", "=mlx5_0,=mlx5_1", "counts only once", "=mlx5_0,mlx5_1", false},
		{"NCCL_IB_HCA", "mlx5_0, mlx5_1", "", "mlx5_0, mlx5_1", "blanks are part", "mlx5_0,mlx5_1", false},
		{"NCCL_IB_HCA", "=^mlx5_0", "", "=^mlx5_0", "counts only once", "", false},
		{"NCCL_SOCKET_IFNAME", "lo,^docker", "", "lo,^docker", "counts only once", "", false},
		{"NCCL_SOCKET_IFNAME", "^docker0,lo", "", "^docker0,lo", "", "", false},
		{"NCCL_SOCKET_IFNAME", "e", "", "", "one character", "", false},
		{"NCCL_SOCKET_IFNAME", "^", "", "", "one character", "", false},
		{"NCCL_IB_HCA", strings.Repeat("mlx5_1,", 33), "", strings.Repeat("mlx5_1,", 33), "33 devices", "", false},
		// Selections; those from 2.24 on follow NCCL's own test of the parser.
		{"NCCL_ALGO", "allreduce:tree", "2.28.3", "AllReduce:Tree", "", "", false},
		{"NCCL_ALGO", "RING", "", "Ring", "", "", false},
		{"NCCL_ALGO", "bad_value", "", "", `"bad_value" is none of Tree Ring`, "", true},
		{"NCCL_ALGO", "Tree, Ring", "", "", `" Ring"`, "Tree,Ring", true},
		{"NCCL_ALGO", "Collnet", "2.30.7", "", "none of", "", true},
		{"NCCL_ALGO", "Collnet", "2.12.7", "Collnet", "", "", false},
		{"NCCL_ALGO", "PAT", "2.22.3", "", "before 2.24 skips it; no word is left", "", false},
		{"NCCL_ALGO", "allreduce:tree", "2.23.4", "", "skips it", "", false},
		{"NCCL_ALGO", "allgather:nvls,reducescatter:nvls", "2.30.7", "", `"reducescatter" is none of`, "", true},
		{"NCCL_ALGO", "^NVLS,NVLSTree", "2.22.3", "Tree,Ring,CollNetDirect,CollNetChain", "", "", false},
		{"NCCL_PROTO", "^LL128", "2.8.3", "LL,Simple", "", "", false},
		{"NCCL_PROTO", "allreduce:LL128;LL,Simple", "", "", "only the first entry", "", true},
		{"NCCL_PROTO", "bad_prefix:LL", "", "", `"bad_prefix" is none of Broadcast`, "", true},
		{"NCCL_PROTO", "reduce:LL,bad,Simple", "", "", `"bad"`, "", true},
	} {
		v, ok := Lookup(c.name)
		if !ok {
			t.Fatal(c.name)
		}
		e := v.Effective(c.value, c.nccl)
		got := strings.Join(e.Complaints, "; ")
		if e.Value != c.want || e.Fix != c.fix || e.Fails != c.fails || (got == "") != (c.complaint == "") || !strings.Contains(got, c.complaint) {
			t.Errorf("%s=%q by %q: %q fix %q fails %v: %s", c.name, c.value, c.nccl, e.Value, e.Fix, e.Fails, got)
		}
	}
}

// The rows of NCCL's own test of its parser (test/…ParseList): 0 off, 1 on,
// 2 where NCCL decides, for LL, LL128 and Simple, in the order Broadcast Reduce
// AllGather ReduceScatter AllReduce.
func TestSelections(t *testing.T) {
	v, _ := Lookup("NCCL_PROTO")
	for value, want := range map[string]string{
		"":                                   "121 121 121 121 121",
		"LL":                                 "100 100 100 100 100",
		"^LL":                                "011 011 011 011 011", // forces LL128
		"LL,Simple;allreduce:LL128":          "101 101 101 101 010",
		"^LL,Simple;BROADCAST:Simple":        "001 010 010 010 010",
		"broadcast:^Simple;reduce:Simple,LL": "110 101 121 121 121",
		"^LL128":                             "101 101 101 101 101",
		";;LL":                               "100 100 100 100 100",
	} {
		rows, _, err := v.Selections(value, "2.28.3")
		var got []string
		for _, r := range rows {
			s := ""
			for _, p := range protocols {
				switch {
				case !slices.Contains(r.Allowed, p.Name):
					s += "0"
				case p.Name == "LL128" && !r.Set:
					s += "2"
				default:
					s += "1"
				}
			}
			got = append(got, s)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v %v, want %s", value, got, err, want)
		}
	}
}

func TestDevices(t *testing.T) {
	any := probe.Opt[int]{}
	for _, c := range []struct {
		list, name string
		port       probe.Opt[int]
		want       bool
	}{
		{"mlx5_1", "mlx5_1", any, true},
		{"mlx5_1", "mlx5_10", any, true}, // a prefix
		{"=mlx5_1", "mlx5_10", any, false},
		{"^=mlx5_1", "mlx5_10", any, true},
		{"^mlx5_1", "mlx5_10", any, false},
		{"=mlx5_0:1,mlx5_1:2", "mlx5_1", probe.Some(1), false},
		{"=mlx5_0:1,mlx5_1:2", "mlx5_1", probe.Some(2), true},
		{"=mlx5_0::0:1", "mlx5_0", probe.Some(2), true},
		{"", "mlx5_0", any, true},
		{"=", "mlx5_0", any, true},
	} {
		if got := ParseDevices(c.list).Allows(c.name, c.port); got != c.want {
			t.Errorf("%q allows %s port %v: %v", c.list, c.name, c.port, got)
		}
	}
	d := ParseDevices("=mlx5_0:1:2:3").Devices[0]
	if d.Port != probe.Some(1) || d.Rail != probe.Some(2) || d.Plane != probe.Some(3) {
		t.Errorf("%+v", d)
	}
}

func FuzzEffective(f *testing.F) {
	for _, s := range []string{"1", "8M", "0x", "-0777", "^=mlx5_0:1,=x", "allreduce:^tree;;:", "max:", "2|", "5nvl", `"`} {
		f.Add(s, "2.28.3")
	}
	vars := Variables()
	f.Fuzz(func(t *testing.T, value, nccl string) {
		for _, v := range vars {
			e := v.Effective(value, nccl)
			if e.Fails && len(e.Complaints) == 0 {
				t.Errorf("%s=%q fails without a reason", v.Name, value)
			}
			if again := v.Effective(e.Value, nccl); v.Type == Level && e.Value != "" && again.Value != e.Value {
				t.Errorf("%s=%q: %q, then %q", v.Name, value, e.Value, again.Value)
			}
		}
		ParseDevices(value).Allows("mlx5_0", probe.Some(1))
		Nearest(value)
	})
}
