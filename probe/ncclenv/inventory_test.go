package ncclenv

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestInventory(t *testing.T) {
	f, err := Parse("job.env", strings.NewReader("export NCCL_DEBUG=WARN\nunset NCCL_DEBUG\nexport NCCL_NET=$NET\n"))
	if err != nil {
		t.Fatal(err)
	}
	inv := f.Inventory()
	if len(inv.Env) != 3 || inv.Env[2].Raw != "$NET" || inv.Env[2].Marks[1] != string(MarkReference) || inv.Env[1].Name != "NCCL_DEBUG" || inv.Env[1].Value != "" || inv.Env[1].Marks[0] != string(MarkUnset) || inv.Env[1].Origins[0].Where != "job.env:2" {
		t.Errorf("%+v", inv.Env)
	}
	if len(inv.Gaps) != 1 || inv.Gaps[0].What != "setting NCCL_NET" {
		t.Errorf("%+v", inv.Gaps)
	}
}

// Of an environment, only what concerns NCCL is kept.
func TestEnvironment(t *testing.T) {
	inv := Environment([]string{"PATH=/bin", "NCCL_NET=IB=x", "AWS_SECRET_ACCESS_KEY=s", "CCL_IB_HCA=mlx5_0", "NCCL_ALGO=", "TORCH_NCCL_BLOCKING_WAIT=1", "broken"})
	var got []string
	for _, e := range inv.Env {
		got = append(got, e.Name+"="+e.Value+" "+e.How)
	}
	if want := "CCL_IB_HCA=mlx5_0 process,NCCL_ALGO= process,NCCL_NET=IB=x process"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := inv.Validate(); err != nil {
		t.Error(err)
	}
}

// NCCL reads the file that NCCL_CONF_FILE names as nccl.conf, whatever its name.
func TestParseConf(t *testing.T) {
	f, err := ParseConf("/home/a/my.sh", strings.NewReader("export NCCL_DEBUG=WARN\nNCCL_NET=\"IB\"\n"))
	if err != nil || f.Dialect != Conf || len(f.Assignments) != 2 || !f.Assignments[0].Has(MarkLost) || f.Assignments[1].Value != probe.Some(`"IB"`) {
		t.Errorf("%v %+v", err, f)
	}
}
