package ncclenv

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is how NCCL reads a value.
type Type string

// The types. Numbers are read by strtoll with base 0: 0x10 is 16, 010 is 8, text
// behind the number is ignored and text without a number is 0.
const (
	Integer     Type = "integer"
	Switch      Type = "switch"    // integer, 0 or 1
	Size        Type = "size"      // integer; bytes, without a suffix
	Boolean     Type = "boolean"   // 0, 1, true or false (NCCL 2.30 and later)
	OneWord     Type = "word"      // one of Words
	WordList    Type = "words"     // comma list of Words; ^ in front inverts it
	Level       Type = "level"     // path class, at most so far away
	Devices     Type = "devices"   // comma list of names; ^ and = in front of all
	PerFunction Type = "selection" // names, for all collectives or each
	Path        Type = "path"      // file name, taken as it is
	Plugin      Type = "plugin"    // library: name, suffix, path, none
	Text        Type = "text"
)

// Doc says what a value of the type is.
func (t Type) Doc() string {
	return map[Type]string{
		Integer:     "integer",
		Switch:      "0 or 1",
		Size:        "bytes, without K, M or G",
		Boolean:     "0, 1, true or false",
		OneWord:     "one word",
		WordList:    "words joined by commas, ^ in front inverts the list",
		Level:       "path class in capitals: " + strings.Join(pathClasses, " "),
		Devices:     "names joined by commas, in front of all ^ to exclude and = for exact names",
		PerFunction: "names joined by commas, ^ in front inverts the list; since 2.24 also COLLECTIVE:LIST;…",
		Path:        "file name, ~ is not expanded",
		Plugin:      "library: name, suffix, path or none",
		Text:        "text",
	}[t]
}

// Group is the part of NCCL that a variable belongs to.
type Group string

// The groups.
const (
	Logging     Group = "logging and checks"
	StartUp     Group = "start-up and host"
	Network     Group = "network"
	InfiniBand  Group = "InfiniBand and RoCE"
	GPUPaths    Group = "paths between GPUs"
	Collectives Group = "collectives"
	Memory      Group = "memory"
	GPUNetwork  Group = "GPU-initiated network"
	Plugins     Group = "plugins"
)

// Risk says how long a setting may stay.
type Risk string

// The risks, after NVIDIA's split into configuration and debugging and our own
// reading of the source.
const (
	Site      Risk = "site"      // describes the site; may be kept
	Tuning    Risk = "tuning"    // needs a measurement, again after each upgrade
	Debugging Risk = "debugging" // for experiments and to work round a fault
	Dangerous Risk = "dangerous" // can corrupt data, hang, crash or fail
	NoEffect  Risk = "none"      // no NCCL in use reads it any more
)

// Doc says what a risk means.
func (r Risk) Doc() string {
	return map[Risk]string{
		Site:      "describes the site, may be kept",
		Tuning:    "keep only with a measurement behind it, check again at each NCCL upgrade",
		Debugging: "for experiments and as a workaround, not to be kept",
		Dangerous: "can corrupt data, hang, crash or fail",
		NoEffect:  "no effect",
	}[r]
}

// Range is the numbers that make sense, both ends included; the zero Range is
// not known.
type Range struct{ Min, Max int64 }

func atLeast(n int64) Range { return Range{n, math.MaxInt64} }

// MarshalJSON leaves an open end out.
func (r Range) MarshalJSON() ([]byte, error) {
	if r.Max == math.MaxInt64 {
		return fmt.Appendf(nil, `{"min":%d}`, r.Min), nil
	}
	return fmt.Appendf(nil, `{"min":%d,"max":%d}`, r.Min, r.Max), nil
}

