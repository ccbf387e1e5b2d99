package kernlog

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/probe"
)

// Sniff reports whether a text is a kernel log: one line of the NVIDIA driver
// or of an NVSwitch, or three with the marks of kernel messages. head may end in
// the middle of a line.
func Sniff(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	n := 0
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		line = line[:min(len(line), 8<<10)]
		if bytes.Contains(line, []byte("NVRM: Xid (")) || bytes.Contains(line, []byte(" SXid (PCI:")) ||
			bytes.Contains(line, []byte("NVRM: loading NVIDIA")) || bytes.HasPrefix(line, []byte("NVRM version: ")) {
			return true
		}
		p := splitLine(line)
		if p.kernel {
			if n++; n >= 3 || bytes.HasPrefix(p.msg, []byte("NVRM: ")) {
				return true
			}
		}
	}
	return false
}

// Read reads a kernel log to its end; name is the input's base name. A text
// without any kernel message is a *probe.SyntaxError; a log in which nothing is
// the matter gives a Log without records. Memory is bounded however long the
// input is.
func Read(name string, r io.Reader) (*Log, error) {
	s := newState(name)
	if err := probe.EachLine(r, s.line); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s.finish()
}

// parts is a line taken apart.
type parts struct {
	kernel     bool // the line has the form of a kernel message
	time, host []byte
	msg        []byte
}

var kernelTag = []byte(" kernel: ")

// splitLine separates a message from what dmesg, journalctl and syslog daemons
// put before it:
//
//	[   12.345678] msg
//	[Tue Mar 17 21:04:30 2026] msg
//	kern  :err   : [   12.345678] msg
//	Mar 17 21:04:30 host kernel: [   12.345678] msg
//	2026-03-17T21:04:30.123456+00:00 host kernel: msg
//	<4>[   12.345678] msg
//	6,1234,5678901,-;msg
func splitLine(b []byte) parts {
	p := parts{msg: bytes.TrimLeft(b, " \t")}
	if m := p.msg; len(m) > 3 && m[0] == '<' && m[1] >= '0' && m[1] <= '9' {
		if i := bytes.IndexByte(m[:min(len(m), 5)], '>'); i > 0 {
			p.msg = m[i+1:]
		}
	}
	if len(p.msg) == 0 {
		return p
	}
	for range 2 {
		m := p.msg
		if i := bracketTime(m); i > 0 {
			p.kernel = true
			if p.time == nil {
				p.time = bytes.Trim(m[1:i], " ")
			}
			p.msg = bytes.TrimLeft(m[i+1:], " ")
			continue
		}
		if i := bytes.Index(m[:min(len(m), 160)], kernelTag); i > 0 && p.host == nil {
			head := m[:i]
			j := bytes.LastIndexByte(head, ' ')
			if j > 0 || p.kernel {
				p.kernel = true
				p.host = head[j+1:]
				if p.time == nil && j > 0 {
					p.time = bytes.TrimRight(head[:j], " ")
				}
				p.msg = m[i+len(kernelTag):]
				continue
			}
		}
		break
	}
	if p.kernel {
		return p
	}
	m := p.msg
	switch c := m[0]; {
	case c >= '0' && c <= '9':
		// /dev/kmsg: priority,sequence,microseconds,flags;message
		if i := bytes.IndexByte(m[:min(len(m), 80)], ';'); i > 0 && bytes.Count(m[:i], []byte(",")) >= 3 {
			f := bytes.SplitN(m[:i], []byte(","), 4)
			if digits(f[0]) && digits(f[1]) && digits(f[2]) {
				p.kernel, p.time, p.msg = true, f[2], m[i+1:]
			}
		}
	case c >= 'a' && c <= 'z':
		// dmesg -x
		if i := bytes.IndexByte(m[:min(len(m), 24)], '['); i > 0 && bytes.Count(m[:i], []byte(":")) == 2 {
			if j := bracketTime(m[i:]); j > 0 {
				p.kernel, p.time, p.msg = true, bytes.Trim(m[i+1:i+j], " "), bytes.TrimLeft(m[i+j+1:], " ")
			}
		}
	}
	return p
}

// bracketTime returns the index of the bracket that closes a time at the
// beginning of b, 0 where there is none.
func bracketTime(b []byte) int {
	if len(b) < 6 || b[0] != '[' {
		return 0
	}
	end := bytes.IndexByte(b[:min(len(b), 40)], ']')
	if end < 5 {
		return 0
	}
	in := b[1:end]
	if c := in[0]; c >= 'A' && c <= 'Z' {
		// Weekday, month, day, time, year.
		if len(in) >= 20 && in[3] == ' ' && bytes.Count(in, []byte(":")) == 2 {
			return end
		}
		return 0
	}
	dot := -1
	for i, c := range in {
		switch {
		case c == '.' && dot < 0:
			dot = i
		case c == ' ' && dot < 0:
		case c < '0' || c > '9':
			// dmesg may add the caller: "[   12.345678][  T123]" closes
			// the first bracket before it.
			return 0
		}
	}
	if dot < 1 || len(in)-dot-1 != 6 {
		return 0
	}
	return end
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

func (s *state) fault(line int, msg string) error {
	return &probe.SyntaxError{File: s.log.File, Line: line, Msg: msg}
}
