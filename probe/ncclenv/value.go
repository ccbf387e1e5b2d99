package ncclenv

import (
	"slices"
	"strconv"
	"strings"
)

// Effect is what NCCL takes from a value.
type Effect struct {
	// Value is what is in effect, in NCCL's own spelling; "" = as if it were unset.
	Value string
	// Complaints say, a sentence each, where the value does not mean what it
	// seems to; empty when all is well.
	Complaints []string
	// Fails: NCCL refuses to start.
	Fails bool
	// Fix is a better spelling of what was meant; "" where there is none or it is
	// not clear. It may stand without a complaint (path classes as numbers).
	Fix string
}

// pathClasses are the words of a level, nearest first (graph/topo.cc), and
// legacyLevels what the numbers of older versions mean (graph/paths.cc).
var (
	pathClasses  = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}
	legacyLevels = []string{"LOC", "PIX", "PXB", "PHB", "SYS"}
)

// Effective says what that version of NCCL ("" = the newest) takes from a value,
// and what is odd about it. Whether it is wise is another question.
func (v Variable) Effective(value, nccl string) Effect {
	if value == "" {
		return Effect{}
	}
	var e Effect
	switch v.Type {
	case Integer, Switch, Size:
		e = v.numberEffect(value)
	case Level:
		e = v.levelEffect(value)
	case OneWord:
		e = v.wordEffect(value, nccl)
	case WordList:
		e = v.wordsEffect(value, nccl)
	case PerFunction:
		e = v.selectionEffect(value, nccl)
	case Devices:
		e = v.devicesEffect(value)
	case Boolean:
		e.Value = value
		if !slices.Contains([]string{"0", "1", "true", "false"}, strings.ToLower(value)) {
			e.complain("%q is none of 0 1 true false", value)
		}
	case Path:
		e.Value = value
		if strings.HasPrefix(value, "~") {
			e.complain("NCCL does not expand ~")
		}
	case Plugin:
		e.Value = value
		if strings.Contains(value, ",") && !reached(nccl, "2.28") {
			e.complain("a list; NCCL before 2.28 takes one name")
		}
	default:
		e.Value = value
	}
	if n := len(value); n > 1 && value[0] == value[n-1] && strings.ContainsAny(value[:1], `"'`) {
		e.complain("the quotes are part of the value")
		e.Fix = value[1 : n-1]
	}
	return e
}

// numberEffect reads as strtoll with base 0 does (misc/param.cc).
func (v Variable) numberEffect(value string) Effect {
	n, rest, ok := strtoll(value)
	digits := len(value) > len(rest)
	e := Effect{Value: strconv.FormatInt(n, 10)}
	switch {
	case !digits:
		e.complain("%q is no number; NCCL takes 0", value)
		if v.Type == Switch {
			e.Fix = map[string]string{"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}[strings.ToLower(value)]
		}
		return e
	case !ok:
		e.Value = v.Default
		e.complain("%s is out of range; NCCL takes its default", value)
		return e
	case strings.TrimSpace(rest) != "":
		e.complain("NCCL reads %d and not what follows it", n)
		if shift, ok := suffixes[strings.ToUpper(rest)]; ok && v.Type == Size && n > 0 && n < 1<<20 {
			e.Fix = strconv.FormatInt(n<<shift, 10)
		}
	case isOctal(value):
		e.complain("%s is octal, %d", value, n)
		e.Fix = strings.TrimLeft(strings.TrimSpace(value), "0")
	}
	names := v.words("")
	switch {
	case n < 0 && v.Default == "": // the numbers by which NCCL says "automatic"
	case v.Type == Switch && n != 0 && n != 1:
		e.complain("%d is neither 0 nor 1", n)
	case len(names) > 0 && !slices.Contains(names, e.Value):
		e.complain("%d is none of %s", n, strings.Join(names, " "))
	case v.Range != Range{} && (n < v.Range.Min || n > v.Range.Max):
		e.complain("%d is outside %s", n, v.Range)
	}
	return e
}

var suffixes = map[string]int{"K": 10, "KB": 10, "KIB": 10, "M": 20, "MB": 20, "MIB": 20, "G": 30, "GB": 30, "GIB": 30}

// strtoll reads a number as C does with base 0. ok is false when it does not fit
// into 64 bits; without a digit nothing is consumed.
func strtoll(s string) (n int64, rest string, ok bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	sign := ""
	if t != "" && (t[0] == '-' || t[0] == '+') {
		sign, t = t[:1], t[1:]
	}
	base, isDigit := 10, func(c byte) bool { return c >= '0' && c <= '9' }
	hex := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }
	switch {
	case len(t) > 2 && t[0] == '0' && t[1]|0x20 == 'x' && hex(t[2]):
		base, t, isDigit = 16, t[2:], hex
	case t != "" && t[0] == '0':
		base, isDigit = 8, func(c byte) bool { return c >= '0' && c <= '7' }
	}
	i := 0
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	if i == 0 {
		return 0, s, true
	}
	n, err := strconv.ParseInt(sign+t[:i], base, 64)
	return n, t[i:], err == nil
}

// isOctal reports a number that only its leading 0 makes another one.
func isOctal(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' && strings.Trim(s, "0") != ""
}

