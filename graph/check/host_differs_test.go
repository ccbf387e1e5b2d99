package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// set makes a cluster of n equal hosts gx01, gx02, … and changes some.
func set(n int, change map[int]func(*host)) *probe.Cluster {
	c := &probe.Cluster{}
	for i := 1; i <= n; i++ {
		h := h100x8()
		h.inv.Host.Name = fmt.Sprintf("gx%02d", i)
		h.inv.Runtime.Driver = "580.95.05"
		for j := range h.inv.GPUs {
			h.inv.GPUs[j].Name = "NVIDIA H100 80GB HBM3"
		}
		if f := change[i]; f != nil {
			f(h)
		}
		inv := h.inv
		inv.Normalize()
		c.Hosts = append(c.Hosts, &inv)
	}
	return c
}

func TestHostDiffers(t *testing.T) {
	fewer := func(h *host) { h.inv.HCAs = h.inv.HCAs[:7] }
	for _, c := range []struct {
		name string
		set  *probe.Cluster
		want []string // of the two rules
		says []string
	}{
		{name: "alike", set: set(4, nil)},
		{name: "one host", set: set(1, nil)},
		{name: "one is odd", set: set(4, map[int]func(*host){3: fewer}), want: []string{"host-differs warning host:gx03"},
			says: []string{"HCAs 7; active ports 7 × InfiniBand 400 Gb/s", "HCAs 8 (3 of 4 hosts); active ports"}},
		{name: "two are odd alike", set: set(5, map[int]func(*host){2: fewer, 4: fewer}), want: []string{"host-differs warning host:gx02 host:gx04"}},
		{name: "two are odd, each its own way", set: set(5, map[int]func(*host){2: fewer, 4: func(h *host) { h.inv.GPUs[0].Name = "NVIDIA H200" }}),
			want: []string{"host-differs warning host:gx02", "host-differs warning host:gx04"}, says: []string{"GPU models NVIDIA H100 80GB HBM3, NVIDIA H200"}},
		{name: "two hosts, nobody knows which", set: set(2, map[int]func(*host){2: fewer}), want: []string{"host-differs warning host:gx01 host:gx02"}, says: []string{"HCAs: 8 on gx01, 7 on gx02; active ports: 8 ×"}},
		{name: "two kinds of hosts", set: set(4, map[int]func(*host){1: named("NVIDIA H200"), 2: named("NVIDIA H200")}), want: []string{"host-differs info host:gx01 host:gx02 host:gx03 host:gx04"}},
		{name: "driver", set: set(3, map[int]func(*host){2: func(h *host) { h.inv.Runtime.Driver = "570.1" }}), want: []string{"versions-mixed warning host:gx02"},
			says: []string{"driver 570.1", "driver 580.95.05 (2 of 3 hosts)"}},
		{name: "not known of one", set: set(3, map[int]func(*host){2: func(h *host) { h.inv.Runtime.Driver = "" }})},
		// The rule about the host says it already.
		{name: "a port is down", set: set(3, map[int]func(*host){2: func(h *host) { h.down(1, "DOWN", "Polling") }})},
		{name: "an NVLink is down", set: set(3, map[int]func(*host){2: func(h *host) {
			links, _ := h.inv.GPUs[3].NVLinks.Get()
			links = slices.Clone(links)
			links[5].State = probe.LinkDown
			h.inv.GPUs[3].NVLinks = probe.Some(links)
		}})},
		// Idle hosts beside busy ones are no odd hosts.
		{name: "one is idle", set: set(3, map[int]func(*host){2: func(h *host) { h.idle() }})},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := RunCluster(c.set, All())
			if err != nil {
				t.Fatal(err)
			}
			var got, text []string
			for _, f := range res.Findings {
				if f.Rule == "host-differs" || f.Rule == "versions-mixed" {
					got = append(got, f.Rule+" "+f.Severity.String()+" "+strings.Join(f.Subjects, " "))
					text = append(text, f.Observed, f.Expected)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q\n%s", got, c.want, strings.Join(text, "\n"))
			}
			for _, s := range c.says {
				if !strings.Contains(strings.Join(text, "\n"), s) {
					t.Errorf("no %q in\n%s", s, strings.Join(text, "\n"))
				}
			}
		})
	}
}

func named(gpu string) func(*host) {
	return func(h *host) {
		for i := range h.inv.GPUs {
			h.inv.GPUs[i].Name = gpu
		}
	}
}

// Findings of a host in a set bear its name.
func TestClusterSubjects(t *testing.T) {
	res, err := RunCluster(set(3, map[int]func(*host){2: func(h *host) { h.down(1, "DOWN", "Polling") }}), All())
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(res); len(got) != 1 || !strings.HasPrefix(got[0], "hca-port-down critical gx02/port:mlx5_1/1") {
		t.Errorf("%q", got)
	}
	// Alone it does not need to.
	c := set(1, map[int]func(*host){1: func(h *host) { h.down(1, "DOWN", "Polling") }})
	if res, err = RunCluster(c, All()); err != nil || len(res.Findings) != 1 || !strings.HasPrefix(res.Findings[0].Subjects[0], "port:") {
		t.Errorf("%v %q", err, brief(res))
	}
}
