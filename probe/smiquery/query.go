package smiquery

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// document takes the facts of one -q, in either form.
func (p *parser) document(doc *document) error {
	p.found = true
	if err := p.versions(doc.root); err != nil {
		return err
	}
	attached := doc.root.find("attached_gpus", "attached gpus")
	listed := -1
	if attached != nil {
		n, err := strconv.Atoi(attached.value)
		if err != nil || n < 0 {
			return p.fault(attached.line, "attached GPUs %q: not a number", probe.Excerpt(attached.value))
		}
		listed = n
		if n < len(doc.gpus) {
			return p.fault(attached.line, "%d GPUs are attached, but %d are listed", n, len(doc.gpus))
		}
	}
	complete := listed == len(doc.gpus)
	if !complete {
		why := "the number of attached GPUs is missing"
		if listed >= 0 {
			why = fmt.Sprintf("%d of %d GPUs are listed", len(doc.gpus), listed)
		}
		p.gap(doc.root.line, "gpu indices", why+", so their order does not tell their indices", "give the whole output of nvidia-smi -q")
	}
	seen := map[probe.BDF]int{}
	for i, n := range doc.gpus {
		id := n.value
		if b := n.find("pci/pci_bus_id", "pci/bus id"); b != nil && !absent(b.value) {
			id = b.value
		}
		addr, err := probe.ParseBDF(id)
		if err != nil {
			return p.fault(n.line, "gpu bus id: %v", err)
		}
		if first, ok := seen[addr]; ok {
			return p.fault(n.line, "gpu %v stands on line %d already", addr, first)
		}
		seen[addr] = n.line
		index := probe.Opt[int]{}
		if complete {
			index = probe.Some(i)
		}
		uuid := ""
		if u := n.find("uuid", "gpu uuid"); u != nil {
			uuid = realUUID(u.value)
		}
		g, err := p.gpu(index, uuid, probe.Some(addr), n.line)
		if err != nil {
			return err
		}
		if g.query {
			continue
		}
		g.query = true
		r := &gpuReader{parser: p, gpu: g, node: n}
		if r.read(); r.err != nil {
			return r.err
		}
	}
	return nil
}

// versions reads what stands above the GPUs.
func (p *parser) versions(root *node) error {
	for _, v := range []struct {
		what  string
		paths []string
		have  *string
	}{
		{"driver version", []string{"driver_version", "driver version"}, &p.driver},
		{"CUDA version", []string{"cuda_version", "cuda version"}, &p.cuda},
	} {
		n := root.find(v.paths...)
		if n == nil || absent(n.value) {
			continue
		}
		s, err := p.plain(v.what, n.value, n.line)
		if err != nil {
			return err
		}
		if strings.Trim(s, "0123456789.") != "" {
			p.cannot(v.what, s, n.line)
			continue
		}
		if *v.have != "" && *v.have != s {
			return p.fault(n.line, "%s %s, but %s further up; one text is one host", v.what, probe.Excerpt(s), *v.have)
		}
		if *v.have == "" && v.have == &p.driver {
			p.origins = []probe.Origin{p.origin(n.line)}
		}
		*v.have = s
	}
	return nil
}

// absent recognises what stands for "there is no such thing here".
func absent(s string) bool {
	switch strings.ToLower(strings.Trim(s, "[]")) {
	case "", "n/a", "not supported", "not available", "requested functionality has been deprecated":
		return true
	}
	return false
}

// gpuReader reads one GPU of a -q. After the first error it reads nothing more.
type gpuReader struct {
	*parser
	gpu  *gpu
	node *node
	err  error
}

// value returns the text of a fact under the first of its names that exists.
func (r *gpuReader) value(paths ...string) (string, *node) {
	n := r.node.find(paths...)
	if n == nil || r.err != nil || absent(n.value) {
		return "", nil
	}
	s, err := r.plain(n.name, n.value, n.line)
	if err != nil {
		r.err = err
		return "", nil
	}
	return s, n
}

