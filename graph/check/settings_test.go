package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// envCase is settings on a machine and what a rule must say about them.
type envCase struct {
	name string
	text string // of a file: job.env, or of the name before the first colon
	log  string // "NAME=value …" that NCCL confirms
	nccl string
	host *host // nil = none is known
	job  func(*probe.Job)
	want []string
	says []string
	gap  string
}

// testEnv runs all rules over settings, as testRule does over machines.
func testEnv(t *testing.T, id string, cases []envCase) {
	t.Helper()
	var out []ruleCase
	for _, c := range cases {
		h := c.host
		if h == nil {
			h = &host{}
		}
		if c.nccl != "" {
			h.inv.Runtime.NCCL, h.inv.Runtime.Origins = c.nccl, []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:1"}}
		}
		h.inv.Env = settingsOf(t, c.text, c.log)
		if c.job != nil {
			c.job(&h.inv.Job)
		}
		out = append(out, ruleCase{name: c.name, host: h, want: c.want, says: c.says, gap: c.gap})
	}
	testRule(t, id, out)
}

func settingsOf(t *testing.T, text, log string) (env []probe.EnvSetting) {
	t.Helper()
	if text != "" {
		name, body, ok := strings.Cut(text, ":\n")
		if !ok {
			name, body = "job.env", text
		}
		f, err := ncclenv.Parse(name, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		env = f.Inventory().Env
	}
	for i, s := range strings.Fields(log) {
		name, value, _ := strings.Cut(s, "=")
		env = append(env, probe.EnvSetting{Name: name, Value: value, How: probe.EnvVariable,
			Origins: []probe.Origin{probe.LineOf(probe.SourceNCCLLog, "nccl.log", i+1)}})
	}
	return env
}

func nodes(n int) func(*probe.Job) {
	return func(j *probe.Job) { j.Comms = append(j.Comms, probe.Comm{Ranks: 8 * n, Nodes: probe.Some(n)}) }
}

// What holds of several settings of one name.
func TestSettingsInEffect(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"the last line", "NCCL_ALGO=Ring\nNCCL_ALGO=Tree\n", "NCCL_ALGO=Tree"},
		{"the first in nccl.conf", "nccl.conf:\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\n", "NCCL_ALGO=Ring"},
		{"unset", "export NCCL_ALGO=Ring\nunset NCCL_ALGO\n", ""},
		{"unset and set again", "export NCCL_ALGO=Ring\nunset NCCL_ALGO\nexport NCCL_ALGO=Tree\n", "NCCL_ALGO=Tree"},
		{"a branch", "export NCCL_ALGO=Ring\nif x; then\nexport NCCL_ALGO=Tree\nfi\n", "NCCL_ALGO=Ring NCCL_ALGO=Tree?"},
		{"a branch that unsets", "export NCCL_ALGO=Ring\nif x; then\nunset NCCL_ALGO\nfi\n", "NCCL_ALGO=Ring"},
		{"not exported", "export NCCL_ALGO=Ring\nNCCL_NET=IB\n", "NCCL_ALGO=Ring NCCL_NET=IB?"},
		{"two commands", "NCCL_ALGO=Ring mpirun a\nNCCL_ALGO=Tree mpirun a\n", "NCCL_ALGO=Ring NCCL_ALGO=Tree"},
		{"lost", "nccl.conf:\nexport NCCL_ALGO=Ring\n", ""},
	} {
		s := gatherSettings(&probe.Job{Env: settingsOf(t, c.text, "")}, nil)
		var got []string
		for _, x := range s.list {
			text := x.String()
			if x.perhaps {
				text += "?"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSettingsOfHosts(t *testing.T) {
	job := probe.Job{Versions: []probe.NCCLSeen{{NCCL: "2.28.3", Host: "a"}, {NCCL: "2.28.3", Host: "b"}, {NCCL: "2.20.5", Host: "c"}}}
	for _, h := range []string{"a", "b", "c"} {
		job.Env = append(job.Env, probe.EnvSetting{Name: "NCCL_NET", Value: "IB", How: probe.EnvVariable, Host: h})
	}
	job.Env = append(job.Env, probe.EnvSetting{Name: "maxCTAs", Value: "NCCL_MAX_CTAS=4", How: probe.EnvReset, Host: "a"},
		probe.EnvSetting{Name: "minCTAs", Value: "4", How: probe.EnvConfig, Host: "a"},
		probe.EnvSetting{Name: "NCCL_ALGO", Value: "Ring", How: probe.EnvFile})
	var got []string
	s := gatherSettings(&job, nil)
	for _, x := range s.list {
		got = append(got, fmt.Sprintf("%s %s %v", x, x.nccl, x.hosts))
	}
	want := []string{"NCCL_ALGO=Ring  []", "NCCL_MAX_CTAS=4 2.28.3 [a]", "NCCL_NET=IB 2.28.3 [a b]", "NCCL_NET=IB 2.20.5 [c]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	got = nil
	for _, x := range s.scopes {
		got = append(got, fmt.Sprint(x.hosts, x))
	}
	if want := []string{"[] NCCL_ALGO=Ring", "[a] NCCL_MAX_CTAS=4 NCCL_NET=IB", "[b c] NCCL_NET=IB"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// To the process environment, nccl.conf adds what is not set; another file is not
// known to be read.
func TestScopeOfThisProcess(t *testing.T) {
	env := settingsOf(t, "nccl.conf:\nNCCL_NET=Socket\nNCCL_ALGO=Tree\n", "")
	env = append(env, settingsOf(t, "NCCL_PROTO=LL\n", "")...)
	env = append(env, probe.EnvSetting{Name: "NCCL_ALGO", Value: "Ring", How: probe.EnvProcess})
	var got []string
	for _, x := range gatherSettings(&probe.Job{Env: env}, nil).scopes {
		got = append(got, x.String())
	}
	if want := []string{"NCCL_PROTO=LL", "NCCL_ALGO=Ring NCCL_NET=Socket"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFilesOfOneName(t *testing.T) {
	env := append(settingsOf(t, "NCCL_ALGO=Ring\nNCCL_NET=IB\n", ""), settingsOf(t, "NCCL_ALGO=Tree\n", "")...)
	if f := settingsFiles(env); len(f) != 2 || len(f[0].env) != 2 {
		t.Errorf("%+v", f)
	}
}