// levelEffect reads a path class (graph/paths.cc ncclGetLevel, and for fusion
// graph/topo.cc).
func (v Variable) levelEffect(value string) Effect {
	names := pathClasses
	if len(v.Words) > 0 {
		names = v.words("")
	}
	upper := strings.ToUpper(strings.TrimSpace(value))
	fusion := v.Name == "NCCL_NET_MERGE_LEVEL" // takes words only, and LOC for an unknown one
	switch {
	case slices.Contains(names, value):
		return Effect{Value: value}
	case value[0] >= '0' && value[0] <= '9' && !fusion:
		n, rest, ok := strtoll(value)
		if !ok || n >= int64(len(legacyLevels)) {
			n = int64(len(legacyLevels)) - 1
		}
		e := Effect{Value: legacyLevels[n], Fix: legacyLevels[n]}
		if rest != "" {
			e.complain("NCCL reads %d and not what follows it", n)
		}
		return e
	}
	e := Effect{}
	switch {
	case fusion:
		e.Value = "LOC"
		e.complain("%q is none of %s; NCCL takes LOC, no fusion", value, strings.Join(names, " "))
	default:
		e.complain("%q is none of %s, letter by letter; NCCL ignores it", value, strings.Join(names, " "))
	}
	if slices.Contains(names, upper) {
		e.Fix = upper
	}
	return e
}

// wordEffect reads one of a few words.
func (v Variable) wordEffect(value, nccl string) Effect {
	switch v.Name {
	case "NCCL_NETDEVS_POLICY": // graph/topo.cc
		if n, isMax := strings.CutPrefix(strings.ToUpper(value), "MAX:"); isMax {
			if k, err := strconv.Atoi(n); err == nil && k > 0 {
				return Effect{Value: "MAX:" + n}
			}
		} else if strings.EqualFold(value, "AUTO") || strings.EqualFold(value, "ALL") {
			return Effect{Value: strings.ToUpper(value)}
		}
		e := Effect{Value: v.Default}
		e.complain("%q is none of AUTO ALL MAX:N; NCCL takes AUTO", value)
		return e
	case "NCCL_CTA_POLICY":
		return v.policyEffect(value, nccl)
	}
	if w, ok := v.word(value, nccl); ok {
		return Effect{Value: w}
	}
	e := Effect{Value: v.Default}
	then := "NCCL ignores it"
	if v.Default != "" {
		then = "NCCL takes " + v.Default
	} else if v.Name == "NCCL_DEBUG" {
		then = "NCCL logs nothing"
	}
	e.complain("%q is none of %s; %s", value, strings.Join(v.words(nccl), " "), then)
	if i := slices.IndexFunc(v.words(nccl), func(w string) bool { return strings.EqualFold(w, strings.TrimSpace(value)) }); i >= 0 {
		e.Fix = v.words(nccl)[i]
	}
	return e
}

// policyEffect reads NCCL_CTA_POLICY (init.cc): words joined by |, or 0, 1, 2.
func (v Variable) policyEffect(value, nccl string) Effect {
	names := v.words(nccl)
	if value[0] >= '0' && value[0] <= '9' {
		n := int(value[0] - '0')
		if n < len(names) && len(value) == 1 {
			return Effect{Value: names[n], Fix: names[n]}
		}
		e := Effect{Value: v.Default}
		e.complain("%q is none of 0 1 2; NCCL looks at the first digit only", value)
		return e
	}
	var e Effect
	if !reached(nccl, "2.29") {
		e.Value = v.Default
		e.complain("NCCL before 2.29 takes only 0, 1 or 2")
		return e
	}
	var taken []string
	for p := range strings.SplitSeq(value, "|") {
		if w, ok := v.word(p, nccl); ok {
			taken = append(taken, w)
		} else if p != "" {
			e.complain("%q is none of %s", p, strings.Join(names, " "))
		}
	}
	e.Value = strings.Join(taken, "|")
	return e
}

// wordsEffect reads a comma list; what NCCL does not know it skips.
func (v Variable) wordsEffect(value, nccl string) Effect {
	list, inverted := strings.CutPrefix(value, "^")
	var e Effect
	var taken []string
	for w := range strings.SplitSeq(list, ",") {
		if name, ok := v.word(w, nccl); ok {
			taken = append(taken, name)
		} else if w != "" {
			e.complain("%q is none of %s; NCCL skips it", w, strings.Join(v.words(nccl), " "))
		}
	}
	if e.Value = strings.Join(taken, ","); inverted {
		e.Value = "^" + e.Value
	}
	return e
}

// selectionEffect reads NCCL_ALGO and NCCL_PROTO.
func (v Variable) selectionEffect(value, nccl string) Effect {
	var e Effect
	rows, dropped, err := v.Selections(value, nccl)
	if err != nil {
		e.Fails = true
		e.complain("%v; NCCL refuses to start", err)
		if tight := strings.ReplaceAll(value, " ", ""); tight != value {
			if _, _, err := v.Selections(tight, nccl); err == nil {
				e.Fix = tight
			}
		}
		return e
	}
	e.Value = spell(rows)
	for _, d := range dropped {
		e.complain("%q is none of %s; NCCL before %s skips it", d, strings.Join(v.words(nccl), " "), perFunctionSince)
	}
	if len(rows[0].Allowed) == 0 {
		e.complain("no word is left; NCCL before %s falls back to Ring", perFunctionSince)
	}
	return e
}
