package text

import (
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
)

// Explain prints what a rule or a path class is; false if there is none of
// that name.
func Explain(w io.Writer, name string) bool {
	if r, ok := check.Find(name); ok {
		fmt.Fprintf(w, "rule %s: %s\n\n%s\n", r.ID, r.Title, r.Doc)
		return true
	}
	for _, c := range graph.PathClasses() {
		if c.String() == name {
			fmt.Fprintf(w, "path class %s: %s\n", c, c.Doc())
			return true
		}
	}
	return false
}

// Names lists what Explain knows.
func Names(w io.Writer) error {
	var rows [][]string
	for _, r := range check.All() {
		rows = append(rows, []string{r.ID, r.Title})
	}
	for _, c := range graph.PathClasses() {
		rows = append(rows, []string{c.String(), c.Doc()})
	}
	return Table(w, rows)
}
