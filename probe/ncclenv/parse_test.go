package ncclenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// show writes a file in one line per assignment: line NAME=value [marks].
func show(f *File) string {
	var b strings.Builder
	for _, a := range f.Assignments {
		value := "?"
		if v, ok := a.Value.Get(); ok {
			value = v
		}
		fmt.Fprintf(&b, "%d %s=%s", a.Line, a.Name, value)
		for _, m := range a.Marks {
			fmt.Fprintf(&b, " [%s]", m)
		}
		b.WriteByte('\n')
	}
	for _, i := range f.Issues {
		fmt.Fprintf(&b, "%d! %s\n", i.Line, i.Text)
	}
	return b.String()
}

func parse(t *testing.T, name, text string) *File {
	t.Helper()
	f, err := Parse(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		what, name, text string
		dialect          Dialect
		want             string
		others           int
		effective        string // NAME=value, joined by blanks
	}{
		{"docker", "job.env", "# rail\nNCCL_IB_HCA=mlx5_1\nFI_PROVIDER=efa\nNCCL_NET=AWS Libfabric\nNCCL_IB_HCA=\n", Plain,
			"2 NCCL_IB_HCA=mlx5_1\n4 NCCL_NET=AWS Libfabric\n5 NCCL_IB_HCA=\n", 1, "NCCL_IB_HCA= NCCL_NET=AWS Libfabric"},
		{"what docker takes literally", "", "NCCL_ALGO=\"Ring\"\nNCCL_PROTO = Simple\nNCCL_NET=IB # fast\nNCCL_DEBUG=INFO\r\nNCCL_TOPO_FILE=~/t.xml\nNCCL_HOSTID=$HOST\n", Plain,
			"1 NCCL_ALGO=Ring [quotes]\n2 NCCL_PROTO=Simple [blanks]\n3 NCCL_NET=IB [comment]\n4 NCCL_DEBUG=INFO [CR]\n5 NCCL_TOPO_FILE=~/t.xml [tilde]\n6 NCCL_HOSTID=? [reference]\n", 0, ""},
		{"lists with semicolons", "", "NCCL_ALGO=allreduce:tree;broadcast:ring\n", Plain, "1 NCCL_ALGO=allreduce:tree;broadcast:ring\n", 0, ""},
		{"odd lines", "", "NCCL_DEBUG\nwhat is this\n9A=1\nNCCL_ALGO=“Ring”\n", Plain,
			"4 NCCL_ALGO=“Ring” [smart quotes]\n1! NCCL_DEBUG without =: docker passes the value of its own environment on\n2! no NAME=value: \"what is this\"\n3! not the name of a variable: \"9A\"\n4! typographic quotes in NCCL_ALGO; they become part of the value\n", 0, ""},
		{"BOM, NUL and one edit", "", "\xef\xbb\xbfCCL_NET_GDR_LEVEL=PHB\nNCCL_NET=a\x00b\nHCCL_DEBUG=1", Plain,
			"1 CCL_NET_GDR_LEVEL=PHB\n2 NCCL_NET=ab\n1! byte order mark; shells and NCCL take it for part of the first name\n2! NUL byte\n", 1, ""},
		{"UTF-16", "", "\xff\xfeN\x00C\x00C\x00L\x00_\x00N\x00E\x00T\x00=\x00I\x00B\x00", Plain, "1 NCCL_NET=IB\n0! UTF-16 text; no shell and no NCCL reads it\n", 0, ""},

		{"nccl.conf by NCCL's rules", "nccl.conf", "# c\nNCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME==ens1f0\n NCCL_NET=IB\nexport NCCL_ALGO=Ring\nNCCL_PROTO =LL\nNCCL_NVLS_ENABLE=\"1\" # x\nNCCL_DEBUG=INFO\n # NCCL_CROSS_NIC=1\nNCCL_IB_TC=$TC\nword\r\nNCCL_IB_SL=3 \n", Conf,
			"2 NCCL_DEBUG=WARN\n3 NCCL_SOCKET_IFNAME==ens1f0\n4 NCCL_NET=IB [blanks] [lost]\n5 NCCL_ALGO=Ring [export] [lost]\n6 NCCL_PROTO=LL [blanks] [lost]\n7 NCCL_NVLS_ENABLE=\"1\" # x [quotes] [comment]\n8 NCCL_DEBUG=INFO\n10 NCCL_IB_TC=$TC\n12 NCCL_IB_SL=3  [blanks]\n11! no NAME=value; NCCL skips it: \"word\"\n", 0,
			"NCCL_DEBUG=WARN NCCL_IB_SL=3  NCCL_IB_TC=$TC NCCL_NVLS_ENABLE=\"1\" # x NCCL_SOCKET_IFNAME==ens1f0"},
		{"nccl.conf, long value and BOM", ".nccl.conf", "\xef\xbb\xbfNCCL_NET=IB\nNCCL_HOSTID=" + strings.Repeat("x", 1100) + "\n", Conf,
			"1 NCCL_NET=IB [lost]\n2 NCCL_HOSTID=" + strings.Repeat("x", 1023) + "\n1! byte order mark; shells and NCCL take it for part of the first name\n2! value of 1100 bytes; NCCL takes 1023\n", 0, ""},

		{"shell", "", "#!/bin/bash\nexport NCCL_DEBUG=WARN NCCL_IB_HCA='^=mlx5_0' # why\nexport NCCL_ALGO=\"Ring,\"Tree; NCCL_NET=IB\nNCCL_NET=Socket\nexport NCCL_NET\nNCCL_PROTO=LL\nPATH=/x:$PATH\nunset NCCL_DEBUG\n", Shell,
			"2 NCCL_DEBUG=WARN [export]\n2 NCCL_IB_HCA=^=mlx5_0 [export] [quotes]\n3 NCCL_ALGO=Ring,Tree [export] [quotes]\n3 NCCL_NET=IB\n4 NCCL_NET=Socket\n6 NCCL_PROTO=LL [not exported]\n8 NCCL_DEBUG=? [unset]\n", 1,
			"NCCL_ALGO=Ring,Tree NCCL_IB_HCA=^=mlx5_0 NCCL_NET=Socket NCCL_PROTO=LL"},
		{"nothing is expanded", "", "export NCCL_IB_HCA=$HCAS NCCL_NET=${N:-IB} NCCL_ALGO=$(pick \"a)\" b) NCCL_PROTO=`x` NCCL_HOSTID='$x' NCCL_TOPO_FILE=~/t NCCL_DEBUG=\"a$\" NCCL_CROSS_NIC+=1\n", Shell,
			"1 NCCL_IB_HCA=? [export] [reference]\n1 NCCL_NET=? [export] [reference]\n1 NCCL_ALGO=? [export] [reference]\n1 NCCL_PROTO=? [export] [reference]\n1 NCCL_HOSTID=$x [export] [quotes]\n1 NCCL_TOPO_FILE=? [export] [tilde] [reference]\n1 NCCL_DEBUG=a$ [export] [quotes]\n1 NCCL_CROSS_NIC=? [export] [reference]\n", 0, ""},
		{"other ways to export", "", "declare -x NCCL_DEBUG=INFO\nsetenv NCCL_NET IB\nset -a\nNCCL_ALGO=Ring\nset +a\nexport NCCL_PROTO = LL\nexport NCCL_IB_TC= 106\n", Shell,
			"1 NCCL_DEBUG=INFO [export]\n2 NCCL_NET=IB [export]\n4 NCCL_ALGO=Ring\n6 NCCL_PROTO=LL [blanks] [lost]\n7 NCCL_IB_TC=106 [blanks] [lost]\n", 0, "NCCL_ALGO=Ring NCCL_DEBUG=INFO NCCL_NET=IB"},
		{"branches", "", "export NCCL_DEBUG=WARN\nif [ -n \"$X\" ]; then\n export NCCL_NET=IB\nfi\nf() { export NCCL_ALGO=Ring; }\ncase $H in\n a) export NCCL_PROTO=LL ;;\nesac\ntest -e x && export NCCL_IB_TC=1\nexport NCCL_IB_SL=1 && export NCCL_IB_GID_INDEX=3\nexport NCCL_CROSS_NIC=1\n", Shell,
			"1 NCCL_DEBUG=WARN [export]\n3 NCCL_NET=IB [export] [conditional]\n5 NCCL_ALGO=Ring [export] [conditional]\n7 NCCL_PROTO=LL [export] [conditional]\n9 NCCL_IB_TC=1 [export] [conditional]\n10 NCCL_IB_SL=1 [export]\n10 NCCL_IB_GID_INDEX=3 [export]\n11 NCCL_CROSS_NIC=1 [export]\n", 0,
			"NCCL_ALGO=? NCCL_CROSS_NIC=1 NCCL_DEBUG=WARN NCCL_IB_GID_INDEX=3 NCCL_IB_SL=1 NCCL_IB_TC=? NCCL_NET=? NCCL_PROTO=?"},
		{"launchers", "", "#!/bin/sh\n#SBATCH --export=ALL,NCCL_NET=IB\nmpirun -np 2 -x NCCL_DEBUG=INFO -x PATH \\\n  -x \"NCCL_ALGO=Ring\" -genv NCCL_PROTO LL ./a > NCCL_X=1\nsrun --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1 env NCCL_CROSS_NIC=1 x\nNCCL_IB_TC=106 ./b\nenv -i NCCL_IB_SL=1 ./c\ndocker run -e NCCL_HOSTID=a --env=NCCL_NVLS_ENABLE=0 img\n", Shell,
			"2 NCCL_NET=IB [launcher]\n3 NCCL_DEBUG=INFO [launcher]\n4 NCCL_ALGO=Ring [launcher] [quotes]\n4 NCCL_PROTO=LL [launcher]\n5 NCCL_IB_HCA=mlx5_0 [launcher]\n6 NCCL_IB_TC=106 [one command]\n7 NCCL_IB_SL=1 [one command]\n8 NCCL_HOSTID=a [launcher]\n8 NCCL_NVLS_ENABLE=0 [launcher]\n5! Slurm cuts the value of NCCL_IB_HCA before \"mlx5_1\": commas part the list of --export\n", 0, ""},
		{"one command", "", "NCCL_DEBUG=INFO ./all_reduce_perf -b 8\n", Shell, "1 NCCL_DEBUG=INFO [one command]\n", 0, ""},
		{"documents and quotes over lines", "", "export NCCL_NET=IB\ncat <<EOF > f\nNCCL_DEBUG=INFO\nEOF\nexport NCCL_HOSTID='a\nb' NCCL_ALGO=Ring\nexport NCCL_DEBUG=INFO X='\nNCCL_PROTO=LL\n", Shell,
			"1 NCCL_NET=IB [export]\n5 NCCL_HOSTID=a\nb [export] [quotes]\n6 NCCL_ALGO=Ring [export]\n7! ' is not closed; what follows is not read\n", 0, ""},

		{"Kubernetes", "", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - env:\n    - name: NCCL_DEBUG\n      value: \"INFO\" # c\n    - name: NCCL_IB_HCA\n      valueFrom:\n        fieldRef: x\n    - {name: NCCL_NET, value: 'IB'}\n    - name: NCCL_CROSS_NIC\n      value: 1\n    - name: PATH\n      value: /x\n    args: [\"export NCCL_ALGO=Ring\"]\n", YAML,
			"7 NCCL_DEBUG=INFO\n9 NCCL_IB_HCA=? [reference]\n11 NCCL_NET=IB\n13 NCCL_CROSS_NIC=1\n13! value of NCCL_CROSS_NIC is no string to YAML; Kubernetes wants quotes round it\n", 1, ""},
		{"ConfigMap and compose", "", "data:\n  NCCL_DEBUG: \"WARN\"\n  NCCL_NET: IB\n  NCCL_TOPO_FILE: |\n    x\nservices:\n  a:\n    environment:\n      - NCCL_ALGO=Ring\n      - \"NCCL_PROTO=LL\"\n      - NCCL_HOSTID=${HOST}\n", YAML,
			"2 NCCL_DEBUG=WARN\n3 NCCL_NET=IB\n4 NCCL_TOPO_FILE=? [reference]\n9 NCCL_ALGO=Ring\n10 NCCL_PROTO=LL\n11 NCCL_HOSTID=? [reference]\n", 0, ""},
	} {
		f := parse(t, c.name, c.text)
		if got := show(f); got != c.want || f.Dialect != c.dialect || f.Others != c.others {
			t.Errorf("%s: dialect %s, %d others\n%s\nwant\n%s", c.what, f.Dialect, f.Others, got, c.want)
		}
		if c.effective == "" {
			continue
		}
		var got []string
		for _, a := range f.Effective() {
			v, ok := a.Value.Get()
			if !ok {
				v = "?"
			}
			got = append(got, a.Name+"="+v)
		}
		if s := strings.Join(got, " "); s != c.effective {
			t.Errorf("%s: in effect %q, want %q", c.what, s, c.effective)
		}
	}
}

