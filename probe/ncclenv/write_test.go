package ncclenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestWrite(t *testing.T) {
	const why = "\n# two storage ports\n# second line\n# third\n"
	settings := []Setting{
		{Name: "NCCL_IB_HCA", Value: "^=mlx5_8:1", Comment: []string{"two storage ports", "second line\nthird"}},
		{Name: "NCCL_ALGO", Value: "allreduce:tree ring"},
	}
	const joined = "\n# NCCL_IB_HCA:\n# two storage ports\n# second line\n# third\n\n# NCCL_ALGO:\n\n"
	for d, want := range map[Dialect]string{
		Shell:        why + "export NCCL_IB_HCA=^=mlx5_8:1\n\nexport NCCL_ALGO='allreduce:tree ring'\n",
		Plain:        why + "NCCL_IB_HCA=^=mlx5_8:1\n\nNCCL_ALGO=allreduce:tree ring\n",
		Conf:         why + "NCCL_IB_HCA=^=mlx5_8:1\n\nNCCL_ALGO=allreduce:tree ring\n",
		MPI:          joined + "mpirun \\\n  -x NCCL_IB_HCA=^=mlx5_8:1 \\\n  -x NCCL_ALGO='allreduce:tree ring' \\\n  \"$@\"\n",
		ConfigMap:    "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nccl-settings\ndata:\n" + why + "  NCCL_IB_HCA: \"^=mlx5_8:1\"\n\n  NCCL_ALGO: \"allreduce:tree ring\"\n",
		ContainerEnv: "\nenv:\n" + why + "- name: NCCL_IB_HCA\n  value: \"^=mlx5_8:1\"\n\n- name: NCCL_ALGO\n  value: \"allreduce:tree ring\"\n",
		Python:       "\nimport os\n" + why + "os.environ[\"NCCL_IB_HCA\"] = \"^=mlx5_8:1\"\n\nos.environ[\"NCCL_ALGO\"] = \"allreduce:tree ring\"\n",
	} {
		if got, err := written(d, []string{"head"}, settings...); err != nil || got != "# head\n"+want {
			t.Errorf("%s: %v\n%s\nwant\n%s", d, err, got, want)
		}
	}
	settings[1].Value = "tree"
	if got, err := written(Slurm, nil, settings...); err != nil || got != joined+"#SBATCH --export=ALL,NCCL_IB_HCA=^=mlx5_8:1,NCCL_ALGO=tree\n" {
		t.Errorf("%v\n%s", err, got)
	}
}

func written(d Dialect, header []string, settings ...Setting) (string, error) {
	var b strings.Builder
	err := Write(&b, d, header, settings)
	return b.String(), err
}