// String writes a range for people.
func (r Range) String() string {
	if r.Max == math.MaxInt64 {
		return fmt.Sprintf("%d and above", r.Min)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

// Word is an accepted word and the versions that accept it.
type Word struct {
	Name  string `json:"name"`
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

func words(names ...string) []Word {
	out := make([]Word, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// Variable is one environment variable that some NCCL reads.
type Variable struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Group is for lists; Unit is "" where a number counts nothing in particular.
	Group Group  `json:"group"`
	Unit  string `json:"unit,omitempty"`
	// Default is what NCCL 2.30.7 takes, or the last or first version that knows the
	// name; "" = nothing, or NCCL decides.
	Default string `json:"default"`
	Words   []Word `json:"words,omitempty"`
	Range   Range  `json:"range,omitzero"`
	// CaseSensitive marks words that NCCL compares letter by letter.
	CaseSensitive bool `json:"case_sensitive,omitempty"`
	// Since is the first release that reads it, "" from before 2.3.5 on; Until is
	// the first that no longer does, "" while it does.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	Risk  Risk   `json:"risk"`
	// AllRanks: ranks with different values hang or fail.
	AllRanks bool `json:"equal_on_all_ranks"`
	// Successor is what to set instead.
	Successor string `json:"successor,omitempty"`
	// Aliases are older names, and names that NCCL's log uses.
	Aliases []string `json:"aliases,omitempty"`
	// Documented by NVIDIA (env.rst); others may change without notice.
	Documented bool   `json:"documented"`
	Source     string `json:"source"` // where NCCL reads it, or what tells of it
	Meaning    string `json:"meaning"`
}

var table = slices.SortedFunc(slices.Values(slices.Concat(logging, startUp, network, infiniBand, gpuPaths, collectives, memory, gpuNetwork, plugins)),
	func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })

// Variables lists every variable that NCCL reads or read, by name.
func Variables() []Variable { return slices.Clone(table) }

// Lookup finds a variable of NCCL itself by its exact name.
func Lookup(name string) (Variable, bool) {
	i, ok := slices.BinarySearchFunc(table, name, func(v Variable, name string) int { return cmp.Compare(v.Name, name) })
	if !ok {
		return Variable{}, false
	}
	return table[i], true
}

// ReadBy says whether an NCCL version reads the variable, and whether that is
// certain: it is not for a version that cannot be read, that is newer than
// Newest, or that states no patch level where one decides.
func (v Variable) ReadBy(version string) (read, known bool) {
	r, ok := parseRelease(version)
	if !ok {
		return v.Until == "", false
	}
	newest, _ := parseRelease(Newest)
	first, _ := parseRelease(cmp.Or(v.Since, oldest))
	c, sure := r.compare(first)
	read, known = c >= 0, sure
	if v.Until != "" {
		last, _ := parseRelease(v.Until)
		c, sure := r.compare(last)
		read, known = read && c < 0, known && sure
	}
	if c, _ := r.compare(newest); c > 0 {
		known = false
	}
	if v.Since == "" && !read && v.Until == "" {
		known = false // older than what the sources list
	}
	return read, known
}

// Accepts says what the newest NCCL accepts as a value.
func (v Variable) Accepts() string {
	parts := []string{v.Type.Doc()}
	if v.Type == Level && len(v.Words) > 0 {
		parts[0] = "one word in capitals"
	}
	if len(v.Words) > 0 {
		parts = append(parts, strings.Join(v.words(""), " "))
	}
	if v.Range != (Range{}) {
		parts = append(parts, v.Range.String())
	}
	if v.Unit != "" {
		parts = append(parts, v.Unit)
	}
	return strings.Join(parts, "; ")
}

// Versions says which NCCL reads the variable.
func (v Variable) Versions() string {
	switch {
	case v.Since == "" && v.Until == "":
		return "every version since " + oldest + " or before"
	case v.Since == "":
		return "versions before " + v.Until
	case v.Until == "":
		return v.Since + " and later"
	}
	return v.Since + " and later, before " + v.Until
}

// words lists the words that a version accepts.
func (v Variable) words(version string) []string {
	var out []string
	for _, w := range v.Words {
		if (w.Since == "" || reached(version, w.Since)) && (w.Until == "" || version != "" && !reached(version, w.Until)) {
			out = append(out, w.Name)
		}
	}
	return out
}

// word finds the spelling of a word that a version accepts.
func (v Variable) word(s, version string) (string, bool) {
	for _, w := range v.words(version) {
		if s == w || !v.CaseSensitive && strings.EqualFold(s, w) {
			return w, true
		}
	}
	return "", false
}
