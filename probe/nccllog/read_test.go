package nccllog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

func read(t *testing.T, text string) *Log {
	t.Helper()
	l, err := Read("job.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func conns(c Comm) string {
	var out []string
	for _, k := range c.Conns {
		s := fmt.Sprintf("%d>%d ", k.From.Rank, k.To.Rank)
		if k.Dir != "" {
			s += k.Dir + " "
		}
		out = append(out, fmt.Sprintf("%s%s x%d", s, k.Via.Text, len(k.Channels)))
	}
	return strings.Join(out, ", ")
}

const env = "n1:10:11 [0] NCCL INFO "

// TestLines holds one line of each kind, for the versions that print it.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		got        func(*Log) any
		want       string
	}{
		{"version level", "NCCL version 2.12.12+cuda11.7\n", func(l *Log) any { return l.Versions[0].NCCL + " " + l.Versions[0].CUDA + " " + l.Versions[0].Host }, "2.12.12 11.7 "},
		{"version behind a tag", "[1,0]<stdout>:NCCL version 2.8.4+cuda11.1\n", func(l *Log) any { return l.Versions[0].NCCL }, "2.8.4"},
		{"version of a host", env + "NCCL version 2.28.3+cuda13.0\n", func(l *Log) any { return l.Procs[0].NCCL + " " + l.Versions[0].Host }, "2.28.3 n1"},
		{"driver", env + "cudaDriverVersion 12040\n", func(l *Log) any { return l.Procs[0].CUDADriver }, "12040"},
		{"integer setting", env + "NCCL_NVLS_ENABLE set by environment to 0.\n", func(l *Log) any { return l.Env[0].Name + "=" + l.Env[0].Value }, "NCCL_NVLS_ENABLE=0"},
		{"text setting", env + "NCCL_TOPO_FILE set by environment to /a/b.xml\n", func(l *Log) any { return l.Env[0].Value }, "/a/b.xml"},
		{"old setting", env + "NCCL_IB_HCA set to mlx5_2\n", func(l *Log) any { return l.Env[0].Value + l.Env[0].How }, "mlx5_2environment"},
		{"bad setting", env + "Invalid value x for NCCL_MAX_NCHANNELS, using default -2.\n", func(l *Log) any { return l.Env[0].Name + " " + l.Env[0].Value + " " + l.Env[0].How }, "NCCL_MAX_NCHANNELS x invalid"},
		{"config", env + "Comm config nvlinkCentricSched set to 1\n", func(l *Log) any { return l.Env[0].Name + " " + l.Env[0].Value + " " + l.Env[0].How }, "nvlinkCentricSched 1 config"},
		{"network", env + "Using network AWS Libfabric\n", func(l *Log) any { return l.Procs[0].Network }, "AWS Libfabric"},
		{"HCAs", env + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_bond_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n",
			func(l *Log) any {
				b := l.IBLists[0]
				return fmt.Sprint(len(b.Ports), b.RelaxedOrdering, b.Ports[1].Index, b.Ports[1].Device, b.Ports[1].Port, b.Ports[1].LinkLayer, l.Interfaces[0].Name)
			}, "2 true 1mlx5_bond_11RoCEeth0"},
		{"HCAs 2.8", env + "NET/IB : Using [0]mlx5_3:1/IB ; OOB eth0:10.12.5.40<0>\n", func(l *Log) any { return fmt.Sprint(len(l.IBLists[0].Ports), l.IBLists[0].RelaxedOrdering) }, "1 false"},
		{"HCAs with rails", env + "NET/IB : Using [0]mlx5_0:1:3:0/IB [RO]; OOB eth0:10.0.0.1<0>\n", func(l *Log) any { return l.IBLists[0].Ports[0].Rail + " " + l.IBLists[0].Ports[0].Port.String() }, "3:0 1"},
		{"HCA detail", env + "NET/IB: [2] mlx5_2:uverbs2:1/IB provider=Mlx5 speed=400000 context=0x55 pciPath=/sys/devices/pci0000:15/0000:17:00.0 ar=1 oooRqSize=0\n",
			func(l *Log) any {
				d := l.IBDevices[0]
				s, _ := d.Speed.Get()
				return fmt.Sprint(d.Index, d.Name, d.Verbs, d.Port, d.LinkLayer, d.Provider, s.Gbps(), d.PCIPath, d.Adaptive)
			}, "2mlx5_2uverbs21IBMlx5400 Gb/s/sys/devices/pci0000:15/0000:17:00.0true"},
		{"HCA fused", env + "NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1 speed=800000 ndevs=2\n", func(l *Log) any { return fmt.Sprint(l.IBDevices[0].Name, l.IBDevices[0].Virtual) }, "mlx5_0+mlx5_1true"},
		{"GDR", env + "NET/IB : GPU Direct RDMA Disabled for HCA 3 'mlx5_3'\n", func(l *Log) any {
			return fmt.Sprint(l.GDR[0].Network, l.GDR[0].Index, l.GDR[0].Device, l.GDR[0].Enabled)
		}, "IB3mlx5_3false"},
		{"GDR of a pair", env + "GPU Direct RDMA Disabled for GPU 1000 / HCA 0 (distance 7 > 5)\n",
			func(l *Log) any {
				p := l.GDRPairs[0]
				return fmt.Sprint(p.GPU, p.HCA, p.Enabled, p.Distance, p.Limit)
			}, "10000false 7 5"},
		{"interfaces", env + "NET/Socket : Using [0]ip6tnl0:fe80::e8%ip6tnl0<0> [1]veth0:2a02::1<0>\n", func(l *Log) any { return l.Interfaces[0].Addr + " " + l.Interfaces[1].Name }, "fe80::e8%ip6tnl0 veth0"},
		{"bootstrap 2.8", env + "Bootstrap : Using [0]eth0:10.0.0.1<0>\n", func(l *Log) any { return l.Interfaces[0].Use + l.Interfaces[0].Name }, "bootstrapeth0"},
		{"bootstrap 2.28", env + "Bootstrap: Using eth0:10.0.0.1<0>\n", func(l *Log) any { return l.Interfaces[0].Use + l.Interfaces[0].Name }, "bootstrapeth0"},
		{"comm 2.16", env + "comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 4e000 commId 0x3f - Init COMPLETE\n", func(l *Log) any { return fmt.Sprint(l.Comms[0].ID, l.Comms[0].Ranks, l.Comms[0].Members[0].NVMLDev) }, "0x3f8 unknown"},
		{"comm 2.10", env + "comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 4e000 - Init COMPLETE\n", func(l *Log) any { return fmt.Sprint(l.Comms[0].ID, l.Comms[0].Guessed) }, "true"},
		{"comm 2.30", env + "[Rank 3] ncclCommInitRank comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 5 busId 1901000 commId 0x3f - Init START\n",
			func(l *Log) any {
				return fmt.Sprint(l.Comms[0].Members[0].API, l.Comms[0].Members[0].NVMLDev, l.Inventories()[0].GPUs[0].Addr)
			}, "ncclCommInitRank5 0019:01:00.0"},
		{"comm split", env + "ncclCommSplit comm 0x2 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 parent 0x1 childCount 1 color 0 key 0 - Init START\n", func(l *Log) any { return l.Comms[0].Members[0].Parent }, "1"},
		{"shape", env + "comm 0x2 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 1\n", func(l *Log) any {
			return fmt.Sprint(l.Comms[0].Nodes, l.Comms[0].MNNVL, l.Comms[0].Members[0].LocalRanks)
		}, "2 true 8"},
		{"ring order", env + "Channel 01/02 :    0   7   6 5\n", func(l *Log) any { return fmt.Sprint(l.Loose.Rings[0].Ranks, l.Loose.Rings[0].Of) }, "[0 7 6 5] 2"},
		{"ring order cut", env + "Channel 01/02 :    0   7   6 ...\n", func(l *Log) any { return fmt.Sprint(l.Loose.Rings[0].Ranks, l.Loose.Rings[0].Cut) }, "[0 7 6] true"},
		{"trees", env + "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n", func(l *Log) any { return fmt.Sprint(len(l.Loose.Trees), l.Loose.Trees[1].Up, l.Loose.Trees[0].Down) }, "2 1 [1 -1 -1]"},
		{"tree", env + "Tree 3 : 4 -> 5 -> 6/7/-1\n", func(l *Log) any { return fmt.Sprint(l.Loose.Trees[0]) }, "{3 5 4 [6 7 -1] 1}"},
		{"counts 2.18", env + "24 coll channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer\n" + env + "comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1000 - Init COMPLETE\n",
			func(l *Log) any {
				c := l.Comms[0].Counts
				return fmt.Sprint(c.Coll, c.CollNet, c.NVLS, c.P2P, c.P2PPerPeer)
			}, "24 unknown 16 32 2"},
		{"timings 2.22", env + "comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1000 - Init COMPLETE\n" + env + "Init timings: rank 0 nranks 1 total 1.25 (kernels 0.25, bootstrap 1.00)\n",
			func(l *Log) any { return l.Comms[0].Members[0].Timings }, "[{total 1.25} {kernels 0.25} {bootstrap 1}]"},
		{"fabric", env + "MNNVL busId 0x901000 fabric UUID 31.28 cliqueId 0x7ffe state 3 healthMask 0xaa\n", func(l *Log) any {
			f := l.Fabrics[0]
			return fmt.Sprint(f.BusID, f.UUID, f.CliqueID, f.State, f.HealthMask)
		}, "944128031.2832766 3 170"},
		{"choice 2.24", env + "AllGather: 8 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}\n", func(l *Log) any {
			c := l.Choices[0]
			return fmt.Sprint(c.Func, c.Bytes, c.Algo, c.Proto, c.Lo, c.Hi)
		}, "AllGather8NVLSTreeSimple0 15"},
		{"choice 2.12", env + "64 Bytes -> Algo 0 proto 1 time 49.675526\n", func(l *Log) any {
			c := l.Choices[0]
			return fmt.Sprint(c.Func, c.Algo, c.Proto, c.TimeUS)
		}, "TreeLL12849.675526"},
		{"choice symmetric", env + "AllReduce [Symmetric]: 64 Bytes -> Kernel AGxLL_R nchannels 4 nthreads 512 nWorks 1\n", func(l *Log) any { return l.Choices[0].Kernel + l.Choices[0].Hi.String() }, "AGxLL_R3"},
		{"warning 2.8", "n1:10:11 [2] include/shm.h:28 NCCL WARN Call to posix_fallocate failed\n", func(l *Log) any {
			w := l.Warnings[0]
			return fmt.Sprint(w.File, w.Line, w.Text, w.Dev, w.Host)
		}, "include/shm.h28Call to posix_fallocate failed2n1"},
		{"warning 2.30", "\n[2026-01-02 03:04:05] n1:10:11 [2] init.cc:1043 (initTransports) NCCL WARN Mismatched\n", func(l *Log) any {
			w := l.Warnings[0]
			return fmt.Sprint(w.File, w.Line, " ", w.Func, " ", w.Time, " ", w.First)
		}, "init.cc1043 initTransports 2026-01-02 03:04:05 2"},
		{"unwind", env + "graph/paths.cc:390 -> 3\n" + env + "group.cc:78 -> 3 [Async thread]\n", func(l *Log) any {
			return fmt.Sprint(l.Unwinds[0].File, l.Unwinds[0].Line, l.Unwinds[0].Code, l.Unwinds[0].Async, l.Unwinds[1].Async)
		}, "graph/paths.cc390 3 false true"},
		{"unwind 2.30", env + "init.cc:12 (initTransportsRank) -> 2\n", func(l *Log) any { return l.Unwinds[0].Code }, "2"},
		{"located", env + "net_ib/init.cc:500 (f) NET/IB : No device found.\n", func(l *Log) any { return l.Networks[0].State }, "no device"},
		{"diagnostics 2.31", "NCCL DIAG [OK] P2P bandwidth\n", func(l *Log) any { return l.Notes[0].Class + l.Notes[0].Text }, "diag[OK] P2P bandwidth"},
		{"failed search", env + "Could not find a path for pattern 4, falling back to simple order\n" + env + "Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type LOC/PIX, sameChannels 1\n",
			func(l *Log) any { return fmt.Sprint(l.Loose.Graphs[0].NoPath, l.Loose.Graphs[0].BWIntra) }, "true 0.1"},
		{"table 2.12", env + "   Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |\n" + env + "       AllReduce |     8.0/  61.1 |    16.5/ 180.6 |    16.4/ 232.2 |     7.8/ 141.0 |\n",
			func(l *Log) any { return fmt.Sprint(len(l.Loose.Tuning), l.Loose.Tuning[3]) }, "4 {AllReduce Ring LL 7.8 141 2}"},
		{"matrix", env + "Enabled NCCL Func/Proto/Algo Matrix:\n     Function |       LL     LL128\n", func(l *Log) any { return len(l.Matrix) }, "1"},
		{"call", env + "AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7e count 4096 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x1\n", func(l *Log) any {
			c := l.Calls[0]
			return fmt.Sprint(c.Func, c.Count, c.Ranks, c.DataType)
		}, "AllReduce4096 8 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := read(t, c.text)
			if l.Records == 0 || l.Unread > 0 || l.Torn > 0 {
				t.Errorf("%d records, %d unread, %d torn", l.Records, l.Unread, l.Torn)
			}
			if got := fmt.Sprint(c.got(l)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !Sniff([]byte(c.text)) && c.name != "diagnostics 2.31" {
				t.Error("not recognised")
			}
		})
	}
}