// Nothing is written where one setting cannot be, and the error says which and why.
func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		d           Dialect
		name, value string
		want        string
	}{
		{Shell, "nccl debug", "1", "not the name"},
		{Shell, "NCCL_A", "a\nexport EVIL=1", "one line"},
		{Plain, "NCCL_A", `"x"`, "differently"},
		{Plain, "NCCL_A", "$HOME/x", "differently"},
		{Plain, "NCCL_A", " x", "one line"},
		{Conf, "NCCL_A", "x\r", "one line"},
		{Conf, "NCCL_A", strings.Repeat("x", 1024), "NCCL takes 1023 bytes"},
		{Slurm, "NCCL_IB_HCA", "mlx5_0,mlx5_1", "commas part the list"},
		{Slurm, "NCCL_NET", "AWS Libfabric", "plain words"},
		{Slurm, "NCCL_NET", "", "plain words"},
		{MPI, "NCCL_ALGO", "tree\n", "one line"},
		{ConfigMap, "NCCL_A", "{{x}}", "expand"},
		{ContainerEnv, "NCCL_A", "$(HOME)/x", "expand"},
		{Python, "NCCL_A", "é", "one line"},
		{YAML, "NCCL_A", "1", "cannot be written"},
	} {
		got, err := written(c.d, []string{"head"}, Setting{Name: "NCCL_B", Value: "1"}, Setting{Name: c.name, Value: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.d != YAML && !strings.Contains(err.Error(), c.name) || got != "" {
			t.Errorf("%s %s=%q: %v, want %q; wrote %q", c.d, c.name, c.value, err, c.want, got)
		}
	}
	if _, err := ParseDialect("toml"); err == nil || !strings.Contains(err.Error(), "sh, env, nccl.conf, slurm, mpirun, k8s, k8s-env, python") {
		t.Error(err)
	}
}

// Every spelling is complete, can be chosen and is described.
func TestSpellings(t *testing.T) {
	for i, s := range spellings {
		d, err := ParseDialect(string(s.dialect))
		if err != nil || d != s.dialect || s.doc == "" || s.setting == nil || s.refuses == nil || s.refuses("1") != "" || Dialects()[i] != d {
			t.Errorf("%s: %v", s.dialect, err)
		}
	}
	if lines := strings.Count(DialectsHelp(), "\n") + 1; lines != len(spellings) {
		t.Errorf("%d lines of help", lines)
	}
}

// No comment ends early, whatever a reader takes for the end of a line, and none
// is longer than NCCL takes.
func TestComments(t *testing.T) {
	got, err := written(Python, []string{"a\rimport evil\u2028b\x00c\xff", strings.Repeat("host1 ", 1000), strings.Repeat("x", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "# a import evil b c?\n# host1") || strings.Count(got, "host1") != 1000 {
		t.Error(got)
	}
	for l := range strings.Lines(got) {
		if len(l) > 1003 {
			t.Errorf("%d bytes", len(l))
		}
	}
}

// odd are values that readers are asked to read back.
var odd = []string{"1", "^=mlx5_0", "a,b", "a b", "it's", `$HOME "x" \ ;&|<>*?~#`, "`id`", "=x#y", "yes", "0x10", "~", ""}

// Real readers must read back what was written.
func TestReadersReadItBack(t *testing.T) {
	const say = `sys.stdout.write("".join(v+"|" for n,v in sorted(`
	for _, c := range []struct {
		d       Dialect
		needs   []string
		command []string
	}{
		{Shell, nil, []string{"sh", "-c", `. "$1"; printf '%s|' "$NCCL_A" "$NCCL_B" "$NCCL_C" "$NCCL_D" "$NCCL_E" "$NCCL_F" "$NCCL_G" "$NCCL_H" "$NCCL_I" "$NCCL_J" "$NCCL_K" "$NCCL_L"`, "sh"}},
		{Shell, nil, []string{"bash", "-c", `. "$1"; for n in $(compgen -A export NCCL_); do printf '%s|' "${!n}"; done`, "bash"}},
		{Python, nil, []string{"python3", "-c", `import os,sys; exec(open(sys.argv[1]).read()); ` + say + `os.environ.items()) if n.startswith("NCCL_")))`}},
		{ConfigMap, []string{"python3", "-c", "import yaml"}, []string{"python3", "-c", `import yaml,sys; ` + say + `yaml.safe_load(open(sys.argv[1]))["data"].items())))`}},
		{ContainerEnv, []string{"python3", "-c", "import yaml"}, []string{"python3", "-c", `import yaml,sys; ` + say + `(e["name"],e["value"]) for e in yaml.safe_load(open(sys.argv[1]))["env"])))`}},
	} {
		t.Run(string(c.d)+"_"+c.command[0], func(t *testing.T) {
			program, err := exec.LookPath(c.command[0])
			if err != nil || len(c.needs) > 0 && exec.Command(c.needs[0], c.needs[1:]...).Run() != nil {
				t.Skip("no reader here")
			}
			var settings []Setting
			want := ""
			for _, v := range odd {
				s := Setting{Name: "NCCL_" + string(rune('A'+len(settings))), Value: v, Comment: []string{"why"}}
				if _, err := written(c.d, nil, s); err == nil { // else TestWriteRefuses
					settings, want = append(settings, s), want+v+"|"
				}
			}
			if len(settings) < 10 {
				t.Errorf("only %d of the values", len(settings))
			}
			text, err := written(c.d, []string{"head"}, settings...)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "settings")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, append(c.command[1:], file)...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%q came back as %q (%v)", want, out, err)
			}
		})
	}
}

// The script hands mpirun each setting as one argument, and then its own.
func TestMPIArguments(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	text, err := written(MPI, []string{"head"}, Setting{Name: "NCCL_X", Value: "a b $HOME"}, Setting{Name: "NCCL_Y", Value: "c,d"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(sh, "-c", "mpirun() { printf '%s|' \"$@\"; }\n"+text, "sh", "-np", "2 x").Output()
	if want := "-x|NCCL_X=a b $HOME|-x|NCCL_Y=c,d|-np|2 x|"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// readAs are the names and dialects under which Parse reads what was written.
func readAs(d Dialect) (name string, as Dialect) {
	switch d {
	case Conf:
		return "nccl.conf", Conf
	case Slurm, MPI:
		return "x", Shell
	case ConfigMap, ContainerEnv:
		return "x", YAML
	}
	return "x", d
}

func FuzzWrite(f *testing.F) {
	f.Add("NCCL_ALGO", "allreduce:tree", "why")
	f.Add("NCCL_IB_HCA", "it's", "a\nb")
	for _, v := range odd {
		f.Add("NCCL_NET", v, "a\rb")
	}
	f.Fuzz(func(t *testing.T, name, value, why string) {
		for _, d := range Dialects() {
			text, err := written(d, []string{why}, Setting{Name: name, Value: value, Comment: []string{why}})
			// docker takes some values that a shell would split or expand.
			if err != nil || !Matters(name) || d == Plain && (refers(value) || several(value)) {
				continue
			}
			from, as := readAs(d)
			file, err := Parse(from, strings.NewReader(text))
			if err != nil || len(file.Assignments) != 1 || file.Dialect != as || file.Others > 0 || len(file.Issues) > 0 {
				t.Fatalf("%s: %+v, %v from\n%s", d, file, err, text)
			}
			if a := file.Assignments[0]; a.Name != name || a.Value != probe.Some(value) {
				t.Errorf("%s: %q came back as %+v", d, value, a)
			}
		}
	})
}