// damaged refuses a value that should be of another form. What holds no digit is
// no damaged number but the driver's reason why there is none.
func (r *gpuReader) damaged(n *node, want string) {
	if !strings.ContainsAny(n.value, "0123456789") {
		r.cannot(r.gpu.object()+" "+n.name, n.value, n.line)
		return
	}
	r.err = r.fault(n.line, "%s: %s %q is not %s", r.gpu.object(), n.name, probe.Excerpt(n.value), want)
}

// count reads a number followed by one of the units.
func (r *gpuReader) count(unit string, paths ...string) probe.Opt[uint64] {
	s, n := r.value(paths...)
	if n == nil {
		return probe.Opt[uint64]{}
	}
	v, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(s, unit)), 10, 64)
	if err != nil {
		want := "a whole number"
		if unit != "" {
			want += " of " + unit
		}
		r.damaged(n, want)
		return probe.Opt[uint64]{}
	}
	return probe.Some(v)
}

func (r *gpuReader) small(unit string, max uint64, paths ...string) probe.Opt[int] {
	v, ok := r.count(unit, paths...).Get()
	if !ok {
		return probe.Opt[int]{}
	}
	if v > max {
		n := r.node.find(paths...)
		r.err = r.fault(n.line, "%s: %s %d is above %d", r.gpu.object(), n.name, v, max)
		return probe.Opt[int]{}
	}
	return probe.Some(int(v))
}

// flag reads one of two words.
func (r *gpuReader) flag(on, off string, paths ...string) probe.Opt[bool] {
	s, n := r.value(paths...)
	switch {
	case n == nil:
	case strings.EqualFold(s, on):
		return probe.Some(true)
	case strings.EqualFold(s, off):
		return probe.Some(false)
	default:
		r.damaged(n, on+" or "+off)
	}
	return probe.Opt[bool]{}
}

func (r *gpuReader) enabled(paths ...string) probe.Opt[bool] {
	return r.flag("Enabled", "Disabled", paths...)
}

// word reads one of several words; others are the driver's, newer than this
// list, and unknown with a gap.
func (r *gpuReader) word(words map[string]string, paths ...string) string {
	s, n := r.value(paths...)
	if n == nil {
		return ""
	}
	w, ok := words[strings.ToLower(s)]
	if !ok {
		r.cannot(r.gpu.object()+" "+n.name, s, n.line)
	}
	return w
}

func (r *gpuReader) extra(name string, paths ...string) {
	if s, n := r.value(paths...); n != nil && s != "" {
		// The text form writes 0x before ids, the XML form does not.
		r.gpu.Extra = append(r.gpu.Extra, probe.Attr{Name: name, Value: strings.TrimPrefix(s, "0x")})
	}
}

