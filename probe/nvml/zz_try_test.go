//go:build try

package nvml

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type timing struct {
	mu sync.Mutex
	m  map[string][]time.Duration
}

func (t *timing) add(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m[name] = append(t.m[name], d)
}

func (t *timing) print(title string) {
	names := []string{}
	for n := range t.m {
		names = append(names, n)
	}
	sort.Strings(names)
	fmt.Println("==", title)
	for _, n := range names {
		l := t.m[n]
		slices.Sort(l)
		var sum time.Duration
		for _, d := range l {
			sum += d
		}
		fmt.Printf("%-45s n=%-6d median=%-12v p99=%-12v max=%-12v sum=%v\n", n, len(l), l[len(l)/2], l[len(l)*99/100], l[len(l)-1], sum)
	}
}

type timed struct {
	session
	t *timing
}

func (s timed) ask(q question) (any, status) {
	b := time.Now()
	v, st := s.session.ask(q)
	s.t.add(q.function, time.Since(b))
	return v, st
}
func (s timed) open(i int) (device, status) {
	b := time.Now()
	d, st := s.session.open(i)
	s.t.add(openFunction, time.Since(b))
	return timedGPU{d, s.t}, st
}
func (s timed) close() {
	b := time.Now()
	s.session.close()
	s.t.add("close", time.Since(b))
}

type timedGPU struct {
	device
	t *timing
}

func (g timedGPU) ask(q question) (any, status) {
	b := time.Now()
	v, st := g.device.ask(q)
	g.t.add(q.function, time.Since(b))
	return v, st
}
func (g timedGPU) fields(ids []field) []fieldAnswer {
	b := time.Now()
	a := g.device.fields(ids)
	g.t.add(fmt.Sprintf("%s/%d", fieldsFunction, len(ids)), time.Since(b))
	return a
}

func openTimed(t *timing) func() (session, *Unavailable) {
	return func() (session, *Unavailable) {
		b := time.Now()
		s, err := openDriver()
		t.add("init", time.Since(b))
		if err != nil {
			return nil, err
		}
		return timed{s, t}, nil
	}
}

func reads(t *testing.T, title string, n int, until time.Duration) {
	tm := &timing{m: map[string][]time.Duration{}}
	begin := time.Now()
	gaps := map[string]int{}
	for i := 0; i < n || time.Since(begin) < until; i++ {
		b := time.Now()
		inv, err := readDriver(context.Background(), Options{}, openTimed(tm), func(l library) library { return l })
		tm.add("~whole read", time.Since(b))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, g := range inv.Gaps {
			gaps[g.What+": "+g.Why]++
		}
		if i == 0 {
			fmt.Println("first read", time.Since(b))
		}
	}
	tm.print(title)
	fmt.Println("gaps", gaps)
}

func TestTryIdle(t *testing.T) {
	out := os.Getenv("OUT")
	var b bytes.Buffer
	begin := time.Now()
	inv, err := Record(context.Background(), &b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("record took", time.Since(begin))
	os.WriteFile(out+"/recording.json", b.Bytes(), 0o666)
	again, err := Replay("", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(out+"/inventory.json", []byte(encoded(t, inv)), 0o666)
	if d := cmp.Diff(encoded(t, inv), encoded(t, again)); d != "" {
		t.Errorf("replay differs:\n%s", d)
	}
	fmt.Println("sizes", b.Len(), len(encoded(t, inv)))
	for _, g := range inv.Gaps {
		fmt.Printf("gap %+v\n", g)
	}
	reads(t, "idle", 20, 0)
}

func TestTryLoad(t *testing.T) { reads(t, "load", 20, 20*time.Second) }

func TestTryCounters(t *testing.T) {
	inv, err := Read(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range inv.GPUs {
		fmt.Printf("counters gpu %d pstate %v util %v events %v pcie %+v replays %v\n", i, g.PState, g.Utilization, g.Events, g.PCIe, g.Replays)
		if g.LinkCounts == nil {
			continue
		}
		for name, c := range g.LinkCounts.Columns() {
			var sum uint64
			for l := range 18 {
				sum += c.At(l).Or(0)
			}
			if *c != nil {
				fmt.Printf("  %s sum=%d %v\n", name, sum, *c)
			}
		}
	}
}

// Everything NVML says of the fields and error counters of some links, asked singly.
func TestTryRaw(t *testing.T) {
	s, u := openDriver()
	if u != nil {
		t.Fatal(u)
	}
	defer s.close()
	n, _ := s.ask(question{function: "nvmlDeviceGetCount"})
	for i := range n.(int) {
		d, st := s.open(i)
		if st != success {
			t.Fatal(st)
		}
		for l := range 20 {
			var row []string
			for c := range 5 {
				v, st := d.ask(question{"nvmlDeviceGetNvLinkErrorCounter", l, c})
				row = append(row, fmt.Sprintf("%v/%d", v, int(st)))
			}
			for c := range 7 {
				v, st := d.ask(question{"nvmlDeviceGetNvLinkCapability", l, c})
				row = append(row, fmt.Sprintf("%v/%d", v, int(st)))
			}
			for _, id := range []int{161, 162, 163, 164, 165, 166, 167, 146, 206, 213, 220, 148} {
				a := d.fields([]field{{id, l}})
				row = append(row, fmt.Sprintf("f%d=%d/%d", id, a[0].value, int(a[0].s)))
			}
			fmt.Println("gpu", i, "link", l, row)
		}
		for id := 1; id < 320; id++ {
			a := d.fields([]field{{id, 0}})
			if a[0].s != notSupported {
				fmt.Printf("f%d=%d/%d ", id, a[0].value, int(a[0].s))
			}
		}
		fmt.Println()
	}
	if v, st := s.ask(question{function: "nvmlSystemGetConfComputeState"}); true {
		fmt.Println("cc", v, st)
	}
}
