package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// masks gives the <cpu> elements of a topology file beside a host.
func masks(sets ...probe.CPUSet) func(*host) {
	return func(h *host) {
		h.claims("topo.xml", func(c *host) {
			for i, s := range sets {
				c.inv.NUMA = append(c.inv.NUMA, probe.NUMANode{ID: i, CPUs: s, Origins: []probe.Origin{{Source: probe.SourceNCCLXML, Where: fmt.Sprintf("topo.xml:%d", i+2)}}})
			}
		})
	}
}

func TestCPUMaskOverlap(t *testing.T) {
	alone := h100x8().asFile().with(func(h *host) { h.inv.NUMA[1].CPUs = "16-47" })
	for i := range alone.inv.NUMA {
		alone.inv.NUMA[i].Origins = alone.inv.PCI[0].Origins
	}
	testRule(t, "cpu-mask-overlap", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "apart", host: h100x8().with(masks("0-31", "32-63"))},
		{name: "sharing", host: h100x8().with(masks("0-31", "31-63")), want: []string{"warning sure numa:0 numa:1 file:topo.xml"}},
		{name: "the same", host: h100x8().with(masks("0-31", "0-31", "64-95")), want: []string{"critical sure numa:0 numa:1 file:topo.xml"}, says: []string{"CPUs 0-31", "cpumap"}},
		{name: "one <cpu>", host: h100x8().with(masks("0-31"))},
		{name: "no masks", host: h100x8().with(masks("", ""))},
		{name: "file alone", host: alone, want: []string{"warning sure numa:0 numa:1 file:topo.xml"}},
	})
}

func TestCPUMaskMismatch(t *testing.T) {
	origins := func(h *host) {
		for i := range h.inv.NUMA {
			h.inv.NUMA[i].Origins = []probe.Origin{{Source: probe.SourceSysfs, Where: fmt.Sprintf("sys/devices/system/node/node%d", i)}}
		}
	}
	container := func(h *host) {
		h.inv.Settings.Container = []probe.Mark{{What: "docker"}}
		h.inv.NUMA[0].CPUs = "0-3"
	}
	testRule(t, "cpu-mask-mismatch", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "equal", host: h100x8().with(origins).with(masks("0-31", "32-63"))},
		{name: "exchanged", host: h100x8().with(origins).with(masks("32-63", "0-31")), want: []string{"warning sure numa:0 numa:1 file:topo.xml"}, says: []string{"node 0: 32-63, the kernel says 0-31"}},
		{name: "one node differs", host: h100x8().with(origins).with(masks("0-31", "32-64")), want: []string{"warning sure numa:1 file:topo.xml"}},
		{name: "node that the host lacks", host: h100x8().with(origins).with(masks("0-31", "32-63", "64-95"))},
		{name: "container sees a part", host: h100x8().with(origins).with(container).with(masks("0-31", "32-63"))},
		{name: "host's nodes unknown", host: h100x8().with(func(h *host) { h.inv.NUMA = nil }).with(masks("0-31", "32-63")), gap: "NUMA nodes are not in the sources"},
		{name: "overlap explains it", host: h100x8().with(origins).with(masks("0-31", "0-31"))},
	})
}
