package ncclenv

import (
	"fmt"
	"slices"
	"strings"
)

// algorithms and protocols by the versions that know them (env.rst).
var (
	algorithms = []Word{
		{Name: "Tree"}, {Name: "Ring"},
		{Name: "Collnet", Until: "2.14"},
		{Name: "CollNetDirect", Since: "2.14"}, {Name: "CollNetChain", Since: "2.14"},
		{Name: "NVLS", Since: "2.17"}, {Name: "NVLSTree", Since: "2.18"},
		{Name: "PAT", Since: "2.23"},
	}
	protocols = words("LL", "LL128", "Simple")
)

// perFunctionSince is the first NCCL with a list for each collective, where an
// unknown word is an error and Ring no longer steps in (env.rst).
const perFunctionSince = "2.24"

// functions are the collectives in NCCL's order.
var functions = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// Selection is what NCCL_ALGO or NCCL_PROTO allows one collective.
type Selection struct {
	Function string
	Allowed  []string // in NCCL's order
	// Set: the value speaks of this collective. Then LL128, where it is allowed,
	// is forced on: NCCL no longer asks whether the platform is safe for it
	// (graph/tuning.cc parseList; ^LL does so too).
	Set bool
}

// Selections reads the value of NCCL_ALGO or NCCL_PROTO as that NCCL version
// does ("" = the newest): what each collective may use. A value that NCCL
// refuses is an error, and what it drops silently (before 2.24) is in dropped.
func (v Variable) Selections(value, nccl string) (rows []Selection, dropped []string, err error) {
	known := v.words(nccl)
	for _, f := range functions {
		rows = append(rows, Selection{Function: f, Allowed: known})
	}
	if !reached(nccl, perFunctionSince) {
		if value == "" {
			return rows, nil, nil
		}
		allowed, dropped := v.choose(value, nccl)
		for i := range rows {
			rows[i].Allowed, rows[i].Set = allowed, true
		}
		return rows, dropped, nil
	}
	// Empty entries and words are skipped, as strtok does.
	entries := strings.FieldsFunc(value, func(r rune) bool { return r == ';' })
	for i, entry := range entries {
		parts := strings.FieldsFunc(entry, func(r rune) bool { return r == ':' })
		if len(parts) == 0 {
			continue
		}
		function, list := "", parts[0]
		if len(parts) > 1 { // what follows a second colon is not read
			function, list = parts[0], parts[1]
		} else if i > 0 {
			return nil, nil, fmt.Errorf("%q names no collective; only the first entry may do so", entry)
		}
		allowed, unknown := v.choose(list, nccl)
		if len(unknown) > 0 {
			return nil, nil, fmt.Errorf("%q is none of %s", unknown[0], strings.Join(known, " "))
		}
		found := false
		for i := range rows {
			if function == "" || strings.EqualFold(function, rows[i].Function) {
				rows[i].Allowed, rows[i].Set, found = allowed, true, true
			}
		}
		if !found {
			return nil, nil, fmt.Errorf("%q is none of %s", function, strings.Join(functions, " "))
		}
	}
	return rows, nil, nil
}

// choose reads one comma list, which ^ in front inverts.
func (v Variable) choose(list, nccl string) (allowed, unknown []string) {
	list, except := strings.CutPrefix(list, "^")
	var named []string
	for w := range strings.SplitSeq(list, ",") {
		if name, ok := v.word(w, nccl); ok {
			named = append(named, name)
		} else if w != "" {
			unknown = append(unknown, w)
		}
	}
	for _, w := range v.words(nccl) {
		if slices.Contains(named, w) != except {
			allowed = append(allowed, w)
		}
	}
	return allowed, unknown
}

// spell writes selections in NCCL's own form.
func spell(rows []Selection) string {
	first := strings.Join(rows[0].Allowed, ",")
	if !slices.ContainsFunc(rows, func(r Selection) bool { return !r.Set || strings.Join(r.Allowed, ",") != first }) {
		return first
	}
	var out []string
	for _, r := range rows {
		if r.Set {
			out = append(out, r.Function+":"+strings.Join(r.Allowed, ","))
		}
	}
	return strings.Join(out, ";")
}