func TestRaw(t *testing.T) {
	f := parse(t, "", "NCCL_ALGO=\"Ring\" # x\n")
	if raw := f.Assignments[0].Raw; raw != `"Ring" # x` {
		t.Errorf("raw %q", raw)
	}
}

func TestLimits(t *testing.T) {
	f := parse(t, "", strings.Repeat("NCCL_DEBUG=INFO\n", maxAssignments+5))
	if len(f.Assignments) != maxAssignments || len(f.Issues) == 0 {
		t.Errorf("%d assignments, issues %v", len(f.Assignments), f.Issues)
	}
	f = parse(t, "", strings.Repeat("what\n", maxIssues+5))
	if len(f.Issues) != maxIssues {
		t.Errorf("%d issues", len(f.Issues))
	}
	// Neither depth nor repetition costs more than its length.
	for _, part := range []string{"<<a ", "sudo ", "{ ", "$(", "a=(", "'\"", "NCCL_A=1 "} {
		parse(t, "", "#!/bin/sh\n"+strings.Repeat(part, 200000))
	}
	f = parse(t, "", "NCCL_NET="+strings.Repeat("x", probe.MaxLine)+"\nNCCL_DEBUG=INFO\n")
	if got := show(f); got != fmt.Sprintf("2 NCCL_DEBUG=INFO\n1! line of %d bytes is not read\n", probe.MaxLine+9) {
		t.Error(got)
	}
}

