package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ncclmap/ncclmap/"

// layer ranks packages: a package may only import packages of lower rank, and
// readers (rank 2) not each other. The last matching row counts.
var layer = []struct {
	pattern string
	rank    int
}{
	{`probe`, 0},
	{`fixtures`, 1}, {`fixtures/.*`, 2}, {`fixtures/golden`, 0},
	{`probe/ncclenv`, 1},
	{`probe/.*`, 2},
	{`probe/ncclenv`, 1},
	{`probe/open`, 3},
	{`probe/live`, 4},
	{`graph`, 5},
	{`graph/search`, 6},
	{`graph/model`, 7},
	{`graph/expect`, 8},
	{`graph/check`, 8},
	{`tune/compare`, 9},
	{`tune`, 10},
	{`render/dot`, 1},
	{`render/graphviz`, 1},
	{`render/text`, 11},
	{`render/chart`, 11},
	{`render/html`, 12},
	{`render`, 13},
	{`cmd/.*`, 20},
}

// homes names the only package that may import something.
var homes = map[string]string{
	"github.com/NVIDIA/go-nvml/":   "probe/nvml",
	"github.com/jaypipes/ghw":      "probe/host",
	"github.com/Mellanox/rdmamap":  "probe/sysfs",
	"github.com/goccy/go-graphviz": "cmd/ncclmap-graphviz",
	"gonum.org/v1/plot":            "render/chart",
	"C":                            "tune/measure",
}

func rankOf(pkg string) int {
	rank := -1
	for _, l := range layer {
		if regexp.MustCompile(`^` + l.pattern + `$`).MatchString(pkg) {
			rank = l.rank
		}
	}
	return rank
}

// The house plan: imports go one way, heavy or special packages stay in their
// rooms, and only cmd reads the environment or exits.
func TestLayout(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.Command("go", "list", "-C", root, "-json=ImportPath,Imports,Dir,GoFiles,CgoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath, Dir            string
			Imports, GoFiles, CgoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(p.ImportPath, module)
		rank := rankOf(pkg)
		if rank < 0 {
			t.Errorf("%s has no place in the layout", pkg)
		}
		for _, imp := range p.Imports {
			for what, home := range homes {
				if (imp == what || strings.HasSuffix(what, "/") && strings.HasPrefix(imp, what) || strings.HasPrefix(imp, what+"/")) && pkg != home {
					t.Errorf("%s imports %s, which belongs to %s only", pkg, imp, home)
				}
			}
			dep, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if r := rankOf(dep); r >= rank && !(pkg == "fixtures" && dep == "probe") {
				t.Errorf("%s imports %s: imports go one way (rank %d to %d)", pkg, dep, rank, r)
			}
			if strings.HasPrefix(pkg, "render/") && strings.HasPrefix(dep, "probe/") && dep != "probe/ncclenv" {
				t.Errorf("%s imports %s: a drawer knows nothing of discovery", pkg, dep)
			}
		}
		// fixtures/golden serves tests alone and reads UPDATE_GOLDEN.
		if !strings.HasPrefix(pkg, "cmd/") && pkg != "fixtures/golden" {
			for _, f := range slices.Concat(p.GoFiles, p.CgoFiles) {
				text, err := os.ReadFile(filepath.Join(p.Dir, f))
				if err != nil {
					t.Fatal(err)
				}
				for _, banned := range []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.Exit", "func init()"} {
					if bytes.Contains(text, []byte(banned)) {
						t.Errorf("%s/%s uses %s: no hidden inputs below cmd", pkg, f, banned)
					}
				}
			}
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"probe", "graph", "tune", "render", "cmd", "fixtures", "bin", "out"}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(allowed, e.Name()) {
			t.Errorf("top-level folder %s is not in the layout", e.Name())
		}
	}
}
