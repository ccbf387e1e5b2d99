package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
)

// Lint prints the findings about settings, and which value NCCL takes of each
// variable and why. Statements that lose, or of which none wins, stand below.
func Lint(w io.Writer, res check.Result, settings []check.Precedence, s Style) error {
	if len(settings) == 0 {
		_, err := fmt.Fprintln(w, "no setting of NCCL in the sources")
		return err
	}
	if err := Findings(w, res, s); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, "\nwhat NCCL takes:"); err != nil {
		return err
	}
	var rows [][]string
	for _, p := range settings {
		value, decided := p.Value.Get()
		if decided {
			rows = append(rows, []string{p.Name + "=" + value, place(p.Stated[0]), p.Why})
		} else {
			rows = append(rows, []string{p.Name, "", p.Why})
		}
		for i, st := range p.Stated {
			if decided && (i == 0 || st.Value == value && st.Note == "") {
				continue
			}
			row := []string{"  or " + st.Value, place(st), st.Note}
			if strings.HasSuffix(p.Why, st.Note) {
				row[2] = ""
			}
			if decided {
				row[0] = "  not " + st.Value
			}
			rows = append(rows, row)
		}
	}
	return Table(w, rows)
}

func place(s check.Stated) string {
	if s.Host == "" {
		return s.Where
	}
	return s.Where + " on " + s.Host
}
