package nccllog

import (
	"bytes"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// record takes one record. It looks at the first letters of the text; what says
// nothing about topology, settings, choices or health is counted and left.
func (s *state) record(r *record) {
	s.log.Records++
	switch r.level {
	case levelWarn:
		s.warn(r)
		return
	case levelDiag:
		s.note(r.t, NoteDiag, r.text)
		return
	}
	if !s.info(r, r.text) {
		s.log.Unread++
	}
}

func (s *state) info(r *record, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	t := r.t
	switch c := b[0]; c {
	case ' ', '+', '=':
		return s.indented(r, b)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.numbered(r, b)
	case '[':
		if rest, ok := lit(b, "[Rank "); ok {
			if _, rest, ok = before(rest, ']'); ok {
				return s.info(r, blanks(rest))
			}
		}
		if starts(b, "[OK]") || starts(b, "[INFO]") || starts(b, "[FAIL]") {
			s.note(t, NoteDiag, b)
			return true
		}
		return false
	case 'A':
		if rest, ok := lit(b, "Assigned NET plugin "); ok {
			name, ok := bytes.CutSuffix(rest, []byte(" to comm"))
			return ok && s.network(t, name, probe.NetAssigned)
		}
		return s.operation(r, b)
	case 'B':
		if rest, ok := lit(b, "Bootstrap"); ok {
			if i := bytes.Index(rest, []byte("Using ")); i >= 0 && i <= 3 {
				s.interfaceList(t, probe.UseBootstrap, rest[i+6:])
				return true
			}
			return false
		}
		return s.operation(r, b)
	case 'C':
		switch {
		case starts(b, "Channel "):
			return s.channel(r, b[len("Channel "):])
		case starts(b, "CollNet "):
			return s.collNet(r, b[len("CollNet "):])
		case starts(b, "CPU/"):
			return s.topoNode(r, b)
		case starts(b, "Comm config "):
			return s.commConfig(t, b[len("Comm config "):])
		case starts(b, "Connected "):
			return s.connected(r, b)
		case starts(b, "Check P2P Type"), starts(b, "Could not enable P2P"):
			s.note(t, NoteP2P, b)
		case starts(b, "Could not find a path for pattern "):
			s.noPath(t, b)
			s.note(t, NoteTopology, b)
		case starts(b, "Could not get speed from"):
			s.note(t, NoteNetwork, b)
		case starts(b, "Could not find"):
			s.note(t, NoteTopology, b)
		default:
			return false
		}
		return true
	case 'D':
		if starts(b, "DMA-BUF is available") {
			s.note(t, NoteMemory, b)
			return true
		}
		return false
	case 'E':
		if starts(b, "Enabled NCCL Func/Proto/Algo Matrix") {
			s.matrix = 32
			return true
		}
		return false
	case 'F':
		if name, ok := lit(b, "Failed to initialize NET plugin "); ok {
			return s.network(t, name, probe.NetFailed)
		}
		if starts(b, "Failed to open libibverbs") {
			s.note(t, NoteNetwork, b)
			return true
		}
		return false
	case 'G':
		switch {
		case starts(b, "GPU/"):
			return s.topoPath(r, b)
		case starts(b, "GPU Direct RDMA "):
			return s.gdrPair(t, b[len("GPU Direct RDMA "):])
		case starts(b, "Gather"):
			return s.operation(r, b)
		case starts(b, "GIN/Plugin"):
			s.note(t, NotePlugin, b)
			return true
		}
		return false
	case 'H':
		if starts(b, "HINT:") {
			s.note(t, NoteHint, b)
			return true
		}
		return false
	case 'I':
		switch {
		case starts(b, "Init timings"):
			return s.timings(r, b[len("Init timings"):])
		case starts(b, "Initialized NET plugin "):
			return s.network(t, b[len("Initialized NET plugin "):], probe.NetInitialized)
		case starts(b, "Invalid value "):
			return s.invalid(t, b[len("Invalid value "):])
		}
		return false
	case 'K':
		if starts(b, "KV Convert to int") {
			s.note(t, NoteTopology, b)
			return true
		}
		return false
	case 'L':
		switch {
		case starts(b, "Local Net device counts"), starts(b, "Legacy IPC not supported"):
			s.note(t, NoteNetwork, b)
			return true
		}
		return false
	case 'M':
		return s.mnnvl(t, b)
	case 'N':
		return s.lettersN(r, b)
	case 'P':
		switch {
		case starts(b, "Pattern "):
			return s.pattern(r, b[len("Pattern "):])
		case starts(b, "P2P is disabled"), starts(b, "P2P Chunksize"):
			s.note(t, NoteP2P, b)
		case starts(b, "PROFILER/Plugin"):
			s.note(t, NotePlugin, b)
		default:
			return false
		}
		return true
	case 'R':
		switch {
		case starts(b, "Ring "):
			return s.ringLine(r, b[len("Ring "):])
		case starts(b, "Rank "):
			s.note(t, NoteInit, b)
			return true
		case starts(b, "ReduceScatter |"): // fills its column: no blank before it
			return s.tableRow(r, b)
		}
		return s.operation(r, b)
	case 'S':
		switch {
		case starts(b, "Setting affinity for GPU"):
			s.note(t, NoteAffinity, b)
		case starts(b, "Successfully loaded external"):
			s.note(t, NotePlugin, b)
		case starts(b, "Symmetric memory is not supported"):
			s.note(t, NoteMemory, b)
		default:
			return s.operation(r, b)
		}
		return true
	case 'T':
		switch {
		case starts(b, "Trees "):
			return s.trees(r, b[len("Trees "):])
		case starts(b, "Tree "):
			return s.treeLine(r, b[len("Tree "):])
		case starts(b, "TUNER/Plugin"):
			s.note(t, NotePlugin, b)
		case starts(b, "Topology detection"), starts(b, "TOPO/NET"):
			s.note(t, NoteTopology, b)
		default:
			return false
		}
		return true
	case 'U':
		switch {
		case starts(b, "Using network "):
			return s.network(t, b[len("Using network "):], probe.NetUsed)
		case starts(b, "Using internal"):
			s.note(t, NotePlugin, b)
			return true
		}
		return false
	case 'c':
		switch {
		case starts(b, "comm 0x"):
			s.comm(r, nil, b[len("comm "):])
		case starts(b, "cudaDriverVersion "):
			v, ok := intWord(bytes.TrimRight(b[len("cudaDriverVersion "):], " "))
			if p := s.procOf(t); ok && p != nil {
				p.CUDADriver = probe.Some(v)
			}
		case starts(b, "cuMem host allocations"):
			s.note(t, NoteMemory, b)
		default:
			return s.located(r, b)
		}
		return true
	case 'n':
		switch {
		case starts(b, "ncclComm"):
			api, rest := word(b)
			rest, ok := lit(rest, "comm 0x")
			if !ok {
				return false
			}
			s.comm(r, api, rest)
		case starts(b, "ncclTopoGetCpuAffinity"):
			s.note(t, NoteAffinity, b)
		default:
			return s.located(r, b)
		}
		return true
	case 'p':
		if starts(b, "peer query failed") {
			s.note(t, NoteP2P, b)
			return true
		}
	}
	return s.located(r, b)
}

// located takes a text that begins with file:line, perhaps with (func).
func (s *state) located(r *record, b []byte) bool {
	if r.loc != nil || b[0]-'a' >= 26 && b[0] != '/' {
		return false
	}
	w, rest := word(b)
	if len(w) > 256 || !isLoc(w) || bytes.IndexByte(w, '.') < 0 {
		return false
	}
	fn, rest := cutFunc(rest)
	code, ok := lit(rest, "-> ")
	if !ok {
		if bytes.HasPrefix(rest, []byte("Cuda ")) || len(rest) == 0 {
			return false // an allocation
		}
		r.loc, r.fn = w, fn
		return s.info(r, rest)
	}
	n, rest, ok := whole(code)
	if !ok {
		s.log.Torn++
		return true
	}
	s.setKey(r.t, w, code)
	if u, fresh := get(s, &s.unwinds, "error levels"); u != nil {
		if fresh {
			u.File, u.Line = splitLoc(w)
			u.Code, u.Async = n, bytes.Contains(rest, []byte("[Async thread]"))
		}
		s.see(&u.Seen, r.t)
	}
	return true
}

func cutFunc(b []byte) (fn, rest []byte) {
	if len(b) == 0 || b[0] != '(' {
		return nil, b
	}
	w, after := word(b)
	if len(w) < 3 || w[len(w)-1] != ')' {
		return nil, b
	}
	return w[1 : len(w)-1], after
}

func splitLoc(b []byte) (file string, line int) {
	i := bytes.LastIndexByte(b, ':')
	n, _ := intWord(b[i+1:])
	return text(b[:i]), n
}

func (s *state) lettersN(r *record, b []byte) bool {
	t := r.t
	switch {
	case starts(b, "NCCL version "):
		v, _ := word(b[len("NCCL version "):])
		return s.version(t, v)
	case starts(b, "NCCL_"):
		return s.setting(r, b)
	case starts(b, "NET : Using interface "): // up to 2.4
		s.interfaceList(t, probe.UseSocket, b[len("NET : Using interface "):])
	case starts(b, "NET/OFI"):
		s.note(t, NoteOFI, b)
	case starts(b, "NET/IB"):
		return s.netIB(r, b)
	case starts(b, "NET/Plugin"):
		s.note(t, NotePlugin, b)
	case starts(b, "NET/Socket"):
		if i := bytes.Index(b, []byte("Using [")); i >= 0 {
			s.interfaceList(t, probe.UseSocket, b[i+len("Using "):])
			return true
		}
		if i := bytes.Index(b, []byte("GPU Direct RDMA ")); i >= 0 {
			return s.gdrLine(r, b)
		}
		s.note(t, NoteNetwork, b)
	case starts(b, "NET/"):
		if i := bytes.IndexByte(b, ' '); i > 0 && i+1 < len(b) && b[i+1] == ':' && bytes.Contains(b[i:], []byte("GPU Direct RDMA ")) {
			return s.gdrLine(r, b)
		}
		if i := bytes.Index(b, []byte(" :")); i > 0 && i+2 < len(b) && (starts(b[i+2:], "GPU/") || starts(b[i+2:], "NET/") || starts(b[i+2:], "CPU/")) {
			return s.topoPath(r, b)
		}
		s.note(t, NoteNetwork, b)
	case starts(b, "NVLS "):
		s.note(t, NoteNVLS, b)
	case starts(b, "NVLink target"):
		s.note(t, NoteTopology, b)
	case starts(b, "NVS/"):
		return s.topoPath(r, b)
	default:
		return false
	}
	return true
}

// version takes "2.28.3+cuda13.0".
func (s *state) version(t *thread, v []byte) bool {
	nccl, cuda, _ := bytes.Cut(bytes.TrimRight(v, " "), []byte("+cuda"))
	s.setKey(t, v)
	f, fresh := get(s, &s.versions, "versions")
	if f == nil {
		return true
	}
	if fresh {
		f.NCCL, f.CUDA = text(nccl), text(cuda)
	}
	s.see(&f.Seen, t)
	if p := s.procOf(t); p != nil {
		p.NCCL, p.CUDA = f.NCCL, f.CUDA
	}
	return true
}

func (s *state) network(t *thread, name []byte, state string) bool {
	name = bytes.TrimRight(name, " ")
	if len(name) == 0 || len(name) > 128 {
		return false
	}
	s.setKey(t, name, []byte(state))
	f, fresh := get(s, &s.networks, "networks")
	if f == nil {
		return true
	}
	if fresh {
		f.Name, f.State = text(name), state
	}
	s.see(&f.Seen, t)
	if p := s.procOf(t); p != nil && state == probe.NetUsed {
		p.Network = f.Name
	}
	return true
}

// interloper is what no value holds, but the beginning of another line does.
var interloper = [][]byte{[]byte("<stdout>"), []byte("<stderr>"), []byte(" NCCL INFO "), []byte(" NCCL WARN ")}

// setting takes "NCCL_X set by environment to Y." and "NCCL_X set to Y".
func (s *state) setting(r *record, b []byte) bool {
	name, rest := word(b)
	v, ok := lit(rest, "set by environment to ")
	if !ok {
		if v, ok = lit(rest, "set to "); !ok {
			return false
		}
	}
	v = bytes.TrimRight(v, " ")
	// Integers are printed with a full stop.
	if n := len(v); n > 1 && v[n-1] == '.' {
		if _, tail, ok := number(v[:n-1]); ok && len(tail) == 0 {
			v = v[:n-1]
		}
	}
	s.keepEnv(r.t, name, v, probe.EnvVariable)
	return true
}

func (s *state) keepEnv(t *thread, name, value []byte, how string) {
	if len(name) > 128 {
		return
	}
	for _, mark := range interloper {
		if bytes.Contains(value, mark) {
			s.log.Torn++ // another process wrote into the line
			return
		}
	}
	s.setKey(t, name, value, []byte(how))
	if f, fresh := get(s, &s.env, "settings"); f != nil {
		if fresh {
			f.Name, f.Value, f.How = text(name), text(value), how
		}
		s.see(&f.Seen, t)
	}
}

// commConfig takes "<field> set to <v>" and "<field> reset to <VAR>=<v>".
func (s *state) commConfig(t *thread, b []byte) bool {
	name, rest := word(b)
	if v, ok := lit(rest, "set to "); ok {
		s.keepEnv(t, name, v, probe.EnvConfig)
		return true
	}
	if v, ok := lit(rest, "reset to "); ok {
		s.keepEnv(t, name, v, probe.EnvReset)
		return true
	}
	return false
}

// invalid takes "<s> for <VAR>, using default <d>."
func (s *state) invalid(t *thread, b []byte) bool {
	i := bytes.Index(b, []byte(" for NCCL_"))
	if i < 0 {
		return false
	}
	name, _, ok := before(b[i+5:], ',')
	if !ok {
		return false
	}
	s.keepEnv(t, name, b[:i], probe.EnvInvalid)
	return true
}

// interfaceList takes "[0]eth0:10.0.0.1<0> [1]…" or a single one without a number.
func (s *state) interfaceList(t *thread, use string, b []byte) {
	for len(b) > 0 {
		var w []byte
		w, b = word(b)
		if len(w) > 0 && w[0] == '[' {
			_, w, _ = before(w, ']')
		}
		name, addr, ok := before(w, ':')
		if !ok || len(name) == 0 {
			continue
		}
		if i := bytes.LastIndexByte(addr, '<'); i >= 0 {
			addr = addr[:i]
		}
		s.setKey(t, []byte(use), name, addr)
		if f, fresh := get(s, &s.interfaces, "interfaces"); f != nil {
			if fresh {
				f.Use, f.Name, f.Addr = use, text(name), text(addr)
			}
			s.see(&f.Seen, t)
		}
	}
}

func (s *state) netIB(r *record, b []byte) bool {
	t := r.t
	rest := b[len("NET/IB"):]
	for len(rest) > 0 && (rest[0] == ' ' || rest[0] == ':') {
		rest = rest[1:]
	}
	switch {
	case starts(rest, "Using ["):
		s.ibList(t, rest[len("Using "):])
	case starts(rest, "No device found"):
		s.network(t, []byte("IB"), probe.NetNoDevice)
	case starts(rest, "GPU Direct RDMA "):
		return s.gdrLine(r, b)
	case starts(rest, "["):
		return s.ibDevice(t, rest[1:])
	case starts(rest, "Made virtual device ["):
		return s.ibDevice(t, rest[len("Made virtual device ["):])
	case starts(rest, "Dev ") && bytes.Contains(rest, []byte("qpn")):
		return false // one for each queue pair
	default:
		s.note(t, NoteNetwork, b)
	}
	return true
}

// ibList takes "[0]mlx5_0:1/IB [1]… [RO]; OOB eth0:10.0.0.1<0>".
func (s *state) ibList(t *thread, b []byte) {
	list, oob, _ := bytes.Cut(b, []byte(";"))
	if name, ok := lit(blanks(oob), "OOB "); ok {
		s.interfaceList(t, probe.UseOOB, name)
	}
	list = bytes.TrimRight(list, " ")
	s.setKey(t, list)
	f, fresh := get(s, &s.ibLists, "HCA lists")
	if f == nil {
		return
	}
	s.see(&f.Seen, t)
	if !fresh {
		return
	}
	for len(list) > 0 && len(f.Ports) < 256 {
		var w []byte
		w, list = word(list)
		if string(w) == "[RO]" {
			f.RelaxedOrdering = true
			continue
		}
		w, ok := lit(w, "[")
		if !ok {
			continue
		}
		n, w, ok := whole(w)
		if !ok || len(w) < 2 || w[0] != ']' {
			continue
		}
		p := IBPort{Index: n}
		dev, link, _ := bytes.Cut(w[1:], []byte("/"))
		name, port, _ := bytes.Cut(dev, []byte(":"))
		num, rail, _ := bytes.Cut(port, []byte(":"))
		p.Device, p.LinkLayer, p.Rail = text(name), text(link), text(rail)
		setInt(&p.Port, num)
		f.Ports = append(f.Ports, p)
	}
}

// ibDevice takes what stands behind "[" of a detailed NET/IB line.
func (s *state) ibDevice(t *thread, b []byte) bool {
	n, rest, ok := whole(b)
	if !ok || len(rest) < 2 || rest[0] != ']' {
		s.log.Torn++
		return true
	}
	// The context is an address and differs from process to process.
	head := b
	if i := bytes.Index(b, []byte(" context=")); i >= 0 {
		head = b[:i]
	}
	s.setKey(t, head)
	f, fresh := get(s, &s.ibDevices, "HCA details")
	if f == nil {
		return true
	}
	s.see(&f.Seen, t)
	if !fresh {
		return true
	}
	f.Index = n
	for rest = blanks(rest[1:]); len(rest) > 0; {
		var w []byte
		w, rest = word(rest)
		k, v, ok := before(w, '=')
		if !ok {
			if f.Name != "" {
				continue
			}
			dev, link, _ := bytes.Cut(w, []byte("/"))
			parts := bytes.Split(dev, []byte(":"))
			f.Name, f.LinkLayer = text(parts[0]), text(link)
			if len(parts) > 2 {
				f.Verbs = text(parts[1])
			}
			if len(parts) > 1 {
				setInt(&f.Port, parts[len(parts)-1])
			}
			continue
		}
		switch string(k) {
		case "name":
			f.Name, f.Virtual = text(v), true
		case "provider":
			f.Provider = text(v)
		case "speed":
			if mbps, ok := intWord(v); ok && mbps > 0 {
				f.Speed = probe.Some(probe.Mbps(float64(mbps)))
			}
		case "pciPath":
			f.PCIPath = text(v)
		case "ar":
			if on, ok := intWord(v); ok {
				f.Adaptive = probe.Some(on != 0)
			}
		}
	}
	return true
}

// gdrLine takes "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'".
func (s *state) gdrLine(r *record, b []byte) bool {
	net, rest, _ := before(b[len("NET/"):], ':')
	i := bytes.Index(rest, []byte("GPU Direct RDMA "))
	if i < 0 {
		return false
	}
	state, rest := word(rest[i+len("GPU Direct RDMA "):])
	enabled := string(state) == "Enabled"
	rest, ok := lit(rest, "for HCA ")
	if !ok || !enabled && string(state) != "Disabled" {
		s.note(r.t, NoteNetwork, b)
		return true
	}
	n, rest, ok := whole(rest)
	name := bytes.Trim(rest, " '")
	if !ok || !r.whole && !bytes.HasSuffix(rest, []byte("'")) {
		s.log.Torn++
		return true
	}
	s.setKey(r.t, b)
	if f, fresh := get(s, &s.gdr, "GPUDirect RDMA lines"); f != nil {
		if fresh {
			f.Network, f.Index, f.Device, f.Enabled = text(bytes.TrimSpace(net)), n, text(name), enabled
		}
		s.see(&f.Seen, r.t)
	}
	return true
}

// gdrPair takes "Enabled for GPU 1000 / HCA 0 (distance 7 <= 7), read 0".
func (s *state) gdrPair(t *thread, b []byte) bool {
	s.setKey(t, b)
	state, rest := word(b)
	rest, ok := lit(rest, "for GPU ")
	if !ok {
		return false
	}
	gpu, rest := word(rest)
	rest, ok1 := lit(rest, "/ HCA ")
	hca, rest := word(rest)
	rest, ok2 := lit(rest, "(distance ")
	dist, rest, ok3 := whole(rest)
	_, rest = word(blanks(rest))
	limit, _, ok4 := whole(rest)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		s.log.Torn++
		return true
	}
	if f, fresh := get(s, &s.gdrPairs, "GPUDirect RDMA pairs"); f != nil {
		if fresh {
			f.GPU, f.HCA, f.Enabled, f.Distance, f.Limit = text(gpu), text(hca), string(state) == "Enabled", dist, limit
		}
		s.see(&f.Seen, t)
	}
	return true
}

