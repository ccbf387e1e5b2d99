package tune

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

func TestParseSizes(t *testing.T) {
	for in, want := range map[string]string{
		"8:64:2": "[8 16 32 64]", "1K:1M:32": "[1024 32768 1048576]", "1g:3G:2": "[1073741824 2147483648]", "5:5:2": "[5]", "3:100:10": "[3 30]",
	} {
		got, err := ParseSizes(in)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v %v, want %s", in, got, err, want)
		}
	}
	if got, err := ParseSizes(DefaultSizes); err != nil || len(got) != 31 || got[30] != 8<<30 {
		t.Errorf("%s: %v %v", DefaultSizes, got, err)
	}
	for _, in := range []string{"", "8", "8:64", "8:64:2:2", "0:8:2", "-8:8:2", "8:4:2", "8:64:1", "8:64:1.5", "8:64:", "K:1M:2", "8T:9T:2", "8:9999999G:2", "1.5K:2K:2"} {
		if got, err := ParseSizes(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	f.Add(DefaultSizes)
	f.Add("1:1125899906842624:2147483647")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSizes(s)
		if (err == nil) != (len(got) > 0) || len(got) > maxSizes {
			t.Fatalf("%d sizes, %v", len(got), err)
		}
		for i, n := range got {
			if n < 1 || i > 0 && n <= got[i-1] {
				t.Fatalf("%v", got)
			}
		}
	})
}

// Each setting reaches the part that knows it, and what reaches none is told.
func TestSettingsInEffect(t *testing.T) {
	file, err := ncclenv.Parse("job.env", strings.NewReader("NCCL_ALGO=Ring\nNCCL_P2P_DISABLE=1\nNCCL_NVLS_ENABLE=0\nNCCL_NTHREADS=lots\nNCCL_IB_TIMEOUT=22\n"))
	if err != nil {
		t.Fatal(err)
	}
	var o ModelOptions
	o.SetFile(file)
	if o.Model.Algo != "Ring" || o.NCCL.P2PLevel != graph.LOC || !o.Search.NoNVLS || o.Model.Threads != 0 {
		t.Errorf("%+v", o)
	}
	used := map[string]bool{}
	for _, s := range o.Settings {
		used[s.Name] = s.Used
		if s.Used == (s.Why != "") {
			t.Errorf("%+v", s)
		}
	}
	if fmt.Sprint(used) != "map[NCCL_ALGO:true NCCL_IB_TIMEOUT:false NCCL_NTHREADS:false NCCL_NVLS_ENABLE:true NCCL_P2P_DISABLE:true]" {
		t.Error(used)
	}
}

// A log's version and settings count, a file's settings do not: whether a job
// reads it is not known.
func TestOptionsOfSources(t *testing.T) {
	inv := &probe.Inventory{}
	inv.Comms = []probe.Comm{{NCCL: "2.27.7+cuda12.9"}}
	inv.Env = []probe.EnvSetting{{Name: "NCCL_ALGO", Value: "Tree", How: probe.EnvVariable}, {Name: "NCCL_PROTO", Value: "LL", How: probe.EnvFile}}
	o := OptionsOf(inv)
	if o.NCCL.Version != 22707 || o.Model.Algo != "Tree" || o.Model.Proto != "" {
		t.Errorf("%+v", o)
	}
	// What contradicts itself does not count: of several runs nothing, of one run the variable.
	env := func(name, value, at string) probe.EnvSetting {
		return probe.EnvSetting{Name: name, Value: value, How: probe.EnvVariable, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: at}}}
	}
	for _, c := range []struct {
		env         []probe.EnvSetting
		algo, proto string
		conflict    string
	}{
		{[]probe.EnvSetting{env("NCCL_ALGO", "Ring", "a.log:2"), env("NCCL_PROTO", "LL", "a.log:3"), env("NCCL_ALGO", "Tree", "b.log:2")}, "", "", "settings of 2 runs differ; none is used"},
		{[]probe.EnvSetting{env("NCCL_ALGO", "Ring", "a.log:2"), env("NCCL_PROTO", "LL", "a.log:3"), env("NCCL_ALGO", "Tree", "a.log:9")}, "", "LL", "processes of one run differ in NCCL_ALGO"},
		{[]probe.EnvSetting{env("NCCL_ALGO", "Ring", "a.log:2"), env("NCCL_DEBUG", "INFO", "a.log:3"), env("NCCL_DEBUG", "WARN", "b.log:3")}, "Ring", "", ""},
	} {
		o := OptionsOf(&probe.Inventory{Job: probe.Job{Env: c.env}})
		if o.Model.Algo != c.algo || o.Model.Proto != c.proto || !strings.HasPrefix(strings.Join(o.Conflicts, ""), c.conflict) || (c.conflict == "") != (len(o.Conflicts) == 0) {
			t.Errorf("%q %q %v, want %q %q %q", o.Model.Algo, o.Model.Proto, o.Conflicts, c.algo, c.proto, c.conflict)
		}
	}
	inv.Runtime.NCCL = "2.23.4"
	if o := OptionsOf(inv); o.NCCL.Version != 22304 {
		t.Errorf("%v", o.NCCL.Version)
	}
	if o := OptionsOf(&probe.Inventory{}); o.NCCL.Version != 0 || len(o.Settings) != 0 {
		t.Errorf("%+v", o)
	}
}