func (r *gpuReader) read() {
	g := r.gpu
	if s, n := r.value("product_name", "product name"); n != nil {
		g.Name = s
	}
	if s, n := r.value("performance_state", "performance state"); n != nil {
		v, err := strconv.Atoi(strings.TrimPrefix(s, "P"))
		switch {
		case err != nil || !strings.HasPrefix(s, "P") || v < 0 || v > 15:
			r.damaged(n, "P0 to P15")
		default:
			g.PState = probe.Some(v)
		}
	}
	g.Utilization = r.small("%", 100, "utilization/gpu_util", "utilization/gpu")
	r.events()
	r.pcie()
	r.fabric()
	g.MIG = r.enabled("mig_mode/current_mig", "mig mode/current")
	g.ModuleID = r.small("", 1<<16, "gpu_module_id", "module_id", "module id", "gpu module id")
	if v, ok := r.count("MiB", "bar1_memory_usage/total", "bar1 memory usage/total").Get(); ok && v > 0 {
		if v > math.MaxInt64>>20 {
			r.err = r.fault(r.node.line, "%s: BAR1 of %d MiB is no size of a memory", g.object(), v)
			return
		}
		g.BAR1 = probe.Some(int64(v) << 20)
	}
	g.ComputeMode = r.word(map[string]string{
		"default": "default", "prohibited": "prohibited", "exclusive_process": "exclusive process", "exclusive_thread": "exclusive thread",
	}, "compute_mode", "compute mode")
	g.Persistence = r.enabled("persistence_mode", "persistence mode")
	r.memory()
	g.Recovery = r.word(map[string]string{
		"none": "none", "reset": "reset", "gpu reset": "reset", "reboot": "reboot", "node reboot": "reboot",
		"drain p2p": "drain P2P", "drain and reset": "drain P2P and reset", "drain p2p and reset": "drain P2P and reset",
		"recover imex domain": "recover IMEX domain", "bus reset": "bus reset", "system reboot": "system reboot",
	}, "gpu_recovery_action", "gpu recovery action")
	if s, n := r.value("gpu_virtualization_mode/virtualization_mode", "gpu virtualization mode/virtualization mode"); n != nil && (strings.EqualFold(s, "Pass-Through") || strings.EqualFold(s, "VGPU")) {
		what := "GPU virtualization mode " + s
		if !slices.ContainsFunc(r.guest, func(m probe.Mark) bool { return m.What == what }) {
			r.guest = append(r.guest, probe.Mark{What: what, Origin: r.origin(n.line)})
		}
	}
	// What the inventory has no field for.
	if r.cuda != "" {
		g.Extra = append(g.Extra, probe.Attr{Name: "cuda_version", Value: r.cuda})
	}
	r.extra("product_brand", "product_brand", "product brand")
	r.extra("product_architecture", "product_architecture", "product architecture")
	r.extra("minor_number", "minor_number", "minor number")
	if s, n := r.value("pci/pci_device_id", "pci/device id"); n != nil {
		// Device and vendor in one number, 0x232110DE. Another vendor is no GPU of
		// this driver.
		if id, err := probe.ParseHex(s, 32); err == nil && probe.PCIID(id) == probe.VendorNVIDIA {
			g.Device = probe.Some(probe.PCIID(id >> 16))
		}
	}
	r.extra("pci_sub_system_id", "pci/pci_sub_system_id", "pci/sub system id")
	r.extra("max_host_link_gen", "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen", "pci/gpu link info/pcie generation/host max")
	r.extra("fb_memory_total", "fb_memory_usage/total", "fb memory usage/total")
	r.extra("c2c_mode", "c2c_mode", "gpu c2c mode")
	r.extra("platform_module_id", "platforminfo/module_id", "platform info/module id")
}

// events builds NVML's mask of nvmlClocksEventReasons. Without the idle reason it
// is unknown, since its absence would read as work.
func (r *gpuReader) events() {
	var mask uint64
	for _, e := range []struct {
		bit       uint64
		xml, text string
	}{
		{0x1, "gpu_idle", "idle"},
		{0x2, "applications_clocks_setting", "applications clocks setting"},
		{0x4, "sw_power_cap", "sw power cap"},
		{0x8, "hw_slowdown", "hw slowdown"},
		{0x10, "sync_boost", "sync boost"},
		{0x20, "sw_thermal_slowdown", "sw thermal slowdown"},
		{0x40, "hw_thermal_slowdown", "hw slowdown/hw thermal slowdown"},
		{0x80, "hw_power_brake_slowdown", "hw slowdown/hw power brake slowdown"},
		{0x100, "display_clocks_setting", "display clock setting"},
	} {
		on, ok := r.flag("Active", "Not Active",
			"clocks_event_reasons/clocks_event_reason_"+e.xml,
			"clocks_throttle_reasons/clocks_throttle_reason_"+e.xml,
			"clocks event reasons/"+e.text, "clocks throttle reasons/"+e.text).Get()
		if !ok && e.bit == probe.ClockEventIdle {
			return
		}
		if on {
			mask |= e.bit
		}
	}
	r.gpu.Events = probe.Some(mask)
}

func (r *gpuReader) pcie() {
	g := r.gpu
	const xmlGen, textGen = "pci/pci_gpu_link_info/pcie_gen/", "pci/gpu link info/pcie generation/"
	const xmlWidth, textWidth = "pci/pci_gpu_link_info/link_widths/", "pci/gpu link info/link width/"
	g.Current = probe.PCIeLink{Speed: r.speed(xmlGen+"current_link_gen", textGen+"current"), Width: r.width(xmlWidth+"current_link_width", textWidth+"current")}
	g.Max = probe.PCIeLink{Speed: r.speed(xmlGen+"max_link_gen", textGen+"max"), Width: r.width(xmlWidth+"max_link_width", textWidth+"max")}
	g.BoardMax.Speed = r.speed(xmlGen+"max_device_link_gen", textGen+"device max")
	g.Replays = r.count("", "pci/replay_counter", "pci/replays since reset")
}

