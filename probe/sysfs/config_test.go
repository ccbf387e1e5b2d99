package sysfs

import (
	"encoding/binary"
	"io/fs"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// space is a configuration space with extended capabilities from 0x100 on: id
// and the 16-bit register at offset 6, one after the other.
func space(caps ...[2]uint16) []byte {
	out := make([]byte, configSize)
	binary.LittleEndian.PutUint32(out, 0x352a8086)
	for i, c := range caps {
		at := firstExtended + 0x20*i
		next := uint32(at + 0x20)
		if i == len(caps)-1 {
			next = 0
		}
		binary.LittleEndian.PutUint32(out[at:], next<<20|1<<16|uint32(c[0]))
		binary.LittleEndian.PutUint16(out[at+6:], c[1])
	}
	return out
}

func TestExtended(t *testing.T) {
	loop := space([2]uint16{1, 0})
	binary.LittleEndian.PutUint32(loop[firstExtended:], firstExtended<<20|1)
	for name, c := range map[string]struct {
		space []byte
		want  uint16
		ok    bool
	}{
		"first":        {space([2]uint16{capACS, 0x1d}), 0x1d, true},
		"after AER":    {space([2]uint16{1, 0xffff}, [2]uint16{capACS, 0x5c}), 0x5c, true},
		"none":         {space([2]uint16{1, 0}), 0, false},
		"all zero":     {make([]byte, configSize), 0, false},
		"a loop":       {loop, 0, false},
		"past the end": {append(make([]byte, 0x100), 0, 0, 0xf0, 0xff), 0, false},
	} {
		if got, ok := extended(c.space, capACS, acsControl); got != c.want || ok != c.ok {
			t.Errorf("%s: %#x %v, want %#x %v", name, got, ok, c.want, c.ok)
		}
	}
}

// withFile adds a file that is no text.
func withFile(root fstest.MapFS, name string, data []byte) fstest.MapFS {
	root[name] = &fstest.MapFile{Data: data, Mode: fs.FileMode(0o444)}
	return root
}

func TestConfigSpace(t *testing.T) {
	const port, gpu = "sys/devices/pci0000:14/0000:14:01.0", "sys/devices/pci0000:14/0000:14:01.0/0000:15:00.0"
	root := func() fstest.MapFS {
		return machine(t,
			pciFunction("pci0000:14/0000:14:01.0", "0x060400", "0x8086", "0x352a"),
			pciFunction("pci0000:14/0000:14:01.0/0000:15:00.0", "0x030200", "0x10de", "0x2330"))
	}
	cut := space([2]uint16{capACS, 0x1d})[:64]
	dead := make([]byte, configSize)
	for i := range dead {
		dead[i] = 0xff
	}
	for name, c := range map[string]struct {
		root fstest.MapFS
		acs  probe.Opt[uint16]
		ats  probe.Opt[bool]
	}{
		"redirect":      {withFile(root(), port+"/config", space([2]uint16{capACS, 0x1d})), probe.Some(uint16(0x1d)), probe.Opt[bool]{}},
		"no capability": {withFile(root(), port+"/config", space([2]uint16{1, 0})), probe.Some(uint16(0)), probe.Opt[bool]{}},
		"not root":      {withFile(root(), port+"/config", cut), probe.Opt[uint16]{}, probe.Opt[bool]{}},
		"no answer":     {withFile(root(), port+"/config", dead), probe.Opt[uint16]{}, probe.Opt[bool]{}},
		"not recorded":  {root(), probe.Opt[uint16]{}, probe.Opt[bool]{}},
		"ATS on":        {withFile(root(), gpu+"/config", space([2]uint16{capATS, 0x8000})), probe.Opt[uint16]{}, probe.Some(true)},
		"ATS off":       {withFile(root(), gpu+"/config", space([2]uint16{capATS, 0})), probe.Opt[uint16]{}, probe.Some(false)},
		"no ATS":        {withFile(root(), gpu+"/config", space([2]uint16{1, 0x8000})), probe.Opt[uint16]{}, probe.Some(false)},
	} {
		inv := mustRead(t, c.root, false)
		if got := at(t, inv, "0000:14:01.0").ACS; got != c.acs {
			t.Errorf("%s: ACS %v, want %v", name, got, c.acs)
		}
		if got := at(t, inv, "0000:15:00.0").ATS; got != c.ats {
			t.Errorf("%s: ATS %v, want %v", name, got, c.ats)
		}
	}
}

func TestErrorCounters(t *testing.T) {
	const gpu = "sys/devices/pci0000:14/0000:14:01.0"
	files := func(correctable string) fstest.MapFS {
		root := machine(t, pciFunction("pci0000:14/0000:14:01.0", "0x030200", "0x10de", "0x2330"))
		withFile(root, gpu+"/aer_dev_correctable", []byte(correctable))
		withFile(root, gpu+"/aer_dev_nonfatal", []byte("Undefined 0\nUnsupReq 7\nTOTAL_ERR_NONFATAL 9\n"))
		return withFile(root, gpu+"/aer_dev_fatal", []byte("TLP 0\nTOTAL_ERR_FATAL 1\n"))
	}
	inv := mustRead(t, files("RxErr 5\nNonFatalErr 3\nTOTAL_ERR_COR 8\n"), false)
	want := &probe.PCIeCounters{Correctable: probe.Some[uint64](5), NonFatal: probe.Some[uint64](2), Fatal: probe.Some[uint64](1)}
	if diff := cmp.Diff(want, at(t, inv, "0000:14:01.0").Errors, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Error(diff)
	}
	inv = mustRead(t, files("RxErr many\nTOTAL_ERR_COR x\n"), false)
	wantGap(t, inv, "aer_dev_correctable")
	if at(t, inv, "0000:14:01.0").Errors.Correctable.Known() {
		t.Error("a count out of no number")
	}
	if at(t, mustRead(t, machine(t, pciFunction("pci0000:14/0000:14:01.0", "0x030200", "0x10de", "0x2330")), false), "0000:14:01.0").Errors != nil {
		t.Error("counters without files")
	}
}

func TestHostSettings(t *testing.T) {
	base := "sys/devices/system/x/\n"
	for name, c := range map[string]struct {
		root  string
		peers probe.Opt[[]string]
		open  probe.Opt[bool]
		cpus  probe.CPUSet
	}{
		"nothing recorded": {base, probe.Opt[[]string]{}, probe.Opt[bool]{}, ""},
		"no such module":   {base + "sys/kernel/mm/transparent_hugepage/enabled = never", probe.Some([]string{}), probe.Opt[bool]{}, ""},
		"peer memory":      {base + "sys/kernel/mm/memory_peers/nv_mem/version = 1.3", probe.Some([]string{"nv_mem"}), probe.Opt[bool]{}, ""},
		"closed modules":   {base + "proc/driver/nvidia/version = NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Release Build", probe.Opt[[]string]{}, probe.Some(false), ""},
		"open modules":     {base + "proc/driver/nvidia/version = NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build", probe.Opt[[]string]{}, probe.Some(true), ""},
		"process":          {base + "proc/self/status = Cpus_allowed_list:\t0-3,8", probe.Opt[[]string]{}, probe.Opt[bool]{}, "0-3,8"},
		"control group":    {base + "sys/fs/cgroup/cpuset.cpus.effective = 4-5", probe.Opt[[]string]{}, probe.Opt[bool]{}, "4-5"},
	} {
		s := mustRead(t, machine(t, c.root), false).Settings
		if diff := cmp.Diff(c.peers, s.PeerMemory, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" || s.OpenModule != c.open || s.CPUs != c.cpus {
			t.Errorf("%s: %v %v %q", name, s.PeerMemory, s.OpenModule, s.CPUs)
		}
	}
}

func TestBondAndPortCounters(t *testing.T) {
	inv := mustRead(t, machine(t,
		"sys/class/net/bond0 -> ../../devices/virtual/net/bond0",
		"sys/devices/virtual/net/bond0/bonding/mode = 802.3ad 4",
		"sys/devices/virtual/net/bond0/bonding/slaves = ens1f1 ens1f0",
		pciFunction("pci0000:14/0000:14:01.0", "0x020700", "0x15b3", "0x1021"),
		"sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:14/0000:14:01.0/infiniband/mlx5_0",
		"sys/devices/pci0000:14/0000:14:01.0/infiniband/mlx5_0/ports/1/counters/symbol_error = 12",
		"sys/devices/pci0000:14/0000:14:01.0/infiniband/mlx5_0/ports/1/counters/link_downed = N/A (no PMA)",
		"sys/devices/pci0000:14/0000:14:01.0/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err = 3",
		"sys/devices/pci0000:14/0000:14:01.0/infiniband/mlx5_0/ports/1/counters/port_xmit_wait = 9",
	), false)
	if diff := cmp.Diff(&probe.Bond{Mode: "802.3ad", Slaves: []string{"ens1f0", "ens1f1"}}, inv.NetDevs[0].Bond); diff != "" {
		t.Error(diff)
	}
	want := []probe.Counter{{Name: "local_ack_timeout_err", Value: 3}, {Name: "symbol_error", Value: 12}}
	if diff := cmp.Diff(want, inv.HCAs[0].Ports[0].Counters); diff != "" {
		t.Error(diff)
	}
}
