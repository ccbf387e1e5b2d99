package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	moduleFolder = "sys/module"
	iommuFolder  = "sys/class/iommu"
	dmiFolder    = "sys/class/dmi/id"
	cmdlineFile  = "proc/cmdline"
	peersFolder  = "sys/kernel/mm/memory_peers"
	driverFile   = "proc/driver/nvidia/version"
	statusFile   = "proc/self/status"
	cpusetFile   = "sys/fs/cgroup/cpuset.cpus.effective"
)

// modulesOfInterest are the kernel modules that decide how NCCL may move data:
// the GPU driver, GPUDirect (RDMA, copies, storage), and the RDMA stack.
func modulesOfInterest() []string {
	return []string{
		"nvidia", "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "gdrdrv", "nvidia_fs",
		"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "mlx5_core", "mlx5_ib", "bnxt_re", "efa", "irdma",
	}
}

// host reads the names of the machine and its kernel.
func (r *reader) host() {
	h := &r.inv.Host
	h.Name = r.always("host name", "proc/sys/kernel/hostname")
	h.Kernel = r.always("kernel release", "proc/sys/kernel/osrelease")
	if h.Name != "" || h.Kernel != "" {
		h.Origins = []probe.Origin{origin("proc/sys/kernel")}
	}
}

// product reads the DMI identity. Machines without DMI (most Arm boards) have no
// such folder.
func (r *reader) product() {
	if !r.isDir(dmiFolder) {
		if !r.live {
			r.notRecorded("product name", dmiFolder)
		}
		return
	}
	p := &r.inv.Product
	p.Vendor = r.str("product", dmiFolder, "sys_vendor")
	p.Name = r.str("product", dmiFolder, "product_name")
	p.Board = r.str("product", dmiFolder, "board_name")
	if p.Vendor != "" || p.Name != "" || p.Board != "" {
		p.Origins = []probe.Origin{origin(dmiFolder)}
	}
}

// kernel reads the settings that are no device.
func (r *reader) kernel() {
	s := &r.inv.Settings
	if r.isDir("proc") {
		if s.Cmdline = r.always("kernel command line", cmdlineFile); s.Cmdline != "" {
			s.Origins = append(s.Origins, origin(cmdlineFile, "cmdline"))
		}
	}
	if names, ok := r.folder("IOMMU", iommuFolder, false); ok || r.live {
		s.IOMMU = probe.Some(len(names) > 0)
		s.Origins = append(s.Origins, origin(iommuFolder, "iommu_active"))
	}
	r.modules()
	r.peerMemory()
	r.openModule()
	r.allowedCPUs()
}

// peerMemory reads which modules give RDMA adapters access to GPU memory. The
// folder is absent where no such module is loaded.
func (r *reader) peerMemory() {
	if !r.live && !r.isDir(path.Dir(peersFolder)) {
		return
	}
	names, err := r.list(peersFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.gap("peer memory modules", peersFolder, err)
		return
	}
	clients := []string{}
	for _, n := range names {
		clients = append(clients, plain(n))
	}
	s := &r.inv.Settings
	s.PeerMemory = probe.Some(clients)
	s.Origins = append(s.Origins, origin(peersFolder, "peer_memory"))
}

// openModule reads whose kernel modules drive the GPUs, from "NVRM version:
// NVIDIA UNIX Open Kernel Module for x86_64  570.86.15 …".
func (r *reader) openModule() {
	text, err := r.text(driverFile, maxAttr)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.gap("NVIDIA kernel module", driverFile, err)
		}
		return
	}
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "Kernel Module") {
		s := &r.inv.Settings
		s.OpenModule = probe.Some(strings.Contains(first, "Open Kernel Module"))
		s.Origins = append(s.Origins, origin(driverFile, "open_kernel_module"))
	}
}

// allowedCPUs reads the CPUs of this process, or in a recording those of the
// control group that made it.
func (r *reader) allowedCPUs() {
	where := statusFile
	list := ""
	if text, err := r.text(statusFile, maxAttr); err == nil {
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				list = strings.TrimSpace(v)
			}
		}
	}
	if list == "" {
		where = cpusetFile
		list, _ = r.attr(path.Dir(cpusetFile), path.Base(cpusetFile))
	}
	cpus, err := probe.ParseCPUList(list)
	if err != nil {
		r.gap("allowed CPUs", where, err)
		return
	}
	if cpus != "" {
		s := &r.inv.Settings
		s.CPUs = cpus
		s.Origins = append(s.Origins, origin(where, "allowed_cpus"))
	}
}

func (r *reader) modules() {
	if !r.isDir(moduleFolder) {
		r.notRecorded("kernel modules", moduleFolder)
		return
	}
	s := &r.inv.Settings
	for _, name := range modulesOfInterest() {
		where := path.Join(moduleFolder, name)
		dir, err := r.follow(where)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.gap("module "+name, where, err)
			continue
		}
		m := probe.Module{Name: name, Version: r.str("module "+name, dir, "version")}
		s.Modules = append(s.Modules, m)
		if name == "nvidia" && m.Version != "" {
			r.inv.Runtime.Driver = m.Version
			r.inv.Runtime.Origins = []probe.Origin{origin(path.Join(where, "version"), "driver")}
		}
	}
	s.Origins = append(s.Origins, origin(moduleFolder, "modules"))
}

func (r *reader) guest(what, where string) {
	s := &r.inv.Settings
	s.Guest = append(s.Guest, probe.Mark{What: plain(what), Origin: origin(where)})
}

// marks looks for the remaining signs of a guest (pci looks for its own) and for
// those of a container.
func (r *reader) marks(cpu processorTypes) {
	p := r.inv.Product
	if isCloudVendor(p.Vendor) && !strings.Contains(strings.ToLower(p.Name), "metal") {
		r.guest("system vendor "+p.Vendor, path.Join(dmiFolder, "sys_vendor"))
	}
	if slices.ContainsFunc(cpu.all, func(t processorType) bool { return t.hypervisor }) {
		r.guest("processor flag hypervisor", cpu.where)
	}
	s := &r.inv.Settings
	for _, f := range []struct{ what, where string }{
		{"docker", ".dockerenv"},
		{"podman", "run/.containerenv"},
	} {
		if r.exists(f.where) {
			s.Container = append(s.Container, probe.Mark{What: f.what, Origin: origin(f.where)})
		}
	}
	const cgroup = "proc/1/cgroup"
	text, err := r.text(cgroup, maxAttr)
	switch {
	case err == nil:
		if engine := containerEngine(text); engine != "" {
			s.Container = append(s.Container, probe.Mark{What: engine, Origin: origin(cgroup)})
		}
	case !errors.Is(err, fs.ErrNotExist):
		r.gap("container", cgroup, err)
	}
}

// isCloudVendor reports the sys_vendor of a hypervisor, or of a cloud whose
// machines are guests unless their product says metal.
func isCloudVendor(s string) bool {
	for _, v := range []string{"QEMU", "KVM", "VMware", "Xen", "Amazon EC2", "Google", "Microsoft Corporation", "Nebius"} {
		if strings.HasPrefix(strings.ToLower(s), strings.ToLower(v)) {
			return true
		}
	}
	return false
}

// containerEngine finds an engine's name among the control groups of process 1.
func containerEngine(cgroups string) string {
	for _, e := range []string{"kubepods", "docker", "containerd", "lxc"} {
		if strings.Contains(cgroups, e) {
			return e
		}
	}
	return ""
}
