package open

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"github.com/ncclmap/ncclmap/probe"
)

const ncclLog = "gx1:10:11 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n" +
	"gx1:10:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x9 - Init START\n"

// member is one entry of a tar: a file, or a link with its target.
type member struct {
	name, text string
	kind       byte
}

func tarOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Typeflag: m.kind}
		switch m.kind {
		case 0:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(m.text))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = m.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, m.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// What a recorded root needs at least: a GPU on a bridge, reached over links as
// in sysfs.
func rootMembers(prefix string) []member {
	dev := prefix + "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/"
	return []member{
		{name: dev + "vendor", text: "0x10de\n"}, {name: dev + "device", text: "0x2330\n"}, {name: dev + "class", text: "0x030200\n"},
		{name: dev + "numa_node", text: "0\n"},
		{name: prefix + "sys/bus/pci/devices/0000:01:00.0", text: "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0", kind: tar.TypeSymlink},
		{name: prefix + "dev/core", text: "/proc/kcore", kind: tar.TypeSymlink},
	}
}

func TestPacked(t *testing.T) {
	twoHosts := tarOf(t, slices.Concat(rootMembers("set/gx1/"), rootMembers("set/gx2/"), []member{{name: "set/gx1/topo.txt", text: topo}, {name: "set/README", text: "notes"}})...)
	for _, c := range []struct {
		name  string
		data  []byte
		kinds []string
		hosts []string
	}{
		{"log.gz", gz(t, []byte(ncclLog)), []string{kindNCCLLog}, []string{"gx1"}},
		{"log.zst", zst(t, []byte(ncclLog)), []string{kindNCCLLog}, []string{"gx1"}},
		{"log.gz.zst", zst(t, gz(t, []byte(ncclLog))), []string{kindNCCLLog}, []string{"gx1"}},
		{"tar", tarOf(t, member{name: "a/job.log", text: ncclLog}), []string{kindNCCLLog}, []string{"gx1"}},
		{"tar of gz", tarOf(t, member{name: "a/job.log.gz", text: string(gz(t, []byte(ncclLog)))}), []string{kindNCCLLog}, []string{"gx1"}},
		{"root.tar.gz", gz(t, tarOf(t, rootMembers("")...)), []string{kindRoot}, []string{""}},
		{"two hosts", zst(t, twoHosts), []string{kindSMITopo, "", kindRoot, kindRoot}, []string{"gx1", "gx2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The name says nothing.
			file := write(t, "x", string(c.data))
			cluster, sources, err := Read([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, s := range sources {
				kinds = append(kinds, s.Kind)
			}
			if !slices.Equal(kinds, c.kinds) || !slices.Equal(cluster.Names(), c.hosts) {
				t.Errorf("%q of %q, want %q of %q", kinds, cluster.Names(), c.kinds, c.hosts)
			}
			if strings.Contains(c.name, "root") && (len(cluster.Hosts[0].GPUs) == 0 && len(cluster.Hosts[0].PCI) == 0) {
				t.Errorf("%+v", cluster.Hosts[0])
			}
			// The same through standard input.
			again, _, err := Read([]string{"-"}, bytes.NewReader(c.data))
			if err != nil || len(again.Hosts) != len(cluster.Hosts) {
				t.Errorf("standard input: %v", err)
			}
		})
	}
}

func TestPackedRefused(t *testing.T) {
	deep := []byte(ncclLog)
	for range maxDepth + 1 {
		deep = gz(t, deep)
	}
	whole := gz(t, []byte(strings.Repeat(ncclLog, 100)))
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"absolute path", tarOf(t, member{name: "/etc/passwd", text: ncclLog}), `member "/etc/passwd" leaves the archive`},
		{"path upwards", tarOf(t, member{name: "a/../../x.log", text: ncclLog}), `leaves the archive`},
		{"link upwards", tarOf(t, member{name: "a/sys/x", text: "../../../etc/passwd", kind: tar.TypeSymlink}), `link "a/sys/x" leads out of the archive`},
		{"absolute link", tarOf(t, member{name: "sys/x", text: "/etc/passwd", kind: tar.TypeSymlink}), `leads out of the archive`},
		{"hard link upwards", tarOf(t, member{name: "sys/x", text: "../etc/passwd", kind: tar.TypeLink}), `leads out of the archive`},
		{"cut gzip", whole[:len(whole)/2], "gzip: unexpected EOF"},
		{"bad checksum", append(slices.Clone(whole[:len(whole)-8]), 0, 0, 0, 0, 0, 0, 0, 0), "gzip: invalid checksum"},
		{"cut tar", tarOf(t, member{name: "a", text: strings.Repeat(ncclLog, 9)})[:700], "x: "},
		{"too deep", deep, "more than 4 archives or compressions"},
		{"nothing known in it", tarOf(t, member{name: "a", text: "x"}, member{name: "b", text: "y"}), "nothing in it is not recognised"},
		{"empty", tarOf(t), "empty"},
		{"zip", []byte("PK\x03\x04 and more"), "a zip, xz or 7z archive is not recognised; unpack it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Read([]string{write(t, "x", string(c.data))}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x: ") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A small file that unpacks to very much is refused, whatever is in it, within
// bounded memory.
func TestBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 256 MiB")
	}
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat(ncclLog, 4096))
	for n := 0; n < 2*ratioFrom; n += len(line) {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = Read([]string{write(t, "bomb", b.String())}, nil)
	if err == nil || !strings.Contains(err.Error(), "unpacks to more than 1000 times its size") {
		t.Errorf("%d bytes: %v", b.Len(), err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		put(fmt.Sprintf("gx%02d/topo.txt", i), topo)
		put(fmt.Sprintf("gx%02d/topo.xml", i), xml)
	}
	put("gx00/notes.txt", "hello")
	put("gx01/broken.xml", "<system version=\"1\"><cpu></system>")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "gx02", "link")); err != nil {
		t.Fatal(err)
	}
	c, sources, err := Read([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 40 || c.Hosts[7].Host.Name != "gx07" || len(c.Hosts[7].GPUs) != 2 || c.Hosts[7].Host.Origins[0].Source != probe.SourceInferred {
		t.Errorf("%d hosts, %+v", len(c.Hosts), c.Hosts[7].Host)
	}
	skipped := map[string]string{}
	for _, s := range sources {
		if s.Skip != "" {
			skipped[strings.TrimPrefix(s.Name, dir+"/")] = s.Skip
		}
	}
	if len(skipped) != 3 || skipped["gx00/notes.txt"] != "not recognised" || !strings.Contains(skipped["gx01/broken.xml"], "broken.xml:1") || skipped["gx02/link"] != "a link; name its target" {
		t.Errorf("%q", skipped)
	}
	if _, _, err := Read([]string{t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("empty folder: %v", err)
	}
}

func TestUTF16(t *testing.T) {
	var b []byte
	for _, u := range append([]uint16{0xfeff}, utf16.Encode([]rune(strings.ReplaceAll(topo, "\n", "\r\n")))...) {
		b = append(b, byte(u), byte(u>>8))
	}
	inv, err := ReadHost(write(t, "x", string(b)))
	if err != nil || len(inv.GPUs) != 2 {
		t.Errorf("%v %+v", err, inv)
	}
}

// A stream of several kinds of output is longer than what is kept of it.
func TestStream(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 300 MB")
	}
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n", ncclLog)
		block := []byte(strings.Repeat("gx1:10:11 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x1 [nranks=2] stream 0x3\n", 8192))
		for n := 0; n < 300<<20; n += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		fmt.Fprint(w, "gx1:10:11 [0] init.cc:1 NCCL WARN the last line counts\n")
		w.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, sources, err := Read([]string{"-"}, r)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if len(sources) != 2 || len(c.Events) == 0 || c.Events[0].Text != "the last line counts" {
		t.Errorf("%v %+v", sources, c.Events)
	}
	if held := int64(after.HeapSys) - int64(before.HeapSys); held > 100<<20 {
		t.Errorf("took %d MB", held>>20)
	}
}

// One line without an end is no topology and does not fill the memory.
func TestEndlessLine(t *testing.T) {
	_, _, err := Read([]string{"-"}, io.LimitReader(endless('x'), 1<<30))
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}