func TestTransports(t *testing.T) {
	for _, c := range []struct {
		text string
		want Transport
	}{
		{"P2P/direct pointer", Transport{Kind: "P2P", Variant: "direct pointer"}},
		{"P2P/CUMEM/read/CE", Transport{Kind: "P2P", Variant: "CUMEM", Read: true, CE: true}},
		{"P2P/MNNVL", Transport{Kind: "P2P", Variant: "MNNVL"}},
		{"P2P/IPC/read", Transport{Kind: "P2P", Variant: "IPC", Read: true}},
		{"P2P/indirect/3[b000]", Transport{Kind: "P2P", Variant: "indirect", Proxy: probe.Some(3)}},
		{"SHM/direct/direct", Transport{Kind: "SHM", Variant: "direct/direct"}},
		{"SHM/CE/direct", Transport{Kind: "SHM", Variant: "CE/direct", CE: true}},
		{"direct shared memory", Transport{Kind: "SHM", Variant: "direct"}},
		{"NET/IB/0", Transport{Kind: "NET", Network: "IB", NetDev: probe.Some(0)}},
		{"NET/IB/7(3)/GDRDMA(PCI)/Shared", Transport{Kind: "NET", Network: "IB", NetDev: probe.Some(7), Proxy: probe.Some(3), GDR: true, GDRPCI: true, Shared: true}},
		{"NET/AWS Libfabric/4/GDRDMA", Transport{Kind: "NET", Network: "AWS Libfabric", NetDev: probe.Some(4), GDR: true}},
		{"COLLNET/SHARP/0/GDRDMA", Transport{Kind: "COLLNET", Network: "SHARP", NetDev: probe.Some(0), GDR: true}},
	} {
		c.want.Text = c.text
		if got, ok := parseTransport(c.text); !ok || got != c.want {
			t.Errorf("%s: %+v %v", c.text, got, ok)
		}
	}
	for _, torn := range []string{"", "P", "P2P/CU", "P2P/IPC/re", "NET/IB/", "NET/IB", "NET/IB/0(", "NET/IB/0/GDRD", "NET/IB/0/GDRDMA/Sha", "SHM/dir"} {
		if got, ok := parseTransport(torn); ok {
			t.Errorf("%q is torn, read as %+v", torn, got)
		}
	}
}

