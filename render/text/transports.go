package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Transport is a way that connections of a communicator take.
type Transport struct {
	Name    string `json:"transport"`
	Pairs   int    `json:"pairs"`               // from one rank to another
	Within  int    `json:"pairs_in_host"`       // of these, between ranks of one host
	Between int    `json:"pairs_between_hosts"` // between ranks of different hosts; the rest is not known
	Proxied int    `json:"pairs_by_others"`     // through another rank's GPU or NIC
	letter  byte
}

type rankPair struct{ from, to int }

// Transports counts the directed pairs of ranks by transport.
func Transports(c *probe.Comm) []Transport {
	out, _ := transportsOf(c)
	return out
}

// transportsOf also returns the letters of each pair.
func transportsOf(c *probe.Comm) (list []Transport, cells map[rankPair]string) {
	host := map[int]string{}
	for _, m := range c.Members {
		host[m.Rank] = m.Host
	}
	at := map[string]int{}
	seen := map[string]map[rankPair]bool{}
	cells = map[rankPair]string{}
	for _, k := range c.Conns {
		name, letter := transportName(k)
		i, known := at[name]
		if !known {
			i = len(list)
			at[name], seen[name] = i, map[rankPair]bool{}
			list = append(list, Transport{Name: name, letter: letter})
		}
		p := rankPair{k.From, k.To}
		if !strings.Contains(cells[p], string(letter)) {
			cells[p] += string(letter)
		}
		if seen[name][p] {
			continue
		}
		seen[name][p] = true
		t := &list[i]
		t.Pairs++
		a, ok1 := host[k.From]
		b, ok2 := host[k.To]
		switch {
		case !ok1 || !ok2 || a == "" || b == "":
		case a == b:
			t.Within++
		default:
			t.Between++
		}
		if k.Proxy.Known() {
			t.Proxied++
		}
	}
	slices.SortFunc(list, func(a, b Transport) int { return strings.Compare(a.Name, b.Name) })
	return list, cells
}

// transportName names a connection's way, and the letter for it in a matrix.
func transportName(k probe.Connection) (string, byte) {
	switch k.Via {
	case probe.ViaP2P:
		letter := byte('P')
		if k.Variant == "MNNVL" {
			letter = 'M'
		}
		return strings.Join(nonEmpty(k.Via, k.Variant), "/"), letter
	case probe.ViaNET, probe.ViaCollNet:
		name := k.Via + "/" + k.Network
		switch {
		case k.Via == probe.ViaCollNet:
			return name, 'C'
		case k.GDR.Or(false):
			return name + "/GDRDMA", 'G'
		case k.Network == "Socket":
			return name, 'T'
		}
		return name, 'N'
	}
	return strings.Join(nonEmpty(k.Via, k.Variant), "/"), 'S'
}

// meanings say what a connection line proves, by its letter.
var meanings = map[byte]string{
	'P': "GPU to GPU directly",
	'M': "GPU to GPU over NVLink, also between hosts",
	'S': "through host memory",
	'G': "the NIC reads and writes GPU memory (GPUDirect RDMA)",
	'N': "network, through host memory",
	'T': "TCP, through host memory",
	'C': "the network's switches add up",
}

// mostRows is how many ranks or hosts a matrix may have.
const mostRows = 16

// transports prints who talks to whom through what: rank by rank, with many ranks
// host by host, with many hosts in sums.
func transports(w io.Writer, c *probe.Comm) {
	list, cells := transportsOf(c)
	if len(list) == 0 {
		return
	}
	for _, t := range list {
		where := ""
		switch {
		case t.Within > 0 && t.Between > 0:
			where = fmt.Sprintf(", %d inside hosts and %d between", t.Within, t.Between)
		case t.Between > 0:
			where = " between hosts"
		case t.Within > 0:
			where = " inside hosts"
		}
		if t.Proxied > 0 {
			where += fmt.Sprintf(", %d through another rank (PXN or relay)", t.Proxied)
		}
		fmt.Fprintf(w, "  %c  %s: %s%s: %s\n", t.letter, t.Name, plural(t.Pairs, "directed pair"), where, meanings[t.letter])
	}
	if ranks := ranksIn(c, cells); len(ranks) <= mostRows {
		labels := make([]string, len(ranks))
		for i, r := range ranks {
			labels[i] = strconv.Itoa(r)
		}
		matrix(w, labels, func(i, j int) string { return cells[rankPair{ranks[i], ranks[j]}] }, "·")
		return
	}
	hosts := commHosts(c)
	if len(hosts) < 2 || len(hosts) > mostRows {
		return
	}
	of := map[int]int{}
	for _, m := range c.Members {
		of[m.Rank] = slices.Index(hosts, m.Host)
	}
	sum := map[rankPair]string{}
	for p, letters := range cells {
		i, ok1 := of[p.from]
		j, ok2 := of[p.to]
		if !ok1 || !ok2 {
			continue
		}
		for _, l := range letters {
			if !strings.ContainsRune(sum[rankPair{i, j}], l) {
				sum[rankPair{i, j}] += string(l)
			}
		}
	}
	matrix(w, hosts, func(i, j int) string { return sum[rankPair{i, j}] }, "–")
}

// ranksIn lists the ranks of a matrix: all of a communicator that prints its size,
// else those that appear. Of more than fit it lists some.
func ranksIn(c *probe.Comm, cells map[rankPair]string) []int {
	var out []int
	for r := range min(c.Ranks, mostRows+1) {
		out = append(out, r)
	}
	if c.Ranks == 0 {
		for p := range cells {
			out = append(out, p.from, p.to)
		}
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// matrix prints letters; "–" is a pair without a line, self what stands on the
// diagonal where nothing else does.
func matrix(w io.Writer, labels []string, cell func(i, j int) string, self string) {
	rows := [][]string{append([]string{"from\\to"}, labels...)}
	for i, l := range labels {
		row := []string{l}
		for j := range labels {
			text := sorted(cell(i, j))
			if text == "" {
				text = "–"
				if i == j {
					text = self
				}
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	_ = Table(&b, rows) // a Builder takes everything
	for line := range strings.Lines(b.String()) {
		io.WriteString(w, "     "+line)
	}
}

func sorted(letters string) string {
	b := []byte(letters)
	slices.Sort(b)
	return string(b)
}