// mnnvl takes "MNNVL busId 0x60 fabric UUID a.b cliqueId 0x0 state 3 healthMask 0x0".
func (s *state) mnnvl(t *thread, b []byte) bool {
	rest, ok := lit(b, "MNNVL busId ")
	if !ok {
		if starts(b, "MNNVL ") {
			s.note(t, NoteMNNVL, b)
			return true
		}
		return false
	}
	var f Fabric
	f.BusID, rest, ok = hex(rest)
	if !ok {
		s.log.Torn++
		return true
	}
	rest = blanks(rest)
	full := false
	for len(rest) > 0 {
		var k, v []byte
		k, rest = word(rest)
		switch string(k) {
		case "UUID":
			v, rest = word(rest)
			f.UUID = text(v)
		case "cliqueId":
			v, rest = word(rest)
			f.CliqueID, _, _ = hex(v)
		case "state":
			v, rest = word(rest)
			f.State, _, _ = whole(v)
		case "healthMask":
			v, rest = word(rest)
			f.HealthMask, _, full = hex(v)
		}
	}
	if !full {
		s.log.Torn++
		return true
	}
	s.setKey(t, b)
	if p, fresh := get(s, &s.fabrics, "fabric lines"); p != nil {
		if fresh {
			*p = f
		}
		s.see(&p.Seen, t)
	}
	return true
}

