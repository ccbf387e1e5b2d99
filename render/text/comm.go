package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// communicator prints one communicator.
func communicator(w io.Writer, j *probe.Job, c *probe.Comm, s Style) {
	head := "communicator " + commName(c)
	if c.Ranks == 0 {
		head = "lines that name no communicator"
	}
	facts := nonEmpty(rankCount(c), c.NCCL)
	if len(facts) > 1 {
		facts[1] = "NCCL " + facts[1]
	}
	hosts := commHosts(c)
	if n, ok := c.Nodes.Get(); ok && n != len(hosts) {
		facts = append(facts, fmt.Sprintf("%s by NCCL's count", plural(n, "node")))
	}
	if n, ok := c.Channels.Get(); ok {
		facts = append(facts, plural(n, "collective channel"))
	}
	fmt.Fprintf(w, "%s: %s\n", head, strings.Join(facts, ", "))
	hostLines(w, c, hosts)
	if m := MissingRanks(c); len(m) > 0 {
		fmt.Fprintf(w, "  not in the log: %s\n", spanList(m))
	}
	initLines(w, c)
	graphLines(w, c, s)
	transports(w, c)
	ringLines(w, c, s)
	treeLines(w, c, s)
	if s.Verbose {
		tuningLines(w, c)
	}
	for _, n := range Limits(j, c) {
		fmt.Fprintln(w, "  note: "+n)
	}
}

func commName(c *probe.Comm) string {
	if c.ID == "" {
		return "(id not printed)"
	}
	return strings.TrimSpace(c.ID + " " + c.Name)
}

func rankCount(c *probe.Comm) string {
	if c.Ranks == 0 {
		return plural(len(c.Members), "rank") + " recognised"
	}
	return plural(c.Ranks, "rank")
}

// commHosts returns the hosts of a communicator's ranks, sorted.
func commHosts(c *probe.Comm) []string {
	var out []string
	for _, m := range c.Members {
		out = append(out, m.Host)
	}
	slices.SortFunc(out, probe.CompareNames)
	return slices.Compact(out)
}

// MissingRanks returns the ranks of a communicator that no source shows, as first and
// last of each run.
func MissingRanks(c *probe.Comm) [][2]int {
	var out [][2]int
	next := 0
	for _, m := range c.Members { // sorted by rank
		if m.Rank > next {
			out = append(out, [2]int{next, min(m.Rank, c.Ranks) - 1})
		}
		next = max(next, m.Rank+1)
	}
	if next < c.Ranks {
		out = append(out, [2]int{next, c.Ranks - 1})
	}
	return slices.DeleteFunc(out, func(s [2]int) bool { return s[1] < s[0] })
}

