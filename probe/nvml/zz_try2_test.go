//go:build try

package nvml

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

func med(n int, f func()) string {
	var l []time.Duration
	for range n {
		b := time.Now()
		f()
		l = append(l, time.Since(b))
	}
	first := l[0]
	slices.Sort(l)
	return fmt.Sprintf("first %v median %v max %v", first, l[len(l)/2], l[len(l)-1])
}

func TestTryCosts(t *testing.T) {
	b := time.Now()
	s, u := openDriver()
	if u != nil {
		t.Fatal(u)
	}
	fmt.Println("init", time.Since(b))
	b = time.Now()
	d, st := s.open(0)
	fmt.Println("open", time.Since(b), st)
	per := func(ids ...int) (out []field) {
		for l := range 18 {
			for _, id := range ids {
				out = append(out, field{id, l})
			}
		}
		return
	}
	byField := func(ids ...int) (out []field) {
		for _, id := range ids {
			for l := range 18 {
				out = append(out, field{id, l})
			}
		}
		return
	}
	for _, c := range []struct {
		name string
		ids  []field
	}{
		{"164 one link", []field{{164, 3}}},
		{"138 one link", []field{{138, 3}}},
		{"138-141 one link", []field{{138, 3}, {139, 3}, {140, 3}, {141, 3}}},
		{"161 one link", []field{{161, 3}}},
		{"161-163 one link", []field{{161, 3}, {162, 3}, {163, 3}}},
		{"165 one link", []field{{165, 3}}},
		{"164-166 one link", []field{{164, 3}, {165, 3}, {166, 3}}},
		{"8 of one link", []field{{164, 3}, {161, 3}, {162, 3}, {163, 3}, {138, 3}, {139, 3}, {140, 3}, {141, 3}}},
		{"206 one link", []field{{206, 3}}},
		{"164 all links", per(164)},
		{"138 all links", per(138)},
		{"138-141 all links by link", per(138, 139, 140, 141)},
		{"138-141 all links by field", byField(138, 139, 140, 141)},
		{"161-163 all links by link", per(161, 162, 163)},
		{"161-163 all links by field", byField(161, 162, 163)},
		{"8 all links by link", per(164, 161, 162, 163, 138, 139, 140, 141)},
		{"8 all links by field", byField(164, 161, 162, 163, 138, 139, 140, 141)},
		{"gpu fields", []field{{90, 0}, {170, 0}, {172, 0}, {173, 0}, {179, 0}, {180, 0}, {197, 0}, {198, 0}, {230, 0}}},
		{"173,179,180", []field{{173, 0}, {179, 0}, {180, 0}}},
		{"197,198", []field{{197, 0}, {198, 0}}},
		{"230", []field{{230, 0}}},
		{"142-145", []field{{142, 0}, {143, 0}, {144, 0}, {145, 0}}},
	} {
		fmt.Printf("%-32s %3d fields %s\n", c.name, len(c.ids), med(15, func() { d.fields(c.ids) }))
	}
	for _, q := range []question{
		{linkCapability.function, 3, 0}, {linkCapability.function, 3, 1}, {linkCapability.function, 3, 2}, {linkCapability.function, 3, 3}, {linkCapability.function, 3, 4}, {linkCapability.function, 3, 5},
		{linkErrors.function, 3, 0}, {linkErrors.function, 3, 1}, {linkErrors.function, 3, 2}, {linkErrors.function, 3, 3},
		{linkStateOf.function, 3, 0}, {linkVersion.function, 3, 0}, {linkRemote.function, 3, 0}, {linkRemoteAt.function, 3, 0},
		{eccModes.function, 0, 0}, {performance.function, 0, 0}, {utilization.function, 0, 0}, {eccErrors.function, 0, 0}, {eccErrors.function, 1, 1}, {bar1.function, 0, 0}, {fabricV.function, 0, 0}, {moduleID.function, 0, 0},
	} {
		fmt.Printf("%-45s %d %d %s\n", q.function, q.a, q.b, med(15, func() { d.ask(q) }))
	}
	// all states, then all versions, fresh session
	s.close()
	s, _ = openDriver()
	d, _ = s.open(0)
	for _, c := range []call[int]{linkStateOf, linkVersion, linkRemote} {
		b = time.Now()
		for l := range 18 {
			d.ask(question{c.function, l, 0})
		}
		fmt.Println("18 x", c.function, time.Since(b))
	}
	// Do calls of one GPU run side by side?
	for _, q := range []question{{linkErrors.function, 3, 0}, {linkCapability.function, 3, 0}, {fabricV.function, 0, 0}} {
		for _, n := range []int{1, 2, 4, 8} {
			b = time.Now()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					for range 20 {
						d.ask(q)
					}
				})
			}
			wg.Wait()
			fmt.Println(q.function, n, "side by side:", time.Since(b)/20, "for", n)
		}
	}
	s.close()
}

// On two GPUs: the same calls one after the other and side by side.
func TestTrySideBySide(t *testing.T) {
	s, u := openDriver()
	if u != nil {
		t.Fatal(u)
	}
	defer s.close()
	d := []device{}
	for i := range 2 {
		x, st := s.open(i)
		if st != success {
			t.Skip(st)
		}
		d = append(d, x)
	}
	ids := []field{}
	for l := range 18 {
		for _, id := range []int{164, 161, 162, 163, 138, 139, 140, 141} {
			ids = append(ids, field{id, l})
		}
	}
	for name, f := range map[string]func(i int){
		"caps":   func(i int) { d[i].ask(question{linkCapability.function, 3, 0}) },
		"errors": func(i int) { d[i].ask(question{linkErrors.function, 3, 0}) },
		"fabric": func(i int) { d[i].ask(question{fabricV.function, 0, 0}) },
		"p2p":    func(i int) { d[i].ask(question{p2pStatusOf.function, 1 - i, 0}) },
		"fields": func(i int) { d[i].fields(ids) },
	} {
		for range 3 {
			f(0)
			f(1)
		}
		b := time.Now()
		for range 20 {
			f(0)
			f(1)
		}
		seq := time.Since(b) / 20
		b = time.Now()
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for range 20 {
					f(i)
				}
			})
		}
		wg.Wait()
		fmt.Println(name, "both in turn", seq, "side by side", time.Since(b)/20)
	}
}
