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

var infoRecord = []byte(" NCCL INFO ")

// foreign reports a line that is one whole record "host:pid:tid [dev] NCCL INFO …"
// and says nothing about the run. In a log with full output nearly all lines are
// such; a host that begins with a digit may be a row's figure with a host behind.
func (s *state) foreign(b []byte) bool {
	at := bytes.Index(b, infoRecord)
	if at <= 0 || b[0] <= '9' || b[0] == 'N' || b[0] == '[' {
		return false
	}
	text := b[at+len(infoRecord):]
	if s.op == "" || len(text) == 0 || text[0] == 'N' {
		return false
	}
	head, dev, _ := bytes.Cut(b[:at], []byte(" "))
	if len(dev) > 0 && (dev[0] != '[' || dev[len(dev)-1] != ']' || bytes.IndexByte(dev, ' ') >= 0) {
		return false
	}
	_, ok := hostOf(head)
	return ok
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

var environment = []byte("set by environment to ")

// record takes from an NCCL record what belongs to the run: version, settings,
// the collective that is called. It looks at the begin of the text alone, as a log
// may hold a hundred million records.
func (s *state) record(n int, b []byte) {
	if bytes.HasPrefix(b, []byte("NCCL INFO ")) {
		if t := s.running(); t != nil {
			t.Told = true
		} else {
			s.told = true
		}
	}
	text := b[len("NCCL "):]
	if !bytes.HasPrefix(text, []byte("version ")) {
		text = text[bytes.IndexByte(text, ' ')+1:]
	}
	switch {
	case bytes.HasPrefix(text, []byte("NCCL_")):
		name, rest, _ := bytes.Cut(text, []byte(" "))
		if value, ok := bytes.CutPrefix(rest, environment); ok {
			s.setting(Setting{Name: s.text(name), Value: s.text(bytes.TrimRight(value, ". \t")), Line: n})
		} else if value, ok := bytes.CutPrefix(rest, []byte("set to ")); ok { // NCCL_IB_HCA and a few others
			s.setting(Setting{Name: s.text(name), Value: s.text(value), Line: n})
		}
	case s.op == "" && bytes.Contains(text[:min(len(text), 64)], []byte(": opCount ")):
		name, _, _ := bytes.Cut(text, []byte(":"))
		s.op = s.text(name)
	default:
		v, ok := bytes.CutPrefix(bytes.TrimPrefix(text, []byte("NCCL ")), []byte("version "))
		if !ok {
			return
		}
		if j := bytes.IndexAny(v, "+ "); j >= 0 {
			v = v[:j]
		}
		if t := s.running(); t != nil && t.NCCL == "" && len(v) > 0 && v[0] >= '0' && v[0] <= '9' {
			t.NCCL = s.text(v)
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
