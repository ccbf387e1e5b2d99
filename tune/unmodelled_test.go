package tune_test

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

func TestUnmodelled(t *testing.T) {
	for _, c := range []struct {
		name, source string
		change       func(*probe.Inventory)
		set          string
		hosts        int
		want         string
	}{
		{"nothing", "example:h100x8", nil, "", 2, ""},
		{"CollNet", "example:h100x8", nil, "NCCL_COLLNET_ENABLE=1", 1, "CollNet"},
		{"CollNet off", "example:h100x8", nil, "NCCL_COLLNET_ENABLE=0", 1, ""},
		{"a rail", "example:h100x8", func(inv *probe.Inventory) { inv.HCAs[3].Extra = []probe.Attr{{Name: "rail", Value: "3"}} }, "", 2, "rails and planes"},
		{"no rail", "example:h100x8", func(inv *probe.Inventory) { inv.HCAs[3].Extra = []probe.Attr{{Name: "rail", Value: "-1"}} }, "", 2, ""},
		{"rails of one node", "example:h100x8", func(inv *probe.Inventory) { inv.HCAs[3].Extra = []probe.Attr{{Name: "rail", Value: "3"}} }, "", 1, ""},
		{"Blackwell", "example:b200x8", nil, "", 2, "NVLS channels on Blackwell"},
		{"Blackwell, one node", "example:b200x8", nil, "", 1, ""},
		{"Blackwell, told how many", "example:b200x8", nil, "NCCL_NVLS_NCHANNELS=16", 2, ""},
	} {
		inv, err := open.ReadHost(c.source)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(inv)
		}
		var o tune.ModelOptions
		o.Search.Hosts = c.hosts
		if name, value, ok := strings.Cut(c.set, "="); ok {
			o.Set(name, value)
		}
		p, err := tune.Predict(inv, o)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(p.Unmodelled(), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want one with %q", c.name, got, c.want)
		}
	}
}
