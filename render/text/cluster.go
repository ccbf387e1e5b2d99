package text

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Cluster prints several hosts, those alike on one line, and what jobs show.
func Cluster(w io.Writer, c *probe.Cluster) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, plural(len(c.Hosts), "host"))
	var lines []string
	names := map[string][]string{}
	for _, h := range c.Hosts {
		line := hostShape(h)
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], h.Host.Name)
	}
	for _, line := range lines {
		n := ""
		if len(names[line]) > 1 {
			n = fmt.Sprintf("%d hosts ", len(names[line]))
		}
		fmt.Fprintf(out, "  %s%s: %s\n", n, HostNames(names[line]), line)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := Jobs(w, &c.Job); err != nil {
		return err
	}
	return printGaps(w, c.Gaps)
}

// hostShape is what a host is, without its name.
func hostShape(h *probe.Inventory) string {
	parts := nonEmpty(strings.TrimSpace(h.Product.Vendor+" "+h.Product.Name),
		counted(h.GPUs, func(g probe.GPU) string { return orElse(g.Name, "GPU") }),
		counted(h.HCAs, func(c probe.HCA) string { return "HCA " + orElse(c.Board, PortsText(&c)) }))
	if h.Runtime.Driver != "" {
		parts = append(parts, "driver "+h.Runtime.Driver)
	}
	if h.Runtime.NCCL != "" {
		parts = append(parts, "NCCL "+h.Runtime.NCCL)
	}
	if len(parts) == 0 {
		return "nothing known"
	}
	return strings.Join(parts, " · ")
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// counted prints "8 × NVIDIA H200, 2 × NVIDIA L4" in the order of appearance.
func counted[T any](list []T, name func(T) string) string {
	var order []string
	n := map[string]int{}
	for _, x := range list {
		v := strings.TrimSpace(name(x))
		if n[v] == 0 {
			order = append(order, v)
		}
		n[v]++
	}
	for i, v := range order {
		order[i] = fmt.Sprintf("%d × %s", n[v], v)
	}
	return strings.Join(order, ", ")
}

// HostNames lists names; of many, the first and the last.
func HostNames(names []string) string {
	if len(names) <= 6 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, %s, … %s", names[0], names[1], names[len(names)-1])
}

// Jobs says in one line what is known of jobs, nothing where nothing is, and prints
// graph files and summaries of runs.
func Jobs(w io.Writer, j *probe.Job) error {
	if j.NoJob() {
		return nil
	}
	if err := jobFiles(w, j); err != nil {
		return err
	}
	var parts []string
	for _, x := range []struct {
		n   int
		one string
	}{{len(j.Logs), "NCCL log"}, {len(j.Comms), "communicator"}, {len(j.Env), "setting"}, {len(j.Samples), "measured sample"}, {faults(j.Events), "event"}} {
		if x.n > 0 {
			parts = append(parts, plural(x.n, x.one))
		}
	}
	parts = append(parts, troubled(j.Comms)...)
	if len(parts) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "jobs: %s\n", strings.Join(parts, ", "))
	return err
}

// troubled counts the ranks that a running job reports in a state of their own.
func troubled(comms []probe.Comm) []string {
	n := map[string]int{}
	for _, c := range comms {
		for _, m := range c.Members {
			if m.State != "" {
				n[m.State]++
			}
		}
	}
	var out []string
	for _, s := range slices.Sorted(maps.Keys(n)) {
		out = append(out, plural(n[s], "rank")+" "+s)
	}
	return out
}

// faults counts the events that are no mere notes.
func faults(events []probe.Event) int {
	n := 0
	for _, e := range events {
		if e.Kind != probe.EventNote {
			n++
		}
	}
	return n
}
