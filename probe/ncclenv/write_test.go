package ncclenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	settings := []Setting{
		{Name: "NCCL_IB_HCA", Value: "^=mlx5_8:1,mlx5_14", Comment: []string{"two storage ports", "second line\nthird"}},
		{Name: "NCCL_ALGO", Value: "allreduce:tree;broadcast:ring"},
	}
	for d, want := range map[Dialect]string{
		Shell: "# head\n\n# two storage ports\n# second line\n# third\nexport NCCL_IB_HCA=^=mlx5_8:1,mlx5_14\n\nexport NCCL_ALGO='allreduce:tree;broadcast:ring'\n",
		Plain: "# head\n\n# two storage ports\n# second line\n# third\nNCCL_IB_HCA=^=mlx5_8:1,mlx5_14\n\nNCCL_ALGO=allreduce:tree;broadcast:ring\n",
	} {
		var b strings.Builder
		if err := Write(&b, d, []string{"head"}, settings); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", d, err, b.String(), want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		s    Setting
		want string
	}{
		{Shell, Setting{Name: "nccl debug", Value: "1"}, "not the name"},
		{Shell, Setting{Name: "NCCL_A", Value: "a\nexport EVIL=1"}, "one line"},
		{Plain, Setting{Name: "NCCL_A", Value: ""}, "one line"},
		{Plain, Setting{Name: "NCCL_A", Value: `"x"`}, "differently"},
		{Plain, Setting{Name: "NCCL_A", Value: "$HOME/x"}, "differently"},
		{Plain, Setting{Name: "NCCL_A", Value: " x"}, "one line"},
	} {
		var b strings.Builder
		if err := Write(&b, c.d, nil, []Setting{c.s}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.d, c.s, err, c.want)
		}
	}
	if _, err := ParseDialect("toml"); err == nil {
		t.Error("toml is no dialect")
	}
}

// A real shell must read back what was written.
func TestShellReadsItBack(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	values := []string{"1", "^=mlx5_0", "a b", "it's", `$HOME "x" \ ;&|<>*?~#`, ""}
	for _, v := range values {
		var b strings.Builder
		if err := Write(&b, Shell, nil, []Setting{{Name: "NCCL_X", Value: v, Comment: []string{"why"}}}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "nccl.env")
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(sh, "-c", `. "$1"; printf %s "$NCCL_X"`, "sh", file).Output()
		if err != nil || string(out) != v {
			t.Errorf("%q came back as %q (%v)", v, out, err)
		}
	}
}

func FuzzWrite(f *testing.F) {
	f.Add("NCCL_ALGO", "allreduce:tree", "why")
	f.Add("NCCL_IB_HCA", "it's", "a\nb")
	f.Fuzz(func(t *testing.T, name, value, why string) {
		for _, d := range Dialects() {
			var b strings.Builder
			if err := Write(&b, d, []string{why}, []Setting{{Name: name, Value: value, Comment: []string{why}}}); err != nil {
				continue
			}
			// Exactly one line sets something; all others are comments or empty.
			n := 0
			for _, l := range strings.Split(b.String(), "\n") {
				if l != "" && !strings.HasPrefix(l, "#") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s %q=%q why %q: %d lines that set something\n%s", d, name, value, why, n, b.String())
			}
			// And Parse reads it back, unless docker alone would take it so.
			if !Matters(name) || d == Plain && (refers(value) || several(value)) {
				continue
			}
			file, err := Parse("x.env", strings.NewReader(b.String()))
			if err != nil || len(file.Assignments) != 1 || file.Dialect != d {
				t.Fatalf("%+v, %v from\n%s", file, err, b.String())
			}
			if got, _ := file.Assignments[0].Value.Get(); got != value {
				t.Errorf("%s: %q came back as %q", d, value, got)
			}
		}
	})
}
