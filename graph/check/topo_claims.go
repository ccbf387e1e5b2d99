package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// claims is what an NCCL topology file says of the host.
type claims struct {
	*probe.Inventory
	file   string // its base name
	beside bool   // the machine itself was seen too
	at     map[probe.BDF]*probe.PCIDevice
}

// key is the file's subject.
func (c *claims) key() string { return "file:" + c.file }

// claims returns the topology file among the sources: one beside the machine, or
// one that alone describes it. ok is false where there is none.
func (p *Pass) claims() (c *claims, ok bool) {
	c = &claims{Inventory: p.Inv}
	if f := p.Inv.TopoFile; f != nil {
		c.Inventory, c.file, c.beside = f.Claims, f.File, true
	} else {
		for _, d := range p.Inv.PCI {
			if i := slices.IndexFunc(d.Origins, func(o probe.Origin) bool { return o.Source == probe.SourceNCCLXML }); i >= 0 {
				c.file, _, _ = strings.Cut(d.Origins[i].Where, ":")
				break
			}
		}
	}
	if c.file == "" {
		return nil, false
	}
	c.at = make(map[probe.BDF]*probe.PCIDevice, len(c.PCI))
	for i := range c.PCI {
		c.at[c.PCI[i].Addr] = &c.PCI[i]
	}
	return c, true
}

// leaves lists the functions of the file that are no bridges: those of a bridge's
// class, and those that something else hangs on.
func (c *claims) leaves() []*probe.PCIDevice {
	above := map[probe.BDF]bool{}
	for _, d := range c.PCI {
		if up, ok := d.Parent.Get(); ok {
			above[up] = true
		}
	}
	var out []*probe.PCIDevice
	for i := range c.PCI {
		if d := &c.PCI[i]; !above[d.Addr] && !d.Class.Or(0).IsPCIBridge() && d.Class.Or(0) != probe.ClassBridgeHost {
			out = append(out, d)
		}
	}
	return out
}
