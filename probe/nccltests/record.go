package nccltests

import "bytes"

// recordAt finds "NCCL INFO " and its like.
func recordAt(b []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte("NCCL "))
		if i < 0 {
			return -1
		}
		at := from + i
		rest := b[at+5:]
		for _, w := range []string{"INFO ", "WARN ", "TRACE ", "CALL ", "DIAG ", "version "} {
			if bytes.HasPrefix(rest, []byte(w)) {
				return at
			}
		}
		from = at + 5
	}
}

// recordStart finds where the envelope "host:pid:tid [dev] " of the record at
// begins. A row may stand before it without a blank between; a host of the
// device list tells where.
func (s *state) recordStart(b []byte, at int) int {
	end := at
	for range 5 {
		for end > 0 && b[end-1] == ' ' {
			end--
		}
		from := end
		for from > 0 && b[from-1] != ' ' && b[from-1] != '\t' {
			from--
		}
		if from == end {
			break
		}
		if host, ok := hostOf(b[from:end]); ok {
			// Most records have nothing before them: only a figure of a row
			// could then be glued on.
			if c := host[0]; c > '9' && c != 'N' && len(bytes.TrimLeft(b[:from], " \t")) == 0 {
				return from
			}
			for _, h := range s.hosts {
				if len(host) > len(h) && bytes.HasSuffix(host, h) {
					return from + len(host) - len(h)
				}
			}
			return from
		}
		end = from
	}
	return at
}

// hostOf splits "host:pid:tid".
func hostOf(tok []byte) ([]byte, bool) {
	j := bytes.LastIndexByte(tok, ':')
	if j <= 0 || !isDigits(tok[j+1:]) {
		return nil, false
	}
	i := bytes.LastIndexByte(tok[:j], ':')
	if i <= 0 || !isDigits(tok[i+1:j]) {
		return nil, false
	}
	return tok[:i], true
}

var environment = []byte(" set by environment to ")

// record takes from an NCCL record what belongs to the run: version, settings,
// the collective that is called.
func (s *state) record(n int, b []byte) {
	if bytes.HasPrefix(b, []byte("NCCL INFO ")) {
		if t := s.running(); t != nil {
			t.Told = true
		} else {
			s.told = true
		}
	}
	if i := bytes.Index(b, environment); i > 0 {
		name := b[:i]
		name = name[bytes.LastIndexByte(name, ' ')+1:]
		if bytes.HasPrefix(name, []byte("NCCL_")) {
			value := bytes.TrimRight(b[i+len(environment):], ". \t")
			s.setting(Setting{Name: s.text(name), Value: s.text(value), Line: n})
		}
		return
	}
	if i := bytes.Index(b, []byte(": opCount ")); i > 0 {
		if s.op == "" {
			name := b[:i]
			s.op = s.text(name[bytes.LastIndexByte(name, ' ')+1:])
		}
		return
	}
	if i := bytes.Index(b, []byte("NCCL version ")); i >= 0 {
		v := b[i+len("NCCL version "):]
		if j := bytes.IndexAny(v, "+ "); j >= 0 {
			v = v[:j]
		}
		if t := s.running(); t != nil && t.NCCL == "" && len(v) > 0 && v[0] >= '0' && v[0] <= '9' {
			t.NCCL = s.text(v)
		}
		return
	}
	// NCCL_IB_HCA and a few others have a wording of their own.
	if i := bytes.Index(b, []byte(" set to ")); i > 0 {
		name := b[:i]
		name = name[bytes.LastIndexByte(name, ' ')+1:]
		if bytes.HasPrefix(name, []byte("NCCL_")) {
			s.setting(Setting{Name: s.text(name), Value: s.text(b[i+len(" set to "):]), Line: n})
		}
	}
}

// setting keeps a variable once for each value.
func (s *state) setting(x Setting) {
	list := &s.pending
	if t := s.running(); t != nil {
		list = &t.Settings
	}
	for _, have := range *list {
		if have.Name == x.Name && have.Value == x.Value {
			return
		}
	}
	if len(*list) >= maxSettings {
		s.out.Dropped++
		return
	}
	*list = append(*list, x)
}
