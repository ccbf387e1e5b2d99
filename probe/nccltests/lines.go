package nccltests

import (
	"bytes"
	"math"
	"strconv"
)

// clean removes what stands in a line without being part of it: colours,
// carriage returns, no-break spaces and the tags of mpirun --tag-output, which
// stand before every write and so also within a row. It returns line itself
// where nothing is to be removed.
func clean(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 && bytes.IndexByte(line, '\r') < 0 && bytes.IndexByte(line, '<') < 0 && bytes.IndexByte(line, 0xc2) < 0 {
		return line
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == 0x1b:
			i = escapeEnd(line, i)
		case c == '\r':
			out = append(out, ' ')
			i++
		case c == 0xc2 && i+1 < len(line) && line[i+1] == 0xa0:
			out = append(out, ' ')
			i += 2
		case c == '[':
			if n := tagLen(line[i:]); n > 0 {
				out = append(out, ' ')
				i += n
				continue
			}
			out = append(out, c)
			i++
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// escapeEnd returns the index behind the terminal control sequence at i.
func escapeEnd(b []byte, i int) int {
	if i+1 >= len(b) || b[i+1] != '[' {
		return i + 1
	}
	for i += 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
	}
	return i
}

// tagLen is the length of a tag "[1,0]<stdout>:" at the beginning of b.
func tagLen(b []byte) int {
	end := bytes.IndexByte(b[:min(len(b), 40)], ']')
	if end < 3 || bytes.IndexByte(b[:end], ',') < 0 {
		return 0
	}
	for _, c := range b[1:end] {
		if c != ',' && (c < '0' || c > '9') {
			return 0
		}
	}
	for _, s := range []string{"<stdout>:", "<stderr>:"} {
		if bytes.HasPrefix(b[end+1:], []byte(s)) {
			return end + 1 + len(s)
		}
	}
	return 0
}

// fields splits at blanks into dst.
func fields(dst [][]byte, b []byte) [][]byte {
	for i := 0; i < len(b); {
		for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		from := i
		for i < len(b) && b[i] != ' ' && b[i] != '\t' {
			i++
		}
		if i > from {
			dst = append(dst, b[from:i])
		}
	}
	return dst
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

func isType(b []byte) bool {
	switch string(b) {
	case "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
		"f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "char", "int":
		return true
	}
	return false
}

func isOp(b []byte) bool {
	switch string(b) {
	case "sum", "prod", "min", "max", "avg", "mulsum", "none":
		return true
	}
	return false
}

// rowStart finds size, count and type within the first fields; what stands
// before them is a launcher's.
func rowStart(f [][]byte) int {
	for i := 0; i+2 < len(f) && i < 6; i++ {
		if isDigits(f[i]) && isDigits(f[i+1]) && isType(f[i+2]) {
			return i
		}
	}
	return -1
}

// number is a printed figure with half of its last digit.
type number struct {
	v, half float64
}

// parseNumber reads a figure; ok is false for what is none, and known false for
// N/A, nan and inf.
func parseNumber(b []byte) (n number, known, ok bool) {
	switch string(b) {
	case "N/A", "nan", "-nan", "inf", "-inf":
		return number{}, false, true
	}
	if len(b) == 0 || len(b) > 32 {
		return number{}, false, false
	}
	decimals, exp, dot := 0, 0, false
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			if dot {
				decimals++
			}
		case c == '.' && !dot:
			dot = true
		case c == '-' && i == 0:
		case (c == 'e' || c == 'E') && i > 0:
			e, err := strconv.Atoi(string(b[i+1:]))
			if err != nil || e < -99 || e > 99 {
				return number{}, false, false
			}
			exp = e
			goto parsed
		default:
			return number{}, false, false
		}
	}
parsed:
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return number{}, false, false
	}
	return number{v, 0.5 * math.Pow(10, float64(exp-decimals))}, true, true
}

// isNumber reports a figure, or what stands for one that is not known.
func isNumber(b []byte) bool {
	_, _, ok := parseNumber(b)
	return ok
}