// What is written must be read back as the same settings, in each dialect.
func TestWrittenReadsBack(t *testing.T) {
	settings := []Setting{
		{"NCCL_ALGO", "allreduce:tree;broadcast:ring", []string{"why $HOME", `"quoted" 'text'`}},
		{"NCCL_IB_HCA", "^=mlx5_8:1,mlx5_14", nil},
		{"NCCL_NET", "AWS Libfabric", nil},
		{"NCCL_PROTO", "^LL128", nil},
	}
	for _, d := range Dialects() {
		list := settings
		switch d {
		case Shell, Python, MPI:
			list = append(slices.Clone(list), Setting{"NCCL_HOSTID", `it's "$HOME" \ ~;#`, nil})
		case Slurm:
			list = settings[3:]
		}
		text, err := written(d, []string{"head: NCCL_DEBUG=INFO"}, list...)
		if err != nil {
			t.Fatal(err)
		}
		name, as := readAs(d)
		f := parse(t, name, text)
		if f.Dialect != as || len(f.Issues) > 0 || len(f.Assignments) != len(list) || !Sniff([]byte(text)) {
			t.Fatalf("%s: %+v\n%s", d, f, text)
		}
		for i, a := range f.Assignments {
			if a.Name != list[i].Name || a.Value != probe.Some(list[i].Value) {
				t.Errorf("%s: %+v, want %+v", d, a, list[i])
			}
		}
	}
}

