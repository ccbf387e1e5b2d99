package text

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ncclmap/ncclmap/graph"
)

// Matrix prints the class of every pair of GPUs and HCAs in nvidia-smi's codes
// (NV18, PIX, PXB, PHB, NODE, SYS); ? is a pair on which the facts are silent.
func Matrix(w io.Writer, t *graph.Topology) error {
	devices := append(t.Of(graph.KindGPU), t.Of(graph.KindHCA)...)
	if len(devices) == 0 {
		_, err := io.WriteString(w, "no GPU and no HCA seen\n")
		return err
	}
	header := []string{""}
	for _, d := range devices {
		header = append(header, d.Label)
	}
	rows := [][]string{append(header, "NUMA")}
	for _, a := range devices {
		row := []string{a.Label}
		for _, b := range devices {
			row = append(row, t.SMICode(a, b))
		}
		rows = append(rows, append(row, homeText(a)))
	}
	return Table(w, rows)
}

func homeText(n *graph.Node) string {
	if n.Home == nil || n.Home.Hidden {
		if n.Kind == graph.KindGPU && n.GPU.NUMAAffinity.Known() {
			return n.GPU.NUMAAffinity.String() // the driver says what the tree does not
		}
		return "?"
	}
	return strings.TrimPrefix(n.Home.Label, "NUMA ")
}

// Table prints rows in columns two blanks apart.
func Table(w io.Writer, rows [][]string) error {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		line := ""
		for i, c := range r {
			line += c + strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
