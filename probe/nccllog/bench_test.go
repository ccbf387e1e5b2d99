package nccllog

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// stream is what a job with full logging prints for hours: channels and tables
// once, then calls, choices and proxy talk, ranks mixed.
func stream(size int) []byte {
	var b bytes.Buffer
	b.Grow(size + 1<<16)
	const ranks = 8
	for r := range ranks {
		fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO NCCL version 2.28.3+cuda13.0\n", 100+r, 100+r, r)
		fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO ncclCommInitRank comm 0x55%02x0000 rank %d nranks 8 cudaDev %d nvmlDev %d busId %x commId 0xabc - Init START\n", 100+r, 200+r, r, r, r, r, r, 0x1b000+r<<12)
		for c := range 24 {
			fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM/read\n", 100+r, 300+r, r, c, r, r, (r+1)%ranks, (r+1)%ranks)
		}
	}
	for op := 0; b.Len() < size; op++ {
		for r := range ranks {
			n := 1 << (op % 24)
			fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO AllReduce: opCount %x sendbuff 0x7f%02x4ba00000 recvbuff 0x7f%02x4be00000 count %d datatype 7 op 0 root 0 comm 0x55%02x0000 [nranks=8] stream 0x55582ab0d040\n", 100+r, 100+r, r, op, r, r, n, r)
			fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO AllReduce: %d Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..%d}\n", 100+r, 100+r, r, 4*n, op%24)
			fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO Connected to proxy localRank %d -> connection 0x7f79%08x\n", 100+r, 400+r, r, r, op)
			fmt.Fprintf(&b, "node1:%d:%d [%d] NCCL INFO Channel %02d/1 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA\n", 100+r, 300+r, r, op%32, r, r, 8+(op+r)%56, r, r)
		}
		fmt.Fprintf(&b, "    %8d   %8d     float     sum      -1    25.64    0.31    0.55       0    25.75    0.31    0.55       0\n", op, op)
	}
	return b.Bytes()
}

// BenchmarkRead reads a log in memory; NCCLLOG_STREAM names a file to write it
// to, for a comparison with grep -c.
func BenchmarkRead(b *testing.B) {
	in := stream(64 << 20)
	if f := os.Getenv("NCCLLOG_STREAM"); f != "" {
		if err := os.WriteFile(f, in, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		l, err := Read("x", bytes.NewReader(in))
		if err != nil || l.Torn != 0 {
			b.Fatal(err, strconv.FormatInt(l.Torn, 10))
		}
	}
}