// TestLabels tells an NVML index from a bus id.
func TestLabels(t *testing.T) {
	line := env + "Channel 00/0 : 0[%s] -> 1[%s] via P2P/IPC\n"
	for _, c := range []struct{ version, label, want string }{
		{"2.18.5", "60", "60 unknown"}, {"2.12.12", "60", "unknown 96"}, {"2.18.1", "60", "unknown 96"},
		{"2.28.3", "1a000", "unknown 106496"}, {"", "1a000", "unknown 106496"}, {"", "6", "unknown unknown"},
	} {
		text := fmt.Sprintf(line, c.label, c.label)
		if c.version != "" {
			text += env + "NCCL version " + c.version + "+cuda12.0\n"
		}
		k := read(t, text).Loose.Conns[0]
		if got := fmt.Sprint(k.From.NVML, " ", k.From.BusID); got != c.want || k.From.Label != c.label {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestPrefixes reads one record as launchers, containers and terminals show it.
func TestPrefixes(t *testing.T) {
	rec := "gpu-01.cluster:123:456 [3] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0."
	for _, p := range []string{
		"", "[1,3]<stdout>:", "[1,3]<stderr>: ", "3: ", "12:  ", "[rank3]:", "[rank3]: ", "[default0]:", "0: [default3]:",
		"2026-01-02T03:04:05.123456789Z ", "2026-01-02T03:04:05.1Z stdout F ", "worker-0 pytorch 2026-01-02T03:04:05Z ", "pod/worker-0 ›  ",
		"[2026-01-02 03:04:05] ", "03:04:05.123456 ", "(RayTrainWorker pid=12, ip=10.0.0.1) ", "\x1b[36m(worker)\x1b[0m ", " 10%|\u2588  | 1/9 [00:01<00:09]\r", "\ufeff",
	} {
		for _, end := range []string{"\n", "\r\n", "", "\x1b[0m\n"} {
			l := read(t, p+rec+end)
			if l.Records != 1 || len(l.Env) != 1 || l.Env[0].Value != "0" || l.Env[0].Host != "gpu-01" || l.Procs[0].PID != 123 {
				t.Errorf("%q %q: %d records, %+v, %+v", p, end, l.Records, l.Env, l.Procs)
			}
		}
	}
}

// TestGlued reads records that share a physical line or stand in a result row.
func TestGlued(t *testing.T) {
	l := read(t, "n1:10:11 [0] NCCL INFO Using network IB\n"+
		"n1:10:11 [0] NCCL INFO Using network Socketn1:10:11 [1] NCCL INFO NCCL_DEBUG set by environment to INFO\n"+
		"        1024     256     float     sum      -1n1:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPCn1:10:12 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUn1:10:11 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[1] via P2P/IPC\n"+
		"   12.5    0.00    0.00       0n1:10:11 [0] NCCL INFO Channel 03/0 : 0[0] -> 1[1] via P2P/IPC\n"+
		"        1024     256     float     sumn1:10:11 [0] NCCL INFO Channel 04/0 : 0[0] -> 1[1] via P2P/IPC\n"+
		"n1:10:11 [0] NCCL INFO Channel 05/0 : 0[0] -> 1\n")
	if h := fmt.Sprint(l.Hosts()); h != "[n1]" {
		t.Errorf("hosts %s", h)
	}
	if got := conns(l.Loose); got != "0>1 P2P/IPC x4" {
		t.Errorf("connections %s", got)
	}
	if len(l.Networks) != 2 || l.Networks[1].Name != "Socket" || len(l.Env) != 1 || l.Torn != 2 {
		t.Errorf("networks %+v env %+v torn %d", l.Networks, l.Env, l.Torn)
	}
}

func TestWarningsCounted(t *testing.T) {
	w := "\nn1:10:11 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer n2<4\x00>\n"
	l := read(t, strings.Repeat(w, 3)+strings.ReplaceAll(w, "n1", "n3"))
	if len(l.Warnings) != 2 || l.Warnings[0].Count != 3 || l.Warnings[0].First != 2 || l.Warnings[0].Last != 6 {
		t.Fatalf("%+v", l.Warnings)
	}
	invs := l.Inventories()
	if len(invs) != 3 || invs[0].Host.Name != "n1" || invs[1].Host.Name != "n3" || invs[2].Host.Name != "" || len(invs[0].Events) != 0 {
		t.Fatalf("%+v", invs)
	}
	want := []probe.Event{
		{Kind: probe.EventWarning, Host: "n1", Site: "misc/socket.cc:58", Text: "socketProgress: Connection closed by remote peer n2<4?>", Count: 3, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "job.log:2"}}},
		{Kind: probe.EventWarning, Host: "n3", Site: "misc/socket.cc:58", Text: "socketProgress: Connection closed by remote peer n2<4?>", Count: 1, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "job.log:8"}}},
	}
	if d := cmp.Diff(want, invs[2].Events, cmp.AllowUnexported(probe.Opt[int]{})); d != "" {
		t.Error(d)
	}
}