func (r *gpuReader) speed(paths ...string) probe.Opt[probe.PCIeSpeed] {
	v, ok := r.small("", 99, paths...).Get()
	if !ok || v == 0 {
		return probe.Opt[probe.PCIeSpeed]{}
	}
	s, ok := probe.PCIeSpeedOfGen(v)
	if !ok {
		n := r.node.find(paths...)
		r.err = r.fault(n.line, "%s: %s %d is no PCIe generation", r.gpu.object(), n.name, v)
		return probe.Opt[probe.PCIeSpeed]{}
	}
	return probe.Some(s)
}

func (r *gpuReader) width(paths ...string) probe.Opt[int] {
	v, ok := r.small("x", 99, paths...).Get()
	if !ok || v == 0 {
		return probe.Opt[int]{}
	}
	if !slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, v) {
		n := r.node.find(paths...)
		r.err = r.fault(n.line, "%s: %s %d is none of x1 to x32", r.gpu.object(), n.name, v)
		return probe.Opt[int]{}
	}
	return probe.Some(v)
}

// memory reads ECC and the rows that were replaced. Ampere and later count by
// memory, Volta and before by bits with a total of their own.
func (r *gpuReader) memory() {
	var e probe.ECC
	e.Enabled = r.enabled("ecc_mode/current_ecc", "ecc mode/current")
	if pending := r.enabled("ecc_mode/pending_ecc", "ecc mode/pending"); pending != e.Enabled {
		e.Pending = pending
	}
	e.VolatileCorrected = r.errors("volatile", "single", "sram_correctable", "dram_correctable")
	e.VolatileUncorrected = r.errors("volatile", "double", "sram_uncorrectable", "dram_uncorrectable")
	e.AggregateCorrected = r.errors("aggregate", "single", "sram_correctable", "dram_correctable")
	e.AggregateUncorrected = r.errors("aggregate", "double", "sram_uncorrectable", "dram_uncorrectable")
	if e != (probe.ECC{}) {
		r.gpu.ECC = &e
	}
	corrected, okC := r.small("", math.MaxInt32, "remapped_rows/remapped_row_corr", "remapped rows/correctable error").Get()
	uncorrected, okU := r.small("", math.MaxInt32, "remapped_rows/remapped_row_unc", "remapped rows/uncorrectable error").Get()
	pending, okP := r.flag("Yes", "No", "remapped_rows/remapped_row_pending", "remapped rows/pending").Get()
	failure, okF := r.flag("Yes", "No", "remapped_rows/remapped_row_failure", "remapped rows/remapping failure occurred").Get()
	if okC && okU && okP && okF {
		r.gpu.Remapped = &probe.RemappedRows{Corrected: corrected, Uncorrected: uncorrected, Pending: pending, Failure: failure}
	}
}

// errors adds up one kind of errors over the memories. A sum that lacks a part
// would be too low, so it is unknown.
func (r *gpuReader) errors(period, bits string, memories ...string) probe.Opt[uint64] {
	if t := r.count("", "ecc_errors/"+period+"/"+bits+"_bit/total", "ecc errors/"+period+"/"+bits+" bit/total"); t.Known() {
		return t
	}
	var sum uint64
	for _, m := range memories {
		c := r.memoryErrors(period, m)
		v, ok := c.Get()
		if !ok || sum+v < sum {
			return probe.Opt[uint64]{}
		}
		sum += v
	}
	return probe.Some(sum)
}

