package ncclenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	vars := Variables()
	if len(vars) != 288 {
		t.Errorf("%d variables, want 288", len(vars))
	}
	seen := map[string]bool{}
	for _, part := range [][]Variable{logging, startUp, network, infiniBand, gpuPaths, collectives, memory, gpuNetwork, plugins} {
		for i, v := range part {
			if i > 0 && part[i-1].Name >= v.Name {
				t.Errorf("%s does not follow %s", v.Name, part[i-1].Name)
			}
			if v.Group != part[0].Group {
				t.Errorf("%s: group %s among %s", v.Name, v.Group, part[0].Group)
			}
		}
	}
	for _, v := range vars {
		if !nameForm.MatchString(v.Name) || !strings.HasPrefix(v.Name, "NCCL_") || seen[v.Name] {
			t.Errorf("%s: no name of its own", v.Name)
		}
		seen[v.Name] = true
		if v.Meaning == "" || v.Source == "" || v.Risk.Doc() == "" || v.Type.Doc() == "" {
			t.Errorf("%s: incomplete: %+v", v.Name, v)
		}
		if v.Default != "" {
			if e := v.Effective(v.Default, ""); len(e.Complaints) > 0 || e.Value != v.Default {
				t.Errorf("%s: default %q: %+v", v.Name, v.Default, e)
			}
		}
		since, ok := parseRelease(v.Since)
		if v.Since != "" && !ok {
			t.Errorf("%s: since %q", v.Name, v.Since)
		}
		if until, ok := parseRelease(v.Until); v.Until != "" {
			if c, _ := since.compare(until); !ok || v.Since != "" && c >= 0 {
				t.Errorf("%s: since %q until %q", v.Name, v.Since, v.Until)
			}
			if v.Risk != NoEffect {
				t.Errorf("%s: removed, yet risk %s", v.Name, v.Risk)
			}
		} else if v.Risk == NoEffect {
			t.Errorf("%s: still read, yet without effect", v.Name)
		}
		if v.Successor != "" {
			if s, ok := Lookup(v.Successor); !ok || s.Until != "" {
				t.Errorf("%s: successor %s is no current variable", v.Name, v.Successor)
			}
		}
		if v.Range != (Range{}) && v.Range.Min >= v.Range.Max {
			t.Errorf("%s: range %v", v.Name, v.Range)
		}
		for i, w := range v.Words {
			if slices.ContainsFunc(v.Words[:i], func(o Word) bool { return strings.EqualFold(o.Name, w.Name) }) {
				t.Errorf("%s: word %s twice", v.Name, w.Name)
			}
		}
	}
	for i, f := range foreign {
		if _, ok := Lookup(f.name); ok || i > 0 && foreign[i-1].name >= f.name {
			t.Errorf("%s: also NCCL's, or out of order", f.name)
		}
	}
}

const reference = "../../../shared/reference/nccl/env-vars.md"

// Every name of the reference is known, and where it lists defaults and first
// releases, they agree.
func TestTableAgainstReference(t *testing.T) {
	raw, err := os.ReadFile(filepath.FromSlash(reference))
	if err != nil {
		t.Skip(err)
	}
	noVariables := []string{"NCCL_CONFIG_UNDEF_INT", "NCCL_MAX_DEV_WORK_P2P_PER_BATCH", "NCCL_WORK_FIFO_BYTES_DEFAULT", "NCCL_PARAM", "NCCL_X",
		"NCCL_MAX_P2P_PEERS"} // constants, an example, and a name that only the log uses
	for _, name := range regexp.MustCompile(`NCCL_[A-Z0-9_]+`).FindAllString(string(raw), -1) {
		if Kind(name) == KindUnknown && !slices.Contains(noVariables, name) {
			t.Errorf("%s is in the reference and not in the table", name)
		}
	}
	row := regexp.MustCompile(`(?m)^\| (NCCL_[A-Z0-9_]+) \| (.*?) \| (\S+):\d+ \| (\S+) \| (yes|no) \|$`)
	rows := row.FindAllStringSubmatch(string(raw), -1)
	if len(rows) != 245 {
		t.Fatalf("%d rows in the appendix, want 245", len(rows))
	}
	for _, m := range rows {
		v, _ := Lookup(m[1])
		since := m[4]
		if since == "2.3.5" {
			since = ""
		}
		later := map[string]string{"NCCL_GRAPH_STREAM_ORDERING": "2.30.5"}
		if v.Since != since && v.Since != later[v.Name] {
			t.Errorf("%s: since %q, appendix %q", v.Name, v.Since, m[4])
		}
		if v.Source != "src/"+m[3] {
			t.Errorf("%s: %s, appendix %s", v.Name, v.Source, m[3])
		}
		if m[5] == "yes" && !v.Documented {
			t.Errorf("%s: documented", v.Name)
		}
		if n, err := fmt.Sscanf(m[2], "%d", new(int)); n == 1 && err == nil && !strings.ContainsAny(m[2], "*<(-") && v.Default != m[2] {
			t.Errorf("%s: default %q, appendix %s", v.Name, v.Default, m[2])
		}
		if read, known := v.ReadBy("2.30.7"); !read || !known {
			t.Errorf("%s: read by 2.30.7: %v %v", v.Name, read, known)
		}
	}
}