// A value into which another process wrote is not a value.
func TestTornSetting(t *testing.T) {
	l := read(t, env+"NCCL_BUFFSIZE set by environment to 838[1,3]<stdout>:\n"+env+"NCCL_PROTO set by environment to Simple\n")
	if len(l.Env) != 1 || l.Env[0].Value != "Simple" || l.Torn != 1 {
		t.Errorf("%+v, %d torn", l.Env, l.Torn)
	}
}

func TestOldCommunicators(t *testing.T) {
	// Up to 2.15 nothing but size and rank says which lines belong together, and
	// the rank's number comes last.
	var b strings.Builder
	for c := range 2 {
		for r := range 2 {
			who := fmt.Sprintf("n1:%d:%d [%d] NCCL INFO ", 20+r, 30+r, r)
			fmt.Fprintf(&b, "%sTrees [0] %d/-1/-1->%d->%d\n", who, 1-2*r, r, r-1)
			fmt.Fprintf(&b, "%sRing 00 : %d -> %d -> %d\n", who, 1-r, r, 1-r)
			fmt.Fprintf(&b, "%sChannel 00 : %d[%d000] -> %d[%d000] via P2P/IPC\n", who, r, r+1, 1-r, 2-r)
			fmt.Fprintf(&b, "%scomm 0x5%d%d rank %d nranks 2 cudaDev %d busId %d000 - Init COMPLETE\n", who, c, r, r, r, r+1)
		}
	}
	l := read(t, b.String())
	if len(l.Comms) != 2 {
		t.Fatalf("%d communicators", len(l.Comms))
	}
	for _, c := range l.Comms {
		if !c.Guessed || c.ID != "" || len(c.Members) != 2 || len(c.Trees) != 2 || len(c.Conns) != 2 || len(c.Rings) != 1 || !c.Rings[0].Joined {
			t.Errorf("%+v", c)
		}
	}
	if g := l.Inventories()[0].GPUs; len(g) != 2 || g[0].Index.Known() || g[0].Addr != probe.Some(probe.MustBDF("0000:01:00.0")) {
		t.Errorf("%+v", g)
	}
}