func (s *state) warn(r *record) {
	body := bytes.TrimSpace(r.text)
	s.setKey(r.t, r.loc, body)
	f, fresh := get(s, &s.warnings, "warnings")
	if f == nil {
		return
	}
	if fresh {
		if r.loc != nil {
			f.File, f.Line = splitLoc(r.loc)
		}
		f.Func, f.Text, f.Time = text(r.fn), text(body), text(r.time)
		if r.dev >= 0 {
			f.Dev = probe.Some(r.dev)
		}
		if r.t != nil && r.t.inst != nil && r.t.inst.bound {
			f.Rank = probe.Some(r.t.inst.m.Rank)
			if r.t.inst.hasID {
				f.Comm = hexID(r.t.inst.id)
			}
		}
	}
	s.see(&f.Seen, r.t)
}

// plainLine takes a line without a record.
func (s *state) plainLine(b []byte) {
	if s.matrix > 0 {
		s.matrix--
		if bytes.IndexByte(b, '|') > 0 && len(s.log.Matrix) < 64 {
			s.log.Matrix = append(s.log.Matrix, text(b[:min(len(b), maxNote)]))
			return
		}
	}
	if isBareWarning(b) {
		s.rec = record{envelope: envelope{dev: -1}, level: levelWarn, whole: true, text: b}
		s.record(&s.rec)
		return
	}
	// The end of a connection line whose begin was lost.
	if b = bareConnection(b); b != nil {
		s.rec = record{envelope: envelope{dev: -1}, whole: true}
		if s.connection(&s.rec, -1, -1, b) {
			s.log.Records++
		}
	}
}

