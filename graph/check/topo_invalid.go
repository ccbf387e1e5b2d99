package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoInvalid = Rule{
	ID:    "topo-invalid",
	Title: "NCCL does not read this topology file as it is meant",
	Doc: `Fires for an NCCL topology file that NCCL's own parser refuses or reads differently: an
XML declaration, a root that is not <system version="1">, a <cpu> without numaid, more
than 16 attributes, more than 256 elements (NCCL 2.21 and later), a link_speed that is no
text of NCCL's table. Beside the machine itself also: a <pci> with an invented id and no
class; with NCCL 2.9.6 one without vendor, device and subsystem.

critical; warning for a speed, of which NCCL takes Gen3.

Silent for what sysfs or the CPU completes, comments, and text behind a known speed.`,
	Run: runTopoInvalid,
}

func runTopoInvalid(p *Pass) {
	c, ok := p.claims()
	if !ok {
		return
	}
	faults := append([]probe.FileFault{}, c.Refused...)
	if c.beside && len(p.Inv.PCI) > 0 {
		for _, d := range c.PCI {
			line := probe.OriginOf(d.Origins, "addr").Where
			switch {
			case p.facts.pci[d.Addr] != nil:
			case !d.Class.Known():
				faults = append(faults, probe.FileFault{File: line, Msg: fmt.Sprintf("<pci> %s is no function of this host and has no class", d.Addr)})
			case p.nccl() == "2.9.6" && !(d.Vendor.Known() && d.Device.Known() && d.SubVendor.Known() && d.SubDevice.Known()):
				faults = append(faults, probe.FileFault{File: line, Msg: fmt.Sprintf("<pci> %s is no function of this host and has no vendor, device or subsystem, which NCCL 2.9.6 needs", d.Addr)})
			}
		}
	}
	if len(faults) == 0 {
		return
	}
	f := Finding{
		Severity: Warning,
		Subjects: []string{c.key()},
		Expected: "a file that NCCL reads as it stands",
		Fix:      fmt.Sprintf("whoever keeps %s: correct these places; ncclmap convert writes the file as NCCL does", c.file),
	}
	var observed []string
	for _, x := range faults {
		text := x.Msg
		if x.Assumes != "" {
			text += ": NCCL takes " + x.Assumes
		} else {
			f.Severity = Critical
		}
		where := x.File
		if x.Line > 0 {
			where = fmt.Sprintf("%s:%d", x.File, x.Line)
		}
		f.Evidence = append(f.Evidence, Evidence{Source: probe.SourceNCCLXML, Where: where, Fact: text})
		if len(observed) < 3 {
			observed = append(observed, where+": "+text)
		}
	}
	if n := len(faults) - len(observed); n > 0 {
		observed = append(observed, count(n, "more place", "more places"))
	}
	f.Observed = strings.Join(observed, "; ")
	p.Report(f)
}
