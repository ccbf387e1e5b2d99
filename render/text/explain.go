package text

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
)

// Explanation is what one rule, path class or code means.
type Explanation struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // rule, path class, topo -m code
	Title string `json:"title"`
	Doc   string `json:"doc,omitempty"`
}

// Topics lists everything that can be explained: rules in catalogue order, path
// classes best first, and the codes that only nvidia-smi uses.
func Topics() []Explanation {
	var out []Explanation
	for _, r := range check.All() {
		out = append(out, Explanation{r.ID, "rule", r.Title, r.Doc})
	}
	for _, c := range graph.PathClasses() {
		out = append(out, Explanation{c.String(), "path class", c.Doc(), ""})
	}
	return append(out,
		Explanation{"NODE", "topo -m code", "PHB between two host bridges of one NUMA node; NCCL makes no difference", ""},
		Explanation{"NV#", "topo -m code", "# NVLinks, direct or through NVSwitch; NCCL's class NVL", ""})
}

var nvCode = regexp.MustCompile(`^NV[0-9]+$`)

// Topic finds a name, in any case; NV18 is NV#.
func Topic(topics []Explanation, name string) (index int, ok bool) {
	name = strings.ToUpper(name)
	if nvCode.MatchString(name) {
		name = "NV#"
	}
	i := slices.IndexFunc(topics, func(t Explanation) bool { return strings.ToUpper(t.Name) == name })
	return i, i >= 0
}

// Explain prints one topic.
func Explain(w io.Writer, t Explanation) error {
	text := fmt.Sprintf("%s %s: %s\n", t.Kind, t.Name, t.Title)
	if t.Doc != "" {
		text += "\n" + t.Doc + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Names lists the topics.
func Names(w io.Writer, topics []Explanation) error {
	var rows [][]string
	for _, t := range topics {
		rows = append(rows, []string{t.Name, t.Title})
	}
	return Table(w, rows)
}
