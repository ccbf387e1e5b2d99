package open

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/probe"
)

// roots are recorded roots, which are no texts.
var roots = regexp.MustCompile(`/(?:sysroot|host|proc-driver-nvidia)/`)

// inputs are all small texts that tests and recordings hold.
func inputs(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{
		"matrix": []byte(matrix), "machine": []byte(machine), "log": []byte(jobLog), "kernel": []byte(kernel),
		"pasted": []byte("$ nvidia-smi topo -m\n" + quote(matrix) + machine + jobLog + kernel),
	}
	for _, name := range fixtures.Names() {
		m, err := fixtures.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range m.Files() {
			if out[name+"/"+file], err = m.File(file); err != nil {
				t.Fatal(err)
			}
		}
		if m.Inventory != nil {
			var b strings.Builder
			if err := m.Inventory.Encode(&b); err != nil {
				t.Fatal(err)
			}
			out[name+".json"] = []byte(b.String())
		}
	}
	for _, folder := range []string{"corpus", "captures/2xh200-vm", "cases"} {
		_ = filepath.WalkDir(filepath.Join(shared, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || roots.MatchString(file) {
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out[file] = text
			return nil
		})
	}
	return out
}

var number = regexp.MustCompile(`[0-9]+`)

// mutate damages a text as transfers and editors do.
func mutate(rnd *rand.Rand, text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	at := rnd.IntN(len(text))
	switch rnd.IntN(8) {
	case 0: // cut
		return text[:at]
	case 1: // begins late
		return text[at:]
	case 2: // bytes lost
		return slices.Delete(slices.Clone(text), at, min(len(text), at+1+rnd.IntN(40)))
	case 3: // bytes changed
		out := slices.Clone(text)
		for range 1 + rnd.IntN(8) {
			out[rnd.IntN(len(out))] = byte(rnd.IntN(256))
		}
		return out
	case 4: // a line twice
		lines := strings.SplitAfter(string(text), "\n")
		n := rnd.IntN(len(lines))
		return []byte(strings.Join(slices.Insert(lines, n, lines[n]), ""))
	case 5: // a number that is too large, negative or none
		digits := number.FindAllIndex(text, 4096)
		if len(digits) == 0 {
			return text[:at]
		}
		d := digits[rnd.IntN(len(digits))]
		odd := []string{"-1", "99999999999999999999", "2147483648", "0", "x", "1e308", "NaN", ""}
		return slices.Concat(text[:d[0]], []byte(odd[rnd.IntN(len(odd))]), text[d[1]:])
	case 6: // a character that does not belong
		odd := []string{"\x00", "\x1b[", "\xff", "\r", "\t", "\"", "<", ">", "{", "\u202e", "\u2028", "&#0;"}
		return slices.Concat(text[:at], []byte(odd[rnd.IntN(len(odd))]), text[at:])
	default: // two parts exchanged
		return slices.Concat(text[at:], text[:at])
	}
}

// Whatever becomes of a text on its way, reading it ends soon, without a panic, in
// an inventory that is valid or an error that names the text.
func TestDamaged(t *testing.T) {
	rounds, each := 30, 5*time.Second
	if testing.Short() { // the race detector makes everything slow
		rounds, each = 2, time.Minute
	}
	texts := inputs(t)
	names := slices.Sorted(maps.Keys(texts))
	rnd := rand.New(rand.NewPCG(1, 2))
	n := 0
	for round := range rounds {
		for _, name := range names {
			if len(texts[name]) > 256<<10 || round > 0 && len(texts[name]) > 64<<10 {
				continue
			}
			text := mutate(rnd, texts[name])
			if round%4 == 3 {
				text = mutate(rnd, text)
			}
			took, err := readDamaged(text)
			if err != nil {
				t.Errorf("%s, round %d: %v\n%.300q", name, round, err, text)
			}
			if took > each { // the machine may have been busy
				if took, _ = readDamaged(text); took > each {
					t.Errorf("%s, round %d: took %v", name, round, took)
				}
			}
			n++
		}
	}
	t.Logf("%d texts", n)
}

func readDamaged(text []byte) (took time.Duration, err error) {
	begun := time.Now()
	defer func() {
		took = time.Since(begun)
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c, _, err := Read([]string{"-"}, strings.NewReader(string(text)))
	if err != nil {
		if !strings.Contains(err.Error(), "standard input") {
			return 0, fmt.Errorf("an error that does not name the input: %w", err)
		}
		return 0, nil
	}
	for _, h := range c.Hosts {
		if err := h.Validate(); err != nil {
			return 0, fmt.Errorf("an inventory that is not valid: %w", err)
		}
	}
	whole := probe.Inventory{Job: c.Job, Gaps: c.Gaps}
	if err := whole.Validate(); err != nil {
		return 0, fmt.Errorf("a job that is not valid: %w", err)
	}
	return 0, nil
}

// filled is a text of a head, a part that is repeated up to a length, and an end.
func filled(head, part, end string, size int) io.Reader {
	n := max(size-len(head)-len(end), 0) / len(part)
	return io.MultiReader(strings.NewReader(head), &repeated{part: part, n: n}, strings.NewReader(end))
}

type repeated struct {
	part string
	n    int // parts that are left
	rest string
}

func (r *repeated) Read(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		if r.rest == "" {
			if r.n == 0 {
				break
			}
			k := min(r.n, 1+len(b)/len(r.part))
			r.rest = strings.Repeat(r.part, k)
			r.n -= k
		}
		n := copy(b[done:], r.rest)
		r.rest = r.rest[n:]
		done += n
	}
	if done == 0 {
		return 0, io.EOF
	}
	return done, nil
}

// Texts that are small to send and large to read are refused, or read in bounded
// memory.
func TestBombsOfText(t *testing.T) {
	const size = 16 << 20 // more than headSize, less than probe.MaxInput
	laughs := `<?xml version="1.0"?><!DOCTYPE system [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><system version="1" name="&b;"/>`
	for _, c := range []struct {
		name string
		text io.Reader
		want string // of the error; "" = it is read
	}{
		{"entities", strings.NewReader(laughs), "text not recognised"},
		{"entities within", strings.NewReader("<system version=\"1\">" + laughs + "</system>"), "document type or entity declaration"},
		{"deep XML", filled(`<system version="1">`, "<pci>", "", size), "nested deeper than 64"},
		{"many elements", filled(`<system version="1">`, "<a/>", "</system>", size), "more than 200000 elements"},
		{"many attributes", filled(`<system version="1" `, `a="" `, "/>", size), "a tag or comment of more than"},
		{"many graphs", filled(`<graphs version="1">`, `<graph/>`, "</graphs>", size), "more than 200000 elements"},
		{"deep hwloc", filled(`<topology version="2.0">`, "<object>", "", size), "nested deeper than 64"},
		{"deep JSON", filled(`{"schema": "ncclmap.inventory/v1", "gpus": `, "[", "", size), "standard input"},
		{"many objects", filled(`{"schema": "ncclmap.inventory/v1", "gpus": [{}`, ",{}", "]}", size), "more than 262144 objects"},
		{"many nulls", filled(`{"schema": "ncclmap.inventory/v1", "gpus": [null`, ", null", "]}", size), "more than 262144 objects"},
		{"many hosts", filled(`{"schema": "ncclmap.cluster/v1", "hosts": [{}`, ",{}", "]}", size), "objects, which no such document holds"},
		{"matrix of columns", filled("\tGPU0", "\tNIC0", "\nGPU0\t X \tPIX\n", size), "standard input"},
		{"one line of a log", filled(jobLog+"gx01:10:11 [0] NCCL INFO ", "x", "\n"+jobLog, size), ""},
		{"connections on one line", filled(jobLog, "gx01:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "\n", size), ""},
		{"1 GB on one line of a log", filled(jobLog+"gx01:10:11 [0] NCCL INFO ", "x", "\n"+jobLog, 1<<30), ""},
		{"much quotation", filled(jobLog+"\n> \n> \n> \n> ", "> &gt;", "\n"+jobLog, size*8), ""},
		{"UTF-16 without end", filled("\xff\xfe", "x\x00", "", size), "standard input"},
	} {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, _, err := Read([]string{"-"}, c.text)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %q", c.name, err, c.want)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 400<<20 {
			t.Errorf("%s: took %d MB", c.name, grown>>20)
		}
		t.Logf("%s: %v, %d MB allocated, heap %d MB: %.100v", c.name, took, (after.TotalAlloc-before.TotalAlloc)>>20, after.HeapSys>>20, err)
	}
}
