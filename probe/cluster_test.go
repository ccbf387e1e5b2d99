package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// seen makes a part: a host's name, and GPUs as "index bdf uuid", "-" = unknown.
func seen(source, folder, host string, gpus ...string) Part {
	inv := &Inventory{Schema: Schema, Host: Host{Name: host}}
	for _, s := range gpus {
		f := strings.Fields(s)
		g := GPU{Origins: []Origin{{Source: source, Where: "x"}}}
		if f[0] != "-" {
			g.Index = Some(int(f[0][0] - '0'))
		}
		if f[1] != "-" {
			g.Addr = Some(MustBDF(f[1]))
		}
		if f[2] != "-" {
			g.UUID = f[2]
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	inv.Normalize()
	return Part{Inv: inv, File: strings.TrimPrefix(folder+"/"+source, "/"), Folder: folder}
}

const (
	at17 = "0000:17:00.0"
	at2a = "0000:2a:00.0"
)

// hostsOf prints each host with its GPUs, the joined result.
func hostsOf(c *Cluster) []string {
	var out []string
	for _, h := range c.Hosts {
		s := h.Host.Name
		for _, g := range h.GPUs {
			s += fmt.Sprintf(" [%v %v %s]", g.Index, g.Addr, g.UUID)
		}
		out = append(out, s)
	}
	return out
}

// Two files of one name hold two runs.
func TestJoinKeepsRunsApart(t *testing.T) {
	part := func(us float64) Part {
		return Part{File: "out.txt", Inv: &Inventory{Schema: Schema, Job: Job{
			Runs:    []Run{{ID: "out.txt:9", File: "out.txt"}},
			Samples: []Sample{{Run: "out.txt:9", Collective: "AllReduce", Bytes: 8, TimeUS: us}},
		}}}
	}
	c, err := Join([]Part{part(1), part(2)})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Runs) != 2 || c.Runs[1].ID != "out.txt:9#2" || c.Samples[0].Run != "out.txt:9" || c.Samples[1].Run != "out.txt:9#2" {
		t.Errorf("%+v %+v", c.Runs, c.Samples)
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []Part
		want  []string
		gaps  int
	}{
		{name: "a nameless part joins the only host", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceSMITopo, "", "", "0 - -")}, want: []string{"gx1 [0 " + at17 + " GPU-a]"}},
		{name: "names cut at the first dot", parts: []Part{seen(SourceNVML, "", "gx1.lan", "0 "+at17+" GPU-a"), seen(SourceNCCLLog, "", "gx1", "- "+at2a+" -")}, want: []string{"gx1.lan [0 " + at17 + " GPU-a] [unknown " + at2a + " ]"}},
		{name: "the same short name in two domains", parts: []Part{seen(SourceNVML, "", "gx1.a", "0 "+at17+" GPU-a"), seen(SourceNVML, "", "gx1.b", "0 "+at17+" GPU-b")}, want: []string{"gx1.a [0 " + at17 + " GPU-a]", "gx1.b [0 " + at17 + " GPU-b]"}},
		{name: "a UUID ties a container to its host", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceSMIQuery, "", "pod-7", "- - GPU-a")}, want: []string{"gx1 [0 " + at17 + " GPU-a]"}},
		{name: "a UUID ties a nameless part", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceNVML, "", "gx2", "0 "+at17+" GPU-b"), seen(SourceSMIQuery, "", "", "1 "+at2a+" GPU-c", "- - GPU-b")},
			want: []string{"gx1 [0 " + at17 + " GPU-a]", "gx2 [0 " + at17 + " GPU-b] [1 " + at2a + " GPU-c]"}},
		{name: "addresses that one host has", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceNVML, "", "gx2", "0 "+at2a+" GPU-b"), seen(SourceNCCLXML, "", "", "0 "+at2a+" -")},
			want: []string{"gx1 [0 " + at17 + " GPU-a]", "gx2 [0 " + at2a + " GPU-b]"}},
		{name: "addresses that two hosts have", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceNVML, "", "gx2", "0 "+at17+" GPU-b"), seen(SourceNCCLXML, "", "", "0 "+at17+" -")},
			want: []string{"gx1 [0 " + at17 + " GPU-a]", "gx2 [0 " + at17 + " GPU-b]", "ncclxml [0 " + at17 + " ]"}, gaps: 1},
		{name: "folders of hosts", parts: []Part{seen(SourceNVML, "d/gx1", "", "0 "+at17+" GPU-a"), seen(SourceSMITopo, "d/gx1", "", "0 - -"), seen(SourceNVML, "d/gx2", "", "0 "+at17+" GPU-b"), seen(SourceSMITopo, "d/gx2", "", "0 - -")},
			want: []string{"gx1 [0 " + at17 + " GPU-a]", "gx2 [0 " + at17 + " GPU-b]"}},
		{name: "a folder of one kind of output", parts: []Part{named("gx1.topo.txt", seen(SourceSMITopo, "d", "", "0 - -")), named("gx2.topo.txt", seen(SourceSMITopo, "d", "", "0 - -"))}, want: []string{"gx1 [0 unknown ]", "gx2 [0 unknown ]"}},
		{name: "a root in a folder beside the host's files", parts: []Part{seen(SourceNVML, "d", "gx1", "0 "+at17+" GPU-a"), seen(SourceSysfs, "d/root", "", "- "+at17+" -")}, want: []string{"gx1 [0 " + at17 + " GPU-a]"}},
		{name: "names that are taken", parts: []Part{seen(SourceNVML, "d/a/host", "", "0 "+at17+" GPU-a"), seen(SourceNVML, "d/b/host", "", "0 "+at17+" GPU-b"), named("x/nvml", seen(SourceNVML, "d/b/host", "", "0 "+at17+" GPU-c"))},
			want: []string{"host-nvml [0 " + at17 + " GPU-b]", "nvml [0 " + at17 + " GPU-a]", "x-nvml [0 " + at17 + " GPU-c]"}},
		{name: "an index of another order is a conflict, not an error", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a", "1 "+at2a+" GPU-b"), seen(SourceNCCLTests, "", "gx1", "0 "+at2a+" -", "1 "+at17+" -")},
			want: []string{"gx1 [0 " + at17 + " GPU-a] [1 " + at2a + " GPU-b]"}},
		{name: "an index that another board has", parts: []Part{seen(SourceNVML, "", "gx1", "0 "+at17+" GPU-a"), seen(SourceNCCLTests, "", "gx1", "0 "+at2a+" -")}, want: []string{"gx1 [0 " + at17 + " GPU-a] [unknown " + at2a + " ]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Join(c.parts)
			if err != nil {
				t.Fatal(err)
			}
			if h := hostsOf(got); !slices.Equal(h, c.want) || len(got.Gaps) != c.gaps {
				t.Errorf("%q, want %q\ngaps %v", h, c.want, got.Gaps)
			}
			// The document holds all of it.
			if len(got.Hosts) > 1 {
				var b bytes.Buffer
				if err := got.Encode(&b); err != nil {
					t.Fatal(err)
				}
				back, err := DecodeCluster("c.json", b.Bytes())
				if err != nil || !slices.Equal(hostsOf(back), c.want) {
					t.Errorf("%v, %q", err, hostsOf(back))
				}
			}
		})
	}
}

