package nccllog

import (
	"bytes"
	"strings"
)

// The helpers below take text from the front of b and return the rest. They are
// written by hand because a log may hold a hundred million lines.

func lit(b []byte, s string) ([]byte, bool) {
	if len(b) >= len(s) && string(b[:len(s)]) == s {
		return b[len(s):], true
	}
	return b, false
}

func starts(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

func isDigit(c byte) bool { return c-'0' < 10 }

// number reads a decimal integer of up to 18 digits.
func number(b []byte) (int64, []byte, bool) {
	i, neg := 0, false
	if len(b) > 0 && b[0] == '-' {
		neg, i = true, 1
	}
	start, v := i, int64(0)
	for i < len(b) && isDigit(b[i]) {
		v = v*10 + int64(b[i]-'0')
		i++
	}
	if i == start || i-start > 18 {
		return 0, b, false
	}
	if neg {
		v = -v
	}
	return v, b[i:], true
}

// whole reads an integer that fits a rank, an index or a count.
func whole(b []byte) (int, []byte, bool) {
	v, rest, ok := number(b)
	if !ok || v < -1<<31 || v >= 1<<31 {
		return 0, b, false
	}
	return int(v), rest, true
}

// hex reads a hexadecimal number of up to 16 digits, with or without 0x.
func hex(b []byte) (uint64, []byte, bool) {
	t, _ := lit(b, "0x")
	i, v := 0, uint64(0)
	for ; i < len(t); i++ {
		c := t[i]
		switch {
		case isDigit(c):
			c -= '0'
		case c-'a' < 6:
			c -= 'a' - 10
		case c-'A' < 6:
			c -= 'A' - 10
		default:
			c = 16
		}
		if c == 16 {
			break
		}
		v = v<<4 | uint64(c)
	}
	if i == 0 || i > 16 {
		return 0, b, false
	}
	return v, t[i:], true
}

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// decimal reads what %f prints. Up to 15 digits the result is the nearest float,
// as both parts of the division are exact.
func decimal(b []byte) (float64, []byte, bool) {
	i, neg := 0, false
	if len(b) > 0 && b[0] == '-' {
		neg, i = true, 1
	}
	v, digits, frac, dot := int64(0), 0, 0, false
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case isDigit(c):
			v = v*10 + int64(c-'0')
			digits++
			if dot {
				frac++
			}
		case c == '.' && !dot:
			dot = true
			continue
		default:
			goto done
		}
		if digits > 18 {
			return 0, b, false
		}
	}
done:
	if digits == 0 {
		return 0, b, false
	}
	f := float64(v) / powers[frac]
	if neg {
		f = -f
	}
	return f, b[i:], true
}

// word reads up to the next blank and skips the blanks behind it.
func word(b []byte) (w, rest []byte) {
	i := bytes.IndexByte(b, ' ')
	if i < 0 {
		return b, nil
	}
	return b[:i], blanks(b[i:])
}

func blanks(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// before splits at the first sep; ok is false without one.
func before(b []byte, sep byte) (head, rest []byte, ok bool) {
	i := bytes.IndexByte(b, sep)
	if i < 0 {
		return b, nil, false
	}
	return b[:i], b[i+1:], true
}

// plain removes terminal control sequences; the rest goes into buf.
func plain(buf, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != 0x1b {
			buf = append(buf, c)
			continue
		}
		if i+1 >= len(b) || b[i+1] != '[' {
			i++ // ESC and one character
			continue
		}
		for i += 2; i < len(b) && (b[i] < '@' || b[i] > '~'); i++ {
		}
	}
	return buf
}

// text is a kept copy: valid UTF-8 on one line, at most maxText bytes.
func text(b []byte) string {
	const maxText = 4000
	if len(b) > maxText {
		b = b[:maxText]
	}
	s := strings.ToValidUTF8(string(bytes.TrimRight(b, " \t")), "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || bidi(r) {
			return '?'
		}
		return r
	}, s)
}

// bidi reports a character that reorders what is shown around it.
func bidi(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