// bareConnection returns the part of a line from "0[1a000] -> 1[6b000] via" on,
// nil where there is none.
func bareConnection(b []byte) []byte {
	i := bytes.Index(b, []byte("] -> "))
	if i < 0 {
		return nil
	}
	_, via, _ := bytes.Cut(b[i:], []byte(" via "))
	if !slices.ContainsFunc([]string{"P2P/", "SHM/", "NET/", "COLLNET/", "direct shared memory"}, func(t string) bool { return starts(via, t) }) {
		return nil
	}
	for i > 0 && b[i-1] != ' ' && b[i-1] != '\t' {
		i--
	}
	if _, _, rest, ok := peer(b[i:]); !ok || !starts(rest, " -> ") {
		return nil
	}
	return b[i:]
}

// bareWarnings are beginnings of warnings that nothing but NCCL prints, so that
// they are known without what stands before them in a log.
var bareWarnings = []string{
	"P2P is disabled between NVLINK connected GPUs ", "No transport found for rank ", "Error: failed to extend /dev/shm/nccl-",
	"Failed to bind NVLink SHARP (NVLS) Multicast memory", "NET/IB : Got completion from peer ", "NET/IB: Got completion from peer ",
	"Detected mixed local Net device counts across ranks", "Mismatched NCCL version detected", "No algorithm/protocol available for function ",
}

func isBareWarning(b []byte) bool {
	b = blanks(b)
	return len(b) > 0 && bytes.IndexByte([]byte("PNEFDM"), b[0]) >= 0 && slices.ContainsFunc(bareWarnings, func(w string) bool { return starts(b, w) })
}