func TestInventoryHCAs(t *testing.T) {
	l := read(t, env+"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [2]mlx5_0+mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"+
		env+"NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x1 pciPath=/sys/devices/0000:17:00.0 ar=1\n"+
		env+"comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x9 - Init START\n"+
		"n1:12:12 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0x9 - Init START\n")
	inv := l.Inventories()[0]
	if err := inv.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(inv.HCAs) != 2 || inv.HCAs[0].Ports[0].Rate != probe.Some(probe.Rate(50e9)) || inv.HCAs[0].Ports[0].LinkLayer != "InfiniBand" ||
		inv.HCAs[1].Ports[0].LinkLayer != "Ethernet" || inv.HCAs[1].Ports[0].Rate.Known() || inv.HCAs[0].Addr.Known() {
		t.Errorf("%+v", inv.HCAs)
	}
	// Two containers of one name both call their GPU 0.
	if len(inv.GPUs) != 2 || inv.GPUs[0].Index.Known() || inv.GPUs[1].Index.Known() || !inv.GPUs[0].Addr.Known() {
		t.Errorf("%+v", inv.GPUs)
	}
}

// TestTorn reads lines that lost their end: nothing of them may be believed that
// could be half a number.
func TestTorn(t *testing.T) {
	whole := env + "comm 0x55aa rank 3 nranks 12 cudaDev 3 nvmlDev 5 busId 4e000 commId 0x3f - Init START"
	for n := len(env) + len("comm 0x"); n < len(whole); n++ {
		if l := read(t, whole[:n]+"\n"); len(l.Comms) != 0 {
			t.Errorf("%q: %+v", whole[:n], l.Comms)
		}
	}
	start := env + "comm 0x1 rank 0 nranks 12 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init START\n"
	for _, cut := range []string{"Channel 00/02 : 0 1 2 3", "Channel 00/02 : 0 2 3 1 5 6 7 8 9 10 11 1"} {
		if l := read(t, start+env+cut+"\n"); len(l.Comms[0].Rings) != 1 || !l.Comms[0].Rings[0].Cut {
			t.Errorf("%q: %+v", cut, l.Comms[0].Rings)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := env + "Using network " + strings.Repeat("x", 3*probe.MaxLine) + "\n"
	l := read(t, env+"Using network IB\n"+long+long+env+"Using network Socket\n")
	if l.CutLong != 2 || l.Lines != 4 || l.Records != 4 || l.Networks[len(l.Networks)-1].Name != "Socket" {
		t.Errorf("cut %d lines %d records %d", l.CutLong, l.Lines, l.Records)
	}
	exact := env + "Using network " + strings.Repeat("x", probe.MaxLine-len(env)-len("Using network ")-1) + "\n"
	if l := read(t, exact); l.CutLong != 0 || l.Lines != 1 {
		t.Errorf("a line of 1 MiB is cut")
	}
}

func TestReaderErrors(t *testing.T) {
	boom := errors.New("boom")
	if _, err := Read("x", io.MultiReader(strings.NewReader(env), iotest.ErrReader(boom))); !errors.Is(err, boom) {
		t.Error(err)
	}
	l, err := Read("x", iotest.OneByteReader(strings.NewReader(env+"Using network IB\n\n"+env+"Using network IB")))
	if err != nil || l.Lines != 3 || l.Networks[0].Count != 2 {
		t.Error(err, l)
	}
	inv := read(t, "hello\n").Inventories()[0]
	if len(inv.Gaps) != 1 || inv.Validate() != nil {
		t.Errorf("%+v", inv.Gaps)
	}
}

// TestBounded feeds facts that are all different.
func TestBounded(t *testing.T) {
	var b strings.Builder
	const n = 3 * maxKinds
	for i := range n {
		fmt.Fprintf(&b, "h%d:%d:%d [0] NCCL INFO Using network n%d\n", i, i, i, i)
	}
	l := read(t, b.String())
	if len(l.Networks) != maxKinds || len(l.Procs) != maxProcs || len(l.Dropped) == 0 {
		t.Errorf("%d networks, %d processes, dropped %v", len(l.Networks), len(l.Procs), l.Dropped)
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		env + "Using network IB":                            true,
		"# nccl-tests version 2.17\nn1:1:2 [0] NCCL INFO x": true,
		"include/shm.h:28 NCCL WARN Call failed":            true,
		"NCCL version 2.8.4+cuda11.1":                       true,
		"":                                                  false,
		"see the NCCL INFO lines":                           false,
		"the NCCL version 2.8 is old":                       false,
		"# nccl-tests version 2.17.6 nccl-headers=21605":    false,
		"NCCL_DEBUG=INFO":                                   false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		env + "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0(1)/GDRDMA(PCI)/Shared",
		env + "comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 5 busId 4e000 commId 0x3f - Init COMPLETE\n" + env + "Trees [0] 1/-1/-1->0->-1",
		env + "=== System : maxBw 1.0 totalBw 2.0 ===\n" + env + "CPU/0 (1/2/-1)\n" + env + "+ PCI[24.0] - GPU/1000 (0)\n" + env + "GPU/1000 :GPU/1000 (0/5000.0/LOC) ",
		env + "Pattern 4, crossNic 0, nChannels 2, bw 12.0/12.0, type SYS/PIX, sameChannels 1\n" + env + " 0 : GPU/0 GPU/1",
		env + "  Algorithm   |  Tree  |  Ring |\n" + env + "  AllReduce | 8.0/ 61.1 | 1.0/ 2.0 |",
		env + "AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7e count 4096 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x1",
		env + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n\x1b[1mNCCL version 2.8.4+cuda11.1",
		"0[0] -> 0[0] via NET//0)",
		"n1:1:2 [0] init.cc:1 (f) NCCL WARN xn1:1:2 [0] NCCL INFO init.cc:2 -> 3",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b)
		l, err := Read("x", strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if l.Lines > int64(strings.Count(string(b), "\n")+1) || l.Records > int64(len(b)) {
			t.Errorf("%d lines, %d records", l.Lines, l.Records)
		}
		for _, inv := range l.Inventories() {
			if err := inv.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

// What no communicator line claims still says which rank is where.
func TestLooseJob(t *testing.T) {
	l := read(t, strings.Join([]string{
		"n1:10:11 [0] NCCL INFO NET : Using interface lo:127.0.0.1<0>",
		"n1:10:11 [0] NCCL INFO NCCL_NTHREADS set by environment to 256.",
		"n1:12:12 [1] NCCL INFO NCCL_NTHREADS set by environment to 256.",
		"n1:10:11 [0] NCCL INFO Failed to open libibverbs.so[.1]",
		"n1:10:11 [0] NCCL INFO KV Convert to int : could not find value of '' in dictionary, falling back to 60",
		"n1:10:11 [0] NCCL INFO Channel 00 : 1[2000] -> 0[1000] [receive] via NET/Socket/0",
		"n2:20:21 [0] NCCL INFO Channel 00 : 1[2000] -> 0[1000] [send] via NET/Socket/0",
		"n3:30:31 [0] NCCL INFO Channel 00 : 2[1000] -> 3[2000] via P2P/IPC",
		"n4:40:41 [0] NCCL INFO Channel 00 : 2[1000] -> 3[2000] via P2P/IPC",
	}, "\n"))
	invs := l.Inventories()
	job := invs[len(invs)-1].Job
	if len(job.Comms) != 1 || job.Comms[0].ID != "" || job.Comms[0].Ranks != 0 || len(job.Comms[0].Conns) != 3 {
		t.Fatalf("%+v", job.Comms)
	}
	var got []string
	for _, m := range job.Comms[0].Members { // two processes claim rank 2
		got = append(got, fmt.Sprintf("%d %s %d", m.Rank, m.Host, m.PID.Or(0)))
	}
	if want := []string{"0 n1 10", "1 n2 20"}; !slices.Equal(got, want) {
		t.Errorf("ranks %q, want %q", got, want)
	}
	if len(job.Env) != 1 || !slices.Equal(job.Env[0].PIDs, []int{10, 12}) {
		t.Errorf("settings %+v", job.Env)
	}
	if len(job.Interfaces) != 1 || job.Interfaces[0].Use != probe.UseSocket || job.Interfaces[0].Addr != "127.0.0.1" {
		t.Errorf("interfaces %+v", job.Interfaces)
	}
	if len(job.Events) != 2 || job.Events[0].Class != NoteNetwork || job.Events[1].Class != NoteTopology {
		t.Errorf("notes %+v", job.Events)
	}
	// The end of a torn line is no communicator beside one.
	l = read(t, "n1:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE\n3[2000] -> 4[1000] via P2P/IPC\n")
	if invs := l.Inventories(); len(l.Loose.Conns) != 1 || len(invs[len(invs)-1].Comms) != 1 {
		t.Errorf("%+v", invs[len(invs)-1].Comms)
	}
	for _, inv := range invs {
		if err := inv.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestCutOut reads what people cut out of a log: connections and warnings without
// what stood before them.
func TestCutOut(t *testing.T) {
	for text, want := range map[string]string{
		"9[1a000] -> 2[6b000] [send] via NET/IB/0/GDRDMA\n9[1a000] -> 2[6b000] [receive] via NET/IB/1\n": "9>2 receive NET/IB/1 x0, 9>2 send NET/IB/0/GDRDMA x0",
		"the log says\n  Channel 02 : 0[0] -> 1[1] via SHM/direct/direct\n":                              "0>1 SHM/direct/direct x0",
		"P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case\n":           "warning",
		"  Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes\n":                                 "warning",
		"P2P is disabled by the administrator\n":                                                         "", "a[0] -> b[1] via NET\n": "", "see 1[6] -> 2[7] by NET/IB/0\n": "", "1[6] -> 2[7] via Tor/x\n": "",
	} {
		if got := Sniff([]byte(text)); got != (want != "") {
			t.Errorf("%q: recognised %v", text, got)
		}
		l := read(t, text)
		got := conns(l.Loose)
		if len(l.Warnings) == 1 && l.Warnings[0].Text == strings.TrimSpace(text) {
			got += "warning"
		}
		if got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// TestTornHost: a host's name that another process wrote into is no other host, and
// a transport that was torn is none.
func TestTornHost(t *testing.T) {
	known := "gx01:10:11 [0] NCCL INFO Using network IB\ngx01:20:21 [1] NCCL INFO Using network IB\n"
	for _, line := range []string{
		"01:10:11 [0] NCCL INFO Using network IB", "gx01:2gx01:10:11 [0] NCCL INFO Using network IB", "gx01:20:21 [1] NCCL INgx01:10:11 [0] NCCL INFO Using network IB",
		"gx01:20:10:11 [0] NCCL INFO Using network IB", "gx01:20:21 [1] NC:10:11 [0] NCCL INFO Using network IB", "gx01:20:21 01:10:11 [0] NCCL INFO Using network IB",
	} {
		if got := fmt.Sprint(read(t, known+line+"\n").Hosts()); got != "[gx01]" {
			t.Errorf("%s: hosts %s", line, got)
		}
	}
	// A host of its own, although its processes have the numbers of another's.
	if got := fmt.Sprint(read(t, known+"hx01:10:11 [0] NCCL INFO Using network IB\n").Hosts()); got != "[gx01 hx01]" {
		t.Error(got)
	}
	for _, via := range []string{"P2P/CUgx01:20:21 [1] NCCL INFO Channel 06", "P2[15] -> 0[0] via P2P", "P2PP2P/read", "M/read", "P2P/CU"} {
		if got := conns(read(t, env+"Channel 00/0 : 0[0] -> 1[1] via "+via+"\n").Loose); got != "" {
			t.Errorf("%s: %s", via, got)
		}
	}
}