func named(file string, p Part) Part {
	p.File = p.Folder + "/" + file
	return p
}

// Ranks of one communicator print into files of their own.
func TestJobsJoin(t *testing.T) {
	part := func(host string, rank int) Part {
		return Part{File: host, Inv: &Inventory{Schema: Schema, Host: Host{Name: host}, Job: Job{
			Comms:  []Comm{{ID: "0x1", Ranks: 2, Members: []Member{{Rank: rank, Host: host}}, Conns: []Connection{{From: rank, To: 1 - rank, Via: ViaNET}}}},
			Events: []Event{{Kind: EventXid, Text: "79"}},
		}}}
	}
	c, err := Join([]Part{part("b", 1), part("a", 0), {File: "c", Inv: &Inventory{Schema: Schema, Job: Job{Comms: []Comm{{ID: "0x1", Ranks: 8}, {Ranks: 2}, {Ranks: 2}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	// Another size is another communicator, and without an id nothing says which.
	if len(c.Comms) != 4 || len(c.Comms[0].Members) != 2 || c.Comms[0].Members[0].Host != "a" || len(c.Comms[0].Conns) != 2 {
		t.Errorf("%+v", c.Comms)
	}
	if len(c.Events) != 2 || c.Events[0].Host != "b" || c.Hosts[0].NoJob() != true || !slices.Equal(c.JobHosts(), []string{"a", "b"}) {
		t.Errorf("%+v", c.Events)
	}
	if _, ok := c.Single(); ok || c.Host("a.lan") != c.Hosts[0] {
		t.Error("two hosts are not one")
	}
}

func TestPartsOfAnObjectMerge(t *testing.T) {
	gpu := func(source string, f Fabric) *Inventory {
		return &Inventory{Schema: Schema, GPUs: []GPU{{Index: Some(0), Fabric: &f, Origins: []Origin{{Source: source, Where: "x"}}}}}
	}
	inv, err := Merge(gpu(SourceNVML, Fabric{State: "completed", Status: Some(0)}), gpu(SourceSMIQuery, Fabric{State: "completed", ClusterUUID: "1"}))
	if err != nil || len(inv.Conflicts) != 0 || inv.GPUs[0].Fabric.ClusterUUID != "1" || inv.GPUs[0].Fabric.Status != Some(0) {
		t.Errorf("%v %+v %v", err, inv.GPUs[0].Fabric, inv.Conflicts)
	}
	inv, err = Merge(gpu(SourceNVML, Fabric{State: "completed"}), gpu(SourceSMIQuery, Fabric{State: "in progress"}))
	if err != nil || len(inv.Conflicts) != 1 || inv.Conflicts[0].Field != "fabric.state" {
		t.Errorf("%v %+v", err, inv.Conflicts)
	}
}

func TestDecodeClusterRefuses(t *testing.T) {
	host := func(name string) string { return `{"schema":"` + Schema + `","host":{"name":"` + name + `"}}` }
	for text, want := range map[string]string{
		`{"schema":"x"}`: `schema is "x"`,
		`{"schema":"` + ClusterSchema + `","hosts":[null]}`:                                "host 0 is null",
		`{"schema":"` + ClusterSchema + `","hosts":[` + host("") + `]}`:                    "host 0 has no name",
		`{"schema":"` + ClusterSchema + `","hosts":[` + host("a") + `,` + host("a") + `]}`: "host a stands twice",
		`{"schema":"` + ClusterSchema + `","comms":[{"id":"0x1","ranks":0}]}`:              "has 0 ranks",
		`{"schema":"` + ClusterSchema + `"} x`:                                             "c.json:1",
	} {
		if _, err := DecodeCluster("c.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
