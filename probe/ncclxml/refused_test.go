package ncclxml

import (
	"strings"
	"testing"
)

// What NCCL does not read as it is meant goes with the facts.
func TestRefusedInInventory(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    []string // "line message"
		assumes string
	}{
		"healthy":         {`<system version="1"><cpu numaid="0"><pci busid="0000:17:00.0" link_speed="32.0 GT/s PCIe"/></cpu></system>`, nil, ""},
		"text behind":     {`<system version="1"><cpu numaid="0"><pci busid="0000:17:00.0" link_speed="32 GT/s PCIe/s"/></cpu></system>`, nil, ""},
		"declaration":     {"<?xml version=\"1.0\"?>\n<system version=\"1\"><cpu numaid=\"0\"/></system>", []string{"1 an XML declaration"}, ""},
		"no version":      {`<system><cpu numaid="0"/></system>`, []string{"1 <system> without version"}, ""},
		"no numaid":       {"<system version=\"1\">\n<cpu/></system>", []string{"2 a <cpu> without numaid"}, ""},
		"unknown speed":   {"<system version=\"1\"><cpu numaid=\"0\">\n<pci busid=\"0000:17:00.0\" link_speed=\"Gen5\"/></cpu></system>", []string{`2 link_speed "Gen5" of 0000:17:00.0`}, "Gen3"},
		"256 elements":    {elements(254), nil, ""},
		"257 elements":    {elements(255), []string{"1 257 elements"}, ""},
		"empty attribute": {`<system version="1"><cpu numaid="0"><pci busid="0000:17:00.0" link_speed=""/></cpu></system>`, nil, ""},
	} {
		doc, err := Decode("topo.xml", strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		inv, err := doc.Inventory()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(inv.Refused) != len(c.want) {
			t.Errorf("%s: %v, want %q", name, inv.Refused, c.want)
			continue
		}
		for i, f := range inv.Refused {
			line, msg, _ := strings.Cut(c.want[i], " ")
			if f.File != "topo.xml" || line != string(rune('0'+f.Line)) || !strings.HasPrefix(f.Msg, msg) || f.Assumes != c.assumes {
				t.Errorf("%s: %+v, want %q", name, f, c.want[i])
			}
		}
		if extra := len(inv.PCI) > 0 && len(inv.PCI[0].Extra) > 0; extra != (name == "empty attribute") {
			t.Errorf("%s: extra %v", name, extra)
		}
	}
}

// elements is a file with so many <nic> in one <cpu>.
func elements(n int) string {
	return `<system version="1"><cpu numaid="0">` + strings.Repeat("<nic/>", n) + "</cpu></system>"
}
