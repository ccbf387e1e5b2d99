package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// logStream is what nccl-tests of eight ranks prints with full logging: its start, and
// a block of calls, choices, proxy talk and connections that repeats for hours.
func logStream() (head, block []byte) {
	var h, b bytes.Buffer
	at := func(w *bytes.Buffer, r int, format string, args ...any) {
		fmt.Fprintf(w, "node1:%d:%d [%d] NCCL INFO %s\n", 100+r, 200+r, r, fmt.Sprintf(format, args...))
	}
	for r := range 8 {
		at(&h, r, "NCCL version 2.28.3+cuda13.0")
		at(&h, r, "ncclCommInitRank comm 0x55%02x0000 rank %d nranks 8 cudaDev %d nvmlDev %d busId %x commId 0xabc - Init START", r, r, r, r, 0x1b000+r<<12)
		for c := range 24 {
			at(&h, r, "Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM/read", c, r, r, (r+1)%8, (r+1)%8)
		}
	}
	for op := 0; b.Len() < 8<<20; op++ {
		for r := range 8 {
			n := 1 << (op % 24)
			at(&b, r, "AllReduce: opCount %x sendbuff 0x7f%02x4ba00000 recvbuff 0x7f%02x4be00000 count %d datatype 7 op 0 root 0 comm 0x55%02x0000 [nranks=8] stream 0x55582ab0d040", op, r, r, n, r)
			at(&b, r, "AllReduce: %d Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..%d}", 4*n, op%24)
			at(&b, r, "Connected to proxy localRank %d -> connection 0x7f79%08x", r, op)
			at(&b, r, "Channel %02d/1 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA", op%32, r, r, 8+(op+r)%56, r, r)
		}
	}
	return h.Bytes(), b.Bytes()
}

// testRow makes a log the output of nccl-tests too: two readers then share the stream.
const testRow = "        8192         2048     float     sum      -1    25.64    0.32    0.56       0    25.75    0.32    0.56       0\n"

// The whole program on 2 GiB of log from a pipe, and grep -c on the same bytes beside
// it: absolute times are noisy, so compare within one run. Peak memory must not
// depend on the length.
func BenchmarkLogStream(b *testing.B) {
	head, block := logStream()
	blocks := (2 << 30) / len(block)
	for _, c := range []struct {
		name, first string
		args        []string
	}{
		{"ncclmap", "", []string{filepath.Join(bin, "ncclmap"), "log", "-", "--fail-on", "never"}},
		{"ncclmap-nccl-tests", testRow, []string{filepath.Join(bin, "ncclmap"), "log", "-", "--fail-on", "never"}},
		{"grep-c", "", []string{"grep", "-c", "NCCL"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var size, rss int64
			var spent, cpu time.Duration
			for b.Loop() {
				cmd := exec.Command(c.args[0], c.args[1:]...)
				cmd.Stdout = new(bytes.Buffer) // grep stops early if nobody reads
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				if err := cmd.Start(); err != nil {
					b.Skip(err)
				}
				size = int64(len(head) + blocks*len(block))
				if _, err := in.Write(append([]byte(c.first), head...)); err != nil {
					b.Fatal(err)
				}
				for range blocks {
					if _, err := io.Copy(in, bytes.NewReader(block)); err != nil {
						b.Fatal(err)
					}
				}
				in.Close()
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(start)
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
					rss = max(rss, u.Maxrss>>10)
				}
			}
			b.ReportMetric(float64(size)*float64(b.N)/1e6/spent.Seconds(), "MB/s")
			b.ReportMetric(float64(size)*float64(b.N)/1e6/cpu.Seconds(), "MB/cpu-s") // on a busy machine
			b.ReportMetric(float64(rss), "MiB-rss")
		})
	}
}
