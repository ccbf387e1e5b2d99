package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoFileMismatch = Rule{
	ID:    "topo-file-mismatch",
	Title: "Topology file is of another machine",
	Doc: `Fires where an NCCL topology file that lists GPUs leaves out a GPU or RDMA adapter of the
host, or lists GPUs or network functions that the host does not have.

critical if no GPU of the host is in the file; warning otherwise.

Silent about bridges, whose ids may be invented, about files without any device, and in
a container about devices of the file that are not visible here.`,
	Run: runTopoFileMismatch,
}

func runTopoFileMismatch(p *Pass) {
	c, ok := p.claims()
	if !ok || !c.beside {
		return
	}
	leaves := c.leaves()
	if len(p.Inv.PCI) == 0 || len(leaves) == 0 {
		return
	}
	lost := p.unplaced(c)
	f := Finding{Severity: Warning, Expected: "the GPUs and RDMA adapters of this host, by their bus ids"}
	matched := 0
	var missing, foreign []string
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		switch {
		case n.PCI == nil:
		case c.at[n.PCI.Addr] != nil:
			if n.GPU != nil {
				matched++
			}
		case n.HCA != nil && usability(n.HCA) == no, slices.Contains(lost, n.PCI):
		default:
			f.Subjects = append(f.Subjects, n.Key)
			missing = append(missing, n.PCI.Addr.String())
			f.Evidence = append(f.Evidence, evidence(n.PCI.Origins, "addr", "", "%s is at %s", n.Label, n.PCI.Addr))
		}
	}
	if len(c.GPUs) == 0 && matched == 0 {
		return // the file places no GPU
	}
	for _, d := range leaves {
		if p.facts.pci[d.Addr] != nil || !deviceOfNCCL(d) || len(p.Inv.Settings.Container) > 0 {
			continue
		}
		f.Subjects = append(f.Subjects, "pci:"+d.Addr.String())
		foreign = append(foreign, d.Addr.String())
		f.Evidence = append(f.Evidence, evidence(d.Origins, "addr", "", "%s stands in the file", d.Addr))
	}
	if len(missing)+len(foreign) == 0 {
		return
	}
	if matched == 0 && len(p.facts.gpus) > 0 {
		f.Severity = Critical
	}
	var observed []string
	if len(missing) > 0 {
		observed = append(observed, fmt.Sprintf("%s leaves out %s", c.file, strings.Join(missing, ", ")))
	}
	if len(foreign) > 0 {
		observed = append(observed, fmt.Sprintf("%s lists %s, which the host does not have", c.file, strings.Join(foreign, ", ")))
	}
	f.Observed = strings.Join(observed, "; ")
	f.Subjects = append(f.Subjects, c.key())
	f.Fix = fmt.Sprintf("whoever keeps %s: write this host's bus ids (lspci -D) in place of the others; on a cloud, take the provider's file for this instance type", c.file)
	p.Report(f)
}

// deviceOfNCCL reports a function of a file that stands for a GPU or a network
// adapter; one without a class counts, since NCCL asks sysfs for it.
func deviceOfNCCL(d *probe.PCIDevice) bool {
	return !d.Class.Known() || d.Class.Or(0).IsGPU() || d.Class.Or(0).IsNIC()
}
