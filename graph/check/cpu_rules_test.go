package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestCPUCgroupNarrow(t *testing.T) {
	allowed := func(cpus probe.CPUSet) func(*host) {
		return func(h *host) {
			h.inv.Settings.CPUs = cpus
			h.inv.Settings.Origins = []probe.Origin{{Source: probe.SourceSysfs, Where: "proc/self/status", Fields: []string{"allowed_cpus"}}}
			for i := range h.inv.NUMA {
				h.inv.NUMA[i].Origins = h.inv.Settings.Origins
			}
		}
	}
	affinity := func(cpus probe.CPUSet) func(*host) {
		return func(h *host) {
			h.inv.GPUs[0].CPUAffinity = cpus
			h.inv.GPUs[0].Origins = []probe.Origin{{Source: probe.SourceSMITopo, Where: "topo.txt:2"}}
		}
	}
	both := "gpu:0000:11:00.0 gpu:0000:21:00.0"
	testRule(t, "cpu-cgroup-narrow", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "all CPUs", host: l40s(2).with(allowed("0-63"))},
		{name: "two for each", host: l40s(2).with(allowed("30-33"))},
		{name: "three for two GPUs", host: l40s(2).with(allowed("0-2")), want: []string{"warning sure host:pcie " + both}, says: []string{"at least 4 CPUs for 2 GPUs", "3 CPUs: 0-2"}},
		{name: "none on the node of one GPU", host: l40s(2).with(allowed("0-15")), want: []string{"warning sure gpu:0000:21:00.0 host:pcie"}},
		{name: "not known", host: l40s(2)},
		{name: "affinity of one CPU", host: matrix(2, nil, "X SYS", "- X").with(affinity("0")), want: []string{"warning likely gpu:0 host:localhost"}},
		{name: "affinity of a socket", host: matrix(2, nil, "X SYS", "- X").with(affinity("0-13"))},
	})
}

func TestCPUNPS1P2P(t *testing.T) {
	cpu := func(vendor string, packages ...int) func(*host) {
		return func(h *host) {
			by := []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/devices/system/node"}}
			h.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: vendor, Name: "AMD EPYC 9354", Origins: by}}
			h.inv.NUMA = nil
			for i, p := range packages {
				h.inv.NUMA = append(h.inv.NUMA, probe.NUMANode{ID: i, CPUs: probe.CPUSet([]string{"0-31", "32-63"}[i%2]), Package: probe.Some(p), Origins: by})
			}
		}
	}
	amd := "AuthenticAMD"
	testRule(t, "cpu-nps1-p2p", []ruleCase{
		{name: "healthy", host: h100x8().with(cpu(amd, 0, 1))},
		{name: "NPS1", host: l40s(4).with(cpu(amd, 0, 1)), want: []string{"info sure host:pcie"}, says: []string{"NPS4"}},
		{name: "NPS2", host: l40s(4).with(cpu(amd, 0, 0, 1, 1))},
		{name: "Intel", host: l40s(4).with(cpu("GenuineIntel", 0, 1))},
		{name: "three GPUs", host: l40s(3).with(cpu(amd, 0, 1))},
		{name: "guest", host: l40s(4).with(cpu(amd, 0, 1)).guest()},
	})
}
