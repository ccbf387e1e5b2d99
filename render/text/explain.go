package text

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Explanation is what one rule, path class, code or NCCL variable means.
type Explanation struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind"` // rule, path class, topo -m code, variable
	Title    string            `json:"title"`
	Doc      string            `json:"doc,omitempty"`
	Variable *ncclenv.Variable `json:"variable,omitempty"` // of NCCL itself
}

const kindVariable = "variable"

// Topics lists everything that can be explained: rules in catalogue order, path
// classes best first, the codes that only nvidia-smi uses, and NCCL's variables
// by name.
func Topics() []Explanation {
	var out []Explanation
	for _, r := range check.All() {
		out = append(out, Explanation{Name: r.ID, Kind: "rule", Title: r.Title, Doc: r.Doc})
	}
	for _, c := range graph.PathClasses() {
		out = append(out, Explanation{Name: c.String(), Kind: "path class", Title: c.Doc()})
	}
	out = append(out,
		Explanation{Name: "NODE", Kind: "topo -m code", Title: "PHB between two host bridges of one NUMA node; NCCL makes no difference"},
		Explanation{Name: "NV#", Kind: "topo -m code", Title: "# NVLinks, direct or through NVSwitch; NCCL's class NVL"})
	for _, v := range ncclenv.Variables() {
		out = append(out, Explanation{Name: v.Name, Kind: kindVariable, Title: v.Meaning, Variable: &v})
	}
	return out
}

var nvCode = regexp.MustCompile(`^NV[0-9]+$`)

// Topic finds a name, in any case and for a variable also without NCCL_; NV18 is
// NV#. A variable that others read than NCCL is told as such.
func Topic(topics []Explanation, name string) (Explanation, bool) {
	name = strings.ToUpper(name)
	if nvCode.MatchString(name) {
		name = "NV#"
	}
	for _, n := range []string{name, "NCCL_" + name} {
		if i := slices.IndexFunc(topics, func(t Explanation) bool { return strings.ToUpper(t.Name) == n }); i >= 0 {
			return topics[i], true
		}
	}
	if by, ok := ncclenv.ReadElsewhere(name); ok {
		return Explanation{Name: name, Kind: kindVariable, Title: "not of NCCL; read by " + by}, true
	}
	return Explanation{}, false
}

// Nearest finds the variable that an unknown name probably stands for.
func Nearest(name string) (string, bool) {
	name = strings.ToUpper(name)
	if v, ok := ncclenv.Nearest(name); ok {
		return v, true
	}
	return ncclenv.Nearest("NCCL_" + name)
}

// Explain prints one topic.
func Explain(w io.Writer, t Explanation) error {
	if _, err := fmt.Fprintf(w, "%s %s: %s\n", t.Kind, t.Name, t.Title); err != nil {
		return err
	}
	if v := t.Variable; v != nil {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		return Table(w, variableRows(v))
	}
	if t.Doc == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", t.Doc)
	return err
}

func variableRows(v *ncclenv.Variable) [][]string {
	value, ranks, documented := v.Default, "may differ between ranks", "by NVIDIA"
	if value == "" {
		value = "none, or NCCL decides"
	}
	if v.AllRanks {
		ranks = "must be equal on all ranks"
	}
	if !v.Documented {
		documented = "no; may change without notice"
	}
	rows := [][]string{
		{"group", string(v.Group)},
		{"accepts", v.Accepts()},
		{"default", value},
		{"read by NCCL", v.Versions()},
		{"risk", string(v.Risk) + ": " + v.Risk.Doc()},
		{"ranks", ranks},
		{"documented", documented},
		{"source", v.Source},
	}
	if v.Successor != "" {
		rows = append(rows, []string{"instead", v.Successor})
	}
	if len(v.Aliases) > 0 {
		rows = append(rows, []string{"also called", strings.Join(v.Aliases, " ")})
	}
	return rows
}

// Names lists the topics, the variables in one line unless all is asked for.
func Names(w io.Writer, topics []Explanation, all bool) error {
	var rows [][]string
	variables := 0
	for _, t := range topics {
		if t.Kind == kindVariable && !all {
			variables++
			continue
		}
		rows = append(rows, []string{t.Name, t.Title})
	}
	if variables > 0 {
		rows = append(rows, []string{"NCCL_…", fmt.Sprintf("%d variables of NCCL: ncclmap explain NCCL_NAME; --verbose lists them", variables)})
	}
	return Table(w, rows)
}
