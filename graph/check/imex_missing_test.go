package check

import "testing"

func TestIMEXMissing(t *testing.T) {
	testLog(t, "imex-missing", []logCase{
		{name: "800 in one NVLink domain", log: lines(domainOf("ab"), []string{"a0!transport/p2p.cc:1 Cuda failure 800 'operation not permitted'"}), want: []string{"critical sure host:a"}, says: []string{"nvidia-imex", "fabric UUID 1.2"}},
		{name: "NCCL says it", log: lines(domainOf("ab"), []string{"b0!mnnvl.cc:74 MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX"}), want: []string{"critical sure host:b"}},
		{name: "one host", log: lines(domainOf("a"), []string{"a0!transport/p2p.cc:1 Cuda failure 800 'operation not permitted'"})},
		{name: "HGX: completed, no cluster UUID", log: []string{"a0 MNNVL busId 0x1000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0", "b0 MNNVL busId 0x1000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
			"a0!transport/p2p.cc:1 Cuda failure 800 'operation not permitted'"}},
		{name: "healthy", log: domainOf("ab")},
	})
}

func domainOf(hosts string) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, string(h)+"0 MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x1 state 3 healthMask 0xaa")
	}
	return out
}