// Of Python only assignments of texts to os.environ are read; what only a run
// would tell is not guessed.
func TestParsePython(t *testing.T) {
	text := "import os\nos.environ['NCCL_A'] = 'it\\'s' # why\nif x:\n    os.environ[\"NCCL_B\"]=\"1\"\nos.environ[\"NCCL_C\"] = str(1)\nos.environ['NCCL_D'] = '\\x41'\n" +
		"os.environ['NCCL_E'] == '1'\nos.environ[name] = '1'\nos.environ['FOO'] = '1'\n"
	f := parse(t, "x.py", text)
	want := "2 NCCL_A=it's [export]\n4 NCCL_B=1 [export] [conditional]\n5 NCCL_C=? [export] [reference]\n6 NCCL_D=? [export] [reference]\n"
	if got := show(f); got != want || f.Dialect != Python || f.Others != 1 {
		t.Errorf("%s %d\n%s\nwant\n%s", f.Dialect, f.Others, got, want)
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		"NCCL_DEBUG=INFO\n":                                                  true,
		"export NCCL_DEBUG=INFO\nexport A=1":                                 true,
		"CCL_NET_GDR_LEVEL=5\n":                                              true,
		"# c\n\nA=1\nB=2\n  NCCL_NET=IB\r\n":                                 true,
		"NCCL_DEBUG=INFO mpirun -np 2 \\\n -x NCCL_NET=IB \\\n ./a\n":        true,
		"mpirun -x NCCL_NET=IB ./a\n":                                        true,
		"#!/bin/bash\ncd /x\nmodule load a\nmpirun -x NCCL_NET=IB ./a\nls\n": true,
		"apiVersion: v1\nspec:\n - name: NCCL_NET\n   value: IB\n":           true,
		"env:\n - name: NCCL_NET\n   value: IB\n":                            true,

		"":                                       false,
		"FOO=1\n":                                false,
		"HCCL_DEBUG=1\n":                         false,
		"NCCL_DEBUG=INFO\x00\n":                  false,
		"#!/bin/sh\nexport NCCL_HOME=/x\nmake\n": false,
		"unset NCCL_DEBUG\n":                     false,
		"#!/bin/bash\nmake NCCL_X=\n":            false,
		"NCCL_DEBUG=INFO mpirun -np 2 ./a\nhost:1:1 [0] NCCL INFO x\nhost:1:1 [0] NCCL INFO y\n": false,
		"NCCL_VERSION = 1\nthis is a page of text\nand more\n":                                   false,
		"{\"NCCL_DEBUG\": \"INFO\"}\n":                                                           false,
		"<a>\nNCCL_DEBUG=INFO\n</a>\n":                                                           false,
		"host:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to INFO\n":                         false,
		"name: x\nversion: 2\n":                                                                  false,
	} {
		if got := Sniff([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The recorded and published files beside the checkout: env files are
// recognised, and nothing else is.
func TestShared(t *testing.T) {
	const shared = "../../../shared"
	n := 0
	for _, g := range []string{"cases/*/*", "corpus/*/*", "captures/*/*", "oracle/*"} {
		files, _ := filepath.Glob(filepath.Join(shared, g))
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			n++
			if want := strings.HasSuffix(file, ".env"); Sniff(raw) != want {
				t.Errorf("%s: recognised %v", file, !want)
			}
		}
	}
	if n == 0 {
		t.Skip("no files beside the checkout")
	}
	for file, want := range map[string]string{
		"026-exclusion-list-readmits-loopback/job.env": "1 NCCL_DEBUG=WARN [export]\n2 NCCL_SOCKET_IFNAME=^docker0 [export]\n",
		"030-hca-name-is-a-prefix/job.env":             "2 NCCL_IB_HCA=mlx5_1\n3 NCCL_DEBUG=INFO\n",
		"039-ll128-forced/job.env":                     "1 NCCL_DEBUG=WARN [export]\n2 NCCL_PROTO=LL128 [export]\n3 NCCL_SOCKET_IFNAME=hsn0 [export]\n",
		"044-name-lost-its-first-letter/module.env":    "1 NCCL_SOCKET_IFNAME=hsn\n2 NCCL_NET=AWS Libfabric\n3 NCCL_CROSS_NIC=1\n4 CCL_NET_GDR_LEVEL=PHB\n",
	} {
		raw, err := os.ReadFile(filepath.Join(shared, "cases", file))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := show(parse(t, filepath.Base(file), string(raw))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"NCCL_ALGO=allreduce:tree;x\n", "export NCCL_A='b' \\\n NCCL_C=\"$(x)\"\n", "- name: NCCL_X\n  value: '1'\n",
		"#!/bin/sh\nmpirun -x NCCL_A=1 <<E\nE\nif x; then\nNCCL_B=1 y && z || setenv NCCL_C d\nfi\n",
		"#SBATCH --export=NCCL_A=1,b\nexport A\n", "\xef\xbb\xbfNCCL_A=\x00\r\n", "NCCL_A=(1 2)\nunset NCCL_A", "\xff\xfeN\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		Sniff([]byte(text))
		for _, name := range []string{"x", "nccl.conf"} {
			file, err := Parse(name, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			checkFile(t, file, text)
			file.Effective()
		}
	})
}

// FuzzDialects reads every text in every dialect, whatever it looks like.
func FuzzDialects(f *testing.F) {
	f.Add("export NCCL_A=\"x\"'y'\\\nz ; (NCCL_B=1) # c\n")
	f.Add("name: NCCL_A\nvalue: |\n- {name: NCCL_B, value: 1}\n- NCCL_C=\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(*File){
			func(f *File) { f.shell(text) },
			func(f *File) { f.yaml(text) },
			func(f *File) { f.python(text) },
			func(f *File) { f.lines(text, f.plainLine) },
			func(f *File) { f.lines(text, f.confLine) },
		} {
			file := &File{exported: map[string]bool{}}
			read(file)
			checkFile(t, file, text)
		}
	})
}

func checkFile(t *testing.T, f *File, text string) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for _, a := range f.Assignments {
		if a.Line < 1 || a.Line > lines || !Matters(a.Name) {
			t.Errorf("%+v in %d lines", a, lines)
		}
		if !a.Value.Known() && !a.Has(MarkReference) && !a.Has(MarkUnset) {
			t.Errorf("unknown without a reason: %+v", a)
		}
	}
	for _, i := range f.Issues {
		if i.Line < 0 || i.Line > lines {
			t.Errorf("%+v in %d lines", i, lines)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat("export FOO=\"bar baz\"\nexport NCCL_DEBUG=INFO # c\nLD_LIBRARY_PATH=/a:/b\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse("x", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSniffLog(b *testing.B) {
	text := []byte(strings.Repeat("node1:1234:5678 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", 10000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Sniff(text) {
			b.Fatal("a log")
		}
	}
}

// A real shell must end up with the values that Parse states.
func TestShellAgrees(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	for _, text := range []string{
		"export NCCL_A=1 NCCL_B='a b' # c\n", "export NCCL_A=a\\ b\\\nc\n", `export NCCL_A="a\"b\$c\d"` + "\n",
		"NCCL_A=1; export NCCL_A\nNCCL_B=2\n", "export NCCL_A=a#b NCCL_B=#c\n", "export NCCL_A='it'\\''s'\n",
		"export NCCL_A=1\nunset NCCL_A\nexport NCCL_A=2\n", "export NCCL_A='x\ny'\nexport NCCL_B=z\n",
		": <<'E'\nNCCL_A=1\nE\nexport NCCL_A=2\n", "export NCCL_A=1 >/dev/null; export NCCL_B=a=b\n", "export NCCL_A=\"a$\" NCCL_B=$$x\n",
		"export NCCL_A=1 && export NCCL_B=2\n", "true | NCCL_A=1\nexport NCCL_A=^=x,y\n",
	} {
		f := &File{Dialect: Shell, exported: map[string]bool{}}
		f.shell(text)
		for _, a := range f.Effective() {
			want, known := a.Value.Get()
			out, err := exec.Command(sh, "-c", text+`printf %s "$`+a.Name+`"`).Output()
			if err != nil || known && string(out) != want {
				t.Errorf("%q: %s=%q, a shell says %q (%v)", text, a.Name, want, out, err)
			}
		}
	}
}