func (r *gpuReader) memoryErrors(period, memory string) probe.Opt[uint64] {
	one := func(xml, text string) probe.Opt[uint64] {
		return r.count("", "ecc_errors/"+period+"/"+xml, "ecc errors/"+period+"/"+text)
	}
	if c := one(memory, strings.ReplaceAll(memory, "_", " ")); c.Known() || memory != "sram_uncorrectable" {
		return c
	}
	// From driver 550 on in two parts.
	parity, okP := one("sram_uncorrectable_parity", "sram uncorrectable parity").Get()
	secded, okS := one("sram_uncorrectable_secded", "sram uncorrectable sec-ded").Get()
	if !okP || !okS || parity+secded < parity {
		return probe.Opt[uint64]{}
	}
	return probe.Some(parity + secded)
}

// fabric reads the registration with the NVSwitch fabric. A state that is not
// printed is no state, also not "not supported".
func (r *gpuReader) fabric() {
	state := r.word(map[string]string{
		"not supported": "not supported", "not started": "not started", "in progress": "in progress", "completed": "completed",
	}, "fabric/state")
	if state == "" {
		return
	}
	f := probe.Fabric{State: state}
	if s, n := r.value("fabric/status"); n != nil {
		if code, ok := statusCodes()[strings.ToLower(s)]; ok {
			f.Status = probe.Some(code)
		} else {
			r.cannot(r.gpu.object()+" fabric status", s, n.line)
		}
	}
	if s, n := r.value("fabric/clusteruuid", "fabric/cluster_uuid", "fabric/cluster uuid"); n != nil {
		f.ClusterUUID = s
	}
	if v, ok := r.small("", math.MaxUint32, "fabric/cliqueid", "fabric/clique_id", "fabric/clique id").Get(); ok {
		f.CliqueID = probe.Some(uint32(v))
	}
	f.Health = r.word(map[string]string{"healthy": "healthy", "unhealthy": "unhealthy", "limited capacity": "limited capacity"}, "fabric/health/summary")
	f.HealthMask = r.health()
	r.gpu.Fabric = &f
}

// statusCodes are the texts of nvmlErrorString for the codes that a registration
// can end with (nvml.h).
func statusCodes() map[string]int {
	return map[string]int{
		"success": 0, "uninitialized": 1, "invalid argument": 2, "not supported": 3, "insufficient permissions": 4,
		"not found": 6, "insufficient size": 7, "driver not loaded": 9, "timeout": 10, "gpu is lost": 15, "reset required": 16,
		"insufficient resources": 23, "unknown error": 999,
	}
}

// health packs the members of the health section as NVML does
// (NVML_GPU_FABRIC_HEALTH_MASK_*): two bits each, 1 true, 2 false, and four for
// the configuration.
func (r *gpuReader) health() probe.Opt[uint32] {
	var mask uint32
	known := false
	set := func(shift int, v uint32) { mask, known = mask|v<<shift, true }
	truth := map[string]string{"true": "1", "yes": "1", "false": "2", "no": "2", "full": "2", "degraded": "1"}
	for _, m := range []struct {
		shift int
		paths []string
	}{
		{0, []string{"fabric/health/bandwidth"}},
		{2, []string{"fabric/health/route_recovery_in_progress", "fabric/health/route recovery in progress"}},
		{4, []string{"fabric/health/route_unhealthy", "fabric/health/route unhealthy"}},
		{6, []string{"fabric/health/access_timeout_recovery", "fabric/health/access timeout recovery"}},
		{12, []string{"fabric/health/partition_assigned", "fabric/health/partition assigned"}},
	} {
		switch r.word(truth, m.paths...) {
		case "1":
			set(m.shift, 1)
		case "2":
			set(m.shift, 2)
		}
	}
	configuration := map[string]string{
		"none": "1", "incorrect sysguid": "2", "incorrect chassis sn": "3", "no partition": "4", "insufficient nvlinks": "5",
		"incompatible gpu fw": "6", "incompatible firmware": "6", "invalid location": "7", "gpu state invalid": "8",
	}
	if w := r.word(configuration, "fabric/health/incorrect_configuration", "fabric/health/incorrect configuration"); w != "" {
		set(8, uint32(w[0]-'0'))
	}
	if !known {
		return probe.Opt[uint32]{}
	}
	return probe.Some(mask)
}