// spanList prints runs of ranks, of many only some.
func spanList(spans [][2]int) string {
	const most = 16
	var parts []string
	for i, s := range spans {
		switch {
		case i == most:
			return "ranks " + strings.Join(parts, ",") + ", …"
		case s[0] == s[1]:
			parts = append(parts, strconv.Itoa(s[0]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", s[0], s[1]))
		}
	}
	word := "ranks"
	if len(spans) == 1 && spans[0][0] == spans[0][1] {
		word = "rank"
	}
	return word + " " + strings.Join(parts, ",")
}

// hostLines prints the ranks of each host; with few, their GPUs too. Many hosts of
// equal shape stand together.
func hostLines(w io.Writer, c *probe.Comm, hosts []string) {
	const most = 16
	if len(hosts) > most {
		perHost, sizes := map[string]int{}, map[int]int{}
		for _, m := range c.Members {
			perHost[m.Host]++
		}
		for _, n := range perHost {
			sizes[n]++
		}
		var shapes []string
		for n, k := range sizes {
			shapes = append(shapes, fmt.Sprintf("%d with %s each", k, plural(n, "rank")))
		}
		slices.Sort(shapes)
		fmt.Fprintf(w, "  %d hosts, %s to %s: %s\n", len(hosts), hosts[0], hosts[len(hosts)-1], strings.Join(shapes, ", "))
		return
	}
	for _, h := range hosts {
		ranks := ranksOf(c, h)
		label := h
		if label == "" {
			label = "(host not printed)"
		}
		fmt.Fprintf(w, "  %s: %s%s\n", label, rankList(ranks), gpuList(c, h))
	}
}

func ranksOf(c *probe.Comm, host string) []int {
	var out []int
	for _, m := range c.Members {
		if m.Host == host && (len(out) == 0 || out[len(out)-1] != m.Rank) {
			out = append(out, m.Rank)
		}
	}
	return out
}

// gpuList names the GPUs of a host's ranks, in the order of the ranks: the part of
// the address that differs is enough.
func gpuList(c *probe.Comm, host string) string {
	var addrs []string
	for _, m := range c.Members {
		if a, ok := m.Addr.Get(); ok && m.Host == host {
			addrs = append(addrs, strings.TrimSuffix(strings.TrimPrefix(a.String(), "0000:"), ".0"))
		}
	}
	if len(addrs) == 0 {
		return ""
	}
	return " on GPU " + strings.Join(addrs, " ")
}

// initLines says how far the initialisation got, and what took longest.
func initLines(w io.Writer, c *probe.Comm) {
	var open, aborted []int
	var slowest *probe.Member
	known := false
	for i := range c.Members {
		m := &c.Members[i]
		known = known || m.Init != ""
		switch m.Init {
		case probe.InitStarted:
			open = append(open, m.Rank)
		case probe.InitAborted:
			aborted = append(aborted, m.Rank)
		}
		if len(m.Seconds) > 0 && (slowest == nil || m.Seconds[0].Seconds > slowest.Seconds[0].Seconds) {
			slowest = m
		}
	}
	if !known {
		return
	}
	if len(open) > 0 {
		fmt.Fprintf(w, "  initialisation not completed on %s\n", rankList(open))
	}
	if len(aborted) > 0 {
		fmt.Fprintf(w, "  aborted on %s\n", rankList(aborted))
	}
	if slowest == nil {
		return
	}
	worst := probe.Timing{}
	for _, t := range slowest.Seconds[1:] {
		if t.Seconds > worst.Seconds {
			worst = t
		}
	}
	fmt.Fprintf(w, "  slowest initialisation: rank %d, %s s", slowest.Rank, num(slowest.Seconds[0].Seconds))
	if worst.What != "" {
		fmt.Fprintf(w, ", of which %s %s s", worst.What, num(worst.Seconds))
	}
	fmt.Fprintln(w)
}

// graphLines prints the results of the searches: what all hosts found once, and
// what has no channel only with --verbose.
func graphLines(w io.Writer, c *probe.Comm, s Style) {
	var seen []string
	for _, g := range c.Graphs {
		pattern := g.Pattern
		if pattern == "" {
			pattern = "unknown pattern"
		}
		line := fmt.Sprintf("  search, %s: %s of %s/%s GB/s, %s/%s", pattern, plural(g.Channels, "channel"), num(g.BWIntra), num(g.BWInter), g.TypeIntra, g.TypeInter)
		if g.NoPath {
			line += ": no path found, the order of ranks taken"
		}
		if slices.Contains(seen, line) || g.Channels == 0 && !s.Verbose {
			continue
		}
		seen = append(seen, line)
		fmt.Fprintln(w, line)
	}
}

// ringLines prints the orders of ring channels, equal ones together: two of them,
// or all with --verbose.
func ringLines(w io.Writer, c *probe.Comm, s Style) {
	var orders []string
	channels := map[string][]int{}
	for _, r := range c.Rings {
		o := orderText(r)
		if channels[o] == nil {
			orders = append(orders, o)
		}
		channels[o] = append(channels[o], r.Channel)
	}
	for i, o := range orders {
		if i == 2 && !s.Verbose && len(orders) > 3 {
			fmt.Fprintf(w, "  and %d more ring orders (--verbose)\n", len(orders)-i)
			break
		}
		fmt.Fprintf(w, "  ring, %s %s: %s\n", pluralWord(len(channels[o]), "channel"), ranges(channels[o]), o)
	}
}

// orderText is the order of a ring; runs of a long one are drawn together.
func orderText(r probe.Ring) string {
	var parts []string
	for i := 0; i < len(r.Ranks); {
		j, step := i, 0
		for j+1 < len(r.Ranks) {
			d := r.Ranks[j+1] - r.Ranks[j]
			if d != 1 && d != -1 || step != 0 && d != step {
				break
			}
			step = d
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d-%d", r.Ranks[i], r.Ranks[j]))
			i = j + 1
			continue
		}
		parts = append(parts, strconv.Itoa(r.Ranks[i]))
		i++
	}
	const most = 40
	text := strings.Join(parts, " ")
	if len(parts) > most {
		text = strings.Join(parts[:most], " ") + fmt.Sprintf(" … (%d ranks)", len(r.Ranks))
	}
	if r.Cut {
		text += " … (NCCL cut the line)"
	}
	return text
}

// treeLines prints the tree of the first channel and of the first whose root
// differs: nested where it is small, else its size.
func treeLines(w io.Writer, c *probe.Comm, s Style) {
	var seen []string
	last := -1
	for _, t := range c.Trees {
		if t.Channel == last || len(seen) == 2 && !s.Verbose {
			continue
		}
		last = t.Channel
		text := treeText(c, t.Channel)
		if text == "" || slices.Contains(seen, text) {
			continue
		}
		seen = append(seen, text)
		fmt.Fprintf(w, "  tree, channel %d: %s\n", t.Channel, text)
	}
}

// treeText draws the tree of a channel as 0(1(2 3)), or says how large it is; "" where
// its root is not in the log.
func treeText(c *probe.Comm, channel int) string {
	const small = 32
	down := map[int][]int{}
	root, n := -1, 0
	for _, t := range c.Trees {
		if t.Channel != channel {
			continue
		}
		n++
		for _, d := range t.Down {
			if d >= 0 {
				down[t.Rank] = append(down[t.Rank], d)
			}
		}
		if t.Up < 0 {
			root = t.Rank
		}
	}
	if root < 0 || n < 2 {
		return ""
	}
	seen := map[int]bool{root: true}
	depth := -1
	for level := []int{root}; len(level) > 0; depth++ {
		var next []int
		for _, r := range level {
			down[r] = slices.DeleteFunc(down[r], func(d int) bool { return seen[d] }) // a rank hangs in a tree once
			for _, d := range down[r] {
				seen[d] = true
			}
			next = append(next, down[r]...)
		}
		level = next
	}
	text := fmt.Sprintf("root %d, %d ranks, depth %d", root, len(seen), depth)
	if len(seen) <= small {
		text = nested(down, root)
	}
	if len(seen) < c.Ranks {
		text += fmt.Sprintf(", the other %d ranks not joined by lines in the log", c.Ranks-len(seen))
	}
	return text
}

func nested(down map[int][]int, rank int) string {
	var parts []string
	for _, d := range down[rank] {
		parts = append(parts, nested(down, d))
	}
	if len(parts) == 0 {
		return strconv.Itoa(rank)
	}
	return fmt.Sprintf("%d(%s)", rank, strings.Join(parts, " "))
}

// tuningLines prints NCCL's own model by collective, what it does not offer left
// out.
func tuningLines(w io.Writer, c *probe.Comm) {
	rows := [][]string{{"NCCL's model", "algorithm", "protocol", "µs", "GB/s"}}
	for _, t := range c.Tuning {
		if t.GBs > 0 {
			rows = append(rows, []string{t.Collective, t.Algorithm, t.Protocol, num(t.LatencyUS), num(t.GBs)})
		}
	}
	if len(rows) == 1 {
		return
	}
	var b strings.Builder
	_ = Table(&b, rows) // a Builder takes everything
	for line := range strings.Lines(b.String()) {
		io.WriteString(w, "  "+line)
	}
}

func rankList(ranks []int) string { return pluralWord(len(ranks), "rank") + " " + ranges(ranks) }

func pluralWord(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