func TestReadBy(t *testing.T) {
	for _, c := range []struct {
		name, version string
		read, known   bool
	}{
		{"NCCL_NVLS_ENABLE", "2.17.1", true, true},
		{"NCCL_NVLS_ENABLE", "2.16.5", false, true},
		{"NCCL_NVLS_ENABLE", "2.28.3+cuda12.9", true, true},
		{"NCCL_NVLS_ENABLE", "v2.28.3-1", true, true},
		{"NCCL_NVLS_ENABLE", "2.17", true, false}, // 2.17.0 or 2.17.1?
		{"NCCL_NVLS_ENABLE", "2.18", true, true},
		{"NCCL_NVLS_ENABLE", "", true, false},
		{"NCCL_NVLS_ENABLE", "2.40.1", true, false},
		{"NCCL_IB_CUDA_SUPPORT", "2.8.3", false, true},
		{"NCCL_IB_CUDA_SUPPORT", "2.3.7", true, true},
		{"NCCL_IB_CUDA_SUPPORT", "", false, false},
		{"NCCL_MNNVL", "2.20.5", true, true},
		{"NCCL_MNNVL", "2.21.5", false, true},
		{"NCCL_MNNVL_ENABLE", "2.20.5", false, true},
		{"NCCL_DEBUG", "2.8.4", true, true},
		{"NCCL_DEBUG", "2.1.2", false, false},
		{"NCCL_WORK_FIFO_DEPTH", "2.21.5", true, true},
		{"NCCL_WORK_FIFO_DEPTH", "2.22.3", false, true},
		{"NCCL_RUN_DIAGNOSTICS", "2.30.7", false, true},
		{"NCCL_RUN_DIAGNOSTICS", "2.31.2", true, true},
		{"NCCL_DEBUG_LEVELS", "2.31.2", false, true},
	} {
		v, ok := Lookup(c.name)
		if read, known := v.ReadBy(c.version); !ok || read != c.read || known != c.known {
			t.Errorf("%s by %q: %v %v, want %v %v", c.name, c.version, read, known, c.read, c.known)
		}
	}
}

func TestKindAndNearest(t *testing.T) {
	for name, want := range map[string]NameKind{
		"NCCL_IB_HCA": KindCore, "NCCL_MNNVL": KindCore, "NCCL_FASTRAK_IFNAME": KindPlugin, "NCCL_TUNER_CONFIG_PATH": KindPlugin,
		"NCCL_TESTS_DEVICE": KindTool, "NCCL_VERSION": KindLabel, "NV_LIBNCCL_PACKAGE_VERSION": KindLabel, "NCCL_HOME": KindBuild,
		"NCCL_BLOCKING_WAIT": KindFramework, "TORCH_NCCL_BLOCKING_WAIT": KindFramework, "NCCL_IB_HAC": KindUnknown, "PATH": KindUnknown,
		"NCCL_FASTRAK": KindUnknown, "": KindUnknown,
	} {
		if got := Kind(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"CCL_NET_GDR_LEVEL": "NCCL_NET_GDR_LEVEL", "NCCL_IB_HAC": "NCCL_IB_HCA", "NCCL_SOCKET_IFNAM": "NCCL_SOCKET_IFNAME",
		"NCCL_SOCKET_IF_NAME": "NCCL_SOCKET_IFNAME", "NCCL_MAX_P2P_PEERS": "NCCL_P2P_MAX_PEERS", "NCCL_BUFFERSIZE": "NCCL_BUFFSIZE",
		"NCCL_NSOCKS_PER_THREAD": "NCCL_NSOCKS_PERTHREAD", "NCCL_IB_HCA": "", "NCCL_NONSENSE": "", "NCCL_TESTS_DEVICE": "", "PATH": "", "": "",
	} {
		if got, ok := Nearest(name); got != want || ok != (want != "") {
			t.Errorf("%s: nearest %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"CCL_NET_GDR_LEVEL": true, "NCC_DEBUG": true, "NCCL_ANYTHING": true, "OFI_NCCL_PROTOCOL": true, "NCL_ALGO": true,
		// Other libraries, and nothing of the kind.
		"HCCL_SOCKET_IFNAME": false, "RCCL_DEBUG": false, "CCL_LOG_LEVEL": false, "GLOO_SOCKET_IFNAME": false, "FI_PROVIDER": false, "": false,
	} {
		if got := Matters(name); got != want {
			t.Errorf("%s matters: %v", name, got)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "ab", 1}, {"ab", "abc", 1}, {"abc", "acb", 1}, {"abc", "axc", 1}, {"abc", "xaby", 2}, {"abc", "xabyz", 3}, {"abcd", "badc", 2}, {"abcdef", "uvwxyz", 3}} {
		if got := edits(c.a, c.b, 2); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
