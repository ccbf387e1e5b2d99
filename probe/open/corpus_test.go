package open

import (
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

const shared = "../../../shared"

// refusedCorpus are the files that hold nothing to read, and what is said of them.
var refusedCorpus = map[string]string{
	"ib/topograph-ibnetdiscover-bad.out":         "ibnetdiscover output, which is not read yet", // and cut off
	"nccl-tests/nccl1801-gb200-ring-vs-tree.txt": "a table of bandwidths that somebody made of nccl-tests results",
	"topo-m/nccl-371-v100pcie8-phb.txt":          "nccl-371-v100pcie8-phb.txt:1: columns name several GPUs each: a summary written by hand",
}

// Every published file is read, or refused for its own reason.
func TestCorpus(t *testing.T) {
	dir := filepath.Join(shared, "corpus")
	files, read := 0, 0
	refused := maps.Clone(refusedCorpus)
	_ = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(file) == dir { // README.md and INDEX.tsv
			return nil
		}
		files++
		name, _ := filepath.Rel(dir, file)
		c, sources, err := Read([]string{file}, nil)
		switch why := refused[filepath.ToSlash(name)]; {
		case why == "" && err != nil:
			t.Error(err)
		case why != "" && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s: %v, want %s", name, err, why)
		case err == nil:
			read++
			if c.NoJob() && len(c.Hosts) == 0 || len(sources) == 0 {
				t.Errorf("%s: nothing in it", name)
			}
		}
		delete(refused, filepath.ToSlash(name))
		return nil
	})
	if files == 0 {
		t.Skip("../shared is not here")
	}
	if len(refused) > 0 {
		t.Errorf("not there: %v", refused)
	}
	if read*100 <= files*95 {
		t.Errorf("%d of %d files are read, want more than 95 %%", read, files)
	}
	t.Logf("%d of %d files are read", read, files)
}
