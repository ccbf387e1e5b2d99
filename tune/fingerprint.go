package tune

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
)

// Fingerprint hashes what makes two machines alike for NCCL: the models of GPUs
// and adapters, the links of each, up or not, and the class of every pair, in the
// order of their addresses. No names, addresses or serial numbers are part of
// it. 12 hexadecimal digits.
func Fingerprint(topo *graph.Topology) string {
	var lines []string
	var devices []*graph.Node
	for _, k := range []graph.Kind{graph.KindGPU, graph.KindHCA} {
		devices = append(devices, topo.Of(k)...)
	}
	for i, n := range devices {
		words := []string{string(n.Kind)}
		if n.PCI != nil {
			words = append(words, fmt.Sprintf("%v:%v", n.PCI.Vendor, n.PCI.Device))
		}
		var links []string
		for _, l := range topo.LinksOf(n) {
			links = append(links, fmt.Sprintf("%s %v", l.Kind, l.Max))
		}
		slices.Sort(links)
		words = append(words, links...)
		for _, o := range devices[:i] {
			words = append(words, fmt.Sprint(topo.Class(n, o)))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return shortHash(lines)
}

func shortHash(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:12]
}
