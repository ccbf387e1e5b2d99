package text

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/tune"
)

// modelSizes are the sizes whose times are printed.
var modelSizes = []struct {
	name  string
	bytes int64
}{{"8 B", 8}, {"64 KiB", 64 << 10}, {"1 MiB", 1 << 20}, {"16 MiB", 16 << 20}, {"128 MiB", 128 << 20}, {"1 GiB", 1 << 30}}

// Prediction is the prediction in one line.
func Prediction(an *tune.Analysis) string {
	p := an.Ring
	if p.Unknown != nil {
		return "none: " + p.Unknown.Error()
	}
	if p.Untimed != nil {
		return "none: " + p.Untimed.Error()
	}
	if p.Search.Ranks == 1 {
		return "none: one GPU has nobody to talk to"
	}
	for _, t := range p.Tuning {
		if t.Proto != model.Simple {
			continue
		}
		factor, _ := model.BusFactor(t.Collective, p.Search.Ranks)
		us, _ := t.Time(1 << 30)
		return fmt.Sprintf("ring all-reduce over %d GPUs, %d channels: bus bandwidth %s GB/s and latency %s µs with Simple; 1 GiB in %s µs (NCCL %s's own model; Tree and NVLS not modelled)",
			p.Search.Ranks, p.Search.Channels, num(t.BWGBs*factor), num(t.LatencyUS), num(us), model.NCCLVersion)
	}
	return "none"
}

// Model prints the prediction with its terms.
func Model(w io.Writer, an *tune.Analysis) error {
	out := bufio.NewWriter(w)
	p := an.Ring
	fmt.Fprintf(out, "NCCL %s's own model: %s\n", version(p), what(an))
	if p.View != nil {
		for _, a := range p.View.Assumptions {
			fmt.Fprintf(out, "assumed: %s\n", a)
		}
	}
	if p.Unknown != nil {
		fmt.Fprintf(out, "no prediction: %s\n", p.Unknown)
		return out.Flush()
	}
	if p.Search.Ranks == 1 {
		fmt.Fprintln(out, "no prediction: one GPU has nobody to talk to")
		return out.Flush()
	}
	printGraphs(out, p.Search)
	printBound(out, p.Bound)
	if p.Untimed != nil {
		fmt.Fprintf(out, "\nno times: %s\n", p.Untimed)
		return out.Flush()
	}
	for _, t := range p.Tuning {
		factor, _ := model.BusFactor(t.Collective, p.Search.Ranks)
		fmt.Fprintf(out, "\n%s %s %s", t.Collective, t.Algo, t.Proto)
		if t.Disabled != "" {
			fmt.Fprintf(out, ": off, %s\n", t.Disabled)
			continue
		}
		fmt.Fprintf(out, ": latency %s µs, algorithm bandwidth %s GB/s, bus bandwidth %s GB/s\n", num(t.LatencyUS), num(t.BWGBs), num(t.BWGBs*factor))
		printTerms(out, "latency   =", "+", t.LatencyTerms)
		printTerms(out, "bandwidth =", "×", t.BWTerms)
		row := []string{"  time"}
		for _, s := range modelSizes {
			us, _ := t.Time(s.bytes)
			row = append(row, fmt.Sprintf("%s: %s µs", s.name, num(us)))
		}
		for i, c := range row {
			if i > 0 {
				fmt.Fprint(out, "  ")
			}
			fmt.Fprint(out, c)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, `
This is what NCCL believes, not what a run will measure. Per size NCCL takes the
cheapest of all algorithms; Tree and NVLS are not modelled here, so it may choose
another than Ring. Terms name their place in NCCL's source.
`)
	return out.Flush()
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ranges prints 0,1,2,5 as "0-2,5".
func ranges(n []int) string {
	s := ""
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if s != "" {
			s += ","
		}
		s += strconv.Itoa(n[i])
		if j > i {
			s += "-" + strconv.Itoa(n[j])
		}
		i = j + 1
	}
	return s
}

func printTerms(out io.Writer, head, op string, terms []model.Term) {
	for i, t := range terms {
		lead := "  " + head
		if i > 0 {
			lead = fmt.Sprintf("  %*s", len(head), op)
		}
		unit := t.Unit
		if unit == "us" {
			unit = "µs"
		}
		value := num(t.Value)
		if unit != "" {
			value += " " + unit
		}
		fmt.Fprintf(out, "%s %-12s %s: %s\n", lead, value, t.Name, t.Why)
	}
}

// num prints a figure with at most four significant digits.
func num(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
