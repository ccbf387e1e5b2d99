package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// nets is a host with interfaces; a + in front of a name marks a physical one.
func nets(names ...string) *host {
	h := &host{}
	for _, n := range names {
		d := probe.NetDev{Name: n, Virtual: true, Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/net/" + n}}}
		if n[0] == '+' {
			d.Name, d.Virtual = n[1:], false
		}
		h.inv.NetDevs = append(h.inv.NetDevs, d)
	}
	return h
}

func TestEnvSocketIfname(t *testing.T) {
	usual := func() *host { return nets("lo", "docker0", "+ens5", "+ens6") }
	took := func(j *probe.Job) { j.Interfaces = []probe.Interface{{Use: probe.UseBootstrap, Name: "eth7"}} }
	testEnv(t, "env-socket-ifname", []envCase{
		{name: "lo readmitted", text: "NCCL_SOCKET_IFNAME=^docker0\n", host: usual(), want: []string{"warning sure env:NCCL_SOCKET_IFNAME net:lo"}, says: []string{"lo is a candidate again"}},
		{name: "lo readmitted, host not known", text: "NCCL_SOCKET_IFNAME=^docker0\n", want: []string{"warning sure env:NCCL_SOCKET_IFNAME"}, gap: noHardware},
		{name: "lo readmitted, in a log", log: "NCCL_SOCKET_IFNAME=^docker0", job: took, want: []string{"warning sure env:NCCL_SOCKET_IFNAME"}},
		{name: "lo excluded", text: "NCCL_SOCKET_IFNAME=^docker0,lo\n", host: usual()},
		{name: "lo excluded, host not known", text: "NCCL_SOCKET_IFNAME=^lo,docker\n", gap: noHardware},
		{name: "physical", text: "NCCL_SOCKET_IFNAME=ens\n", host: usual()},
		{name: "names of several hosts", text: "NCCL_SOCKET_IFNAME=eth0,ens5\n", host: usual()},
		{name: "none fits", text: "NCCL_SOCKET_IFNAME=ib0\n", host: usual(), want: []string{"critical sure env:NCCL_SOCKET_IFNAME"}, says: []string{"no interface of the host fits", "physical here: ens5, ens6"}},
		{name: "exact", text: "NCCL_SOCKET_IFNAME==ens\n", host: usual(), want: []string{"critical sure env:NCCL_SOCKET_IFNAME"}},
		{name: "virtual", text: "NCCL_SOCKET_IFNAME=docker\n", host: usual(), want: []string{"warning sure env:NCCL_SOCKET_IFNAME net:docker0"}},
		{name: "only lo", text: "NCCL_SOCKET_IFNAME=lo\n", host: usual(), want: []string{"critical sure env:NCCL_SOCKET_IFNAME net:lo"}},
		{name: "only lo on one node", text: "NCCL_SOCKET_IFNAME=lo\n", host: usual(), job: nodes(1), want: []string{"info sure env:NCCL_SOCKET_IFNAME net:lo"}},
		{name: "all excluded", text: "NCCL_SOCKET_IFNAME=^lo,docker,ens\n", host: usual(), want: []string{"critical sure env:NCCL_SOCKET_IFNAME"}},
		{name: "one character", text: "NCCL_SOCKET_IFNAME=e\n", host: usual(), want: []string{"warning sure env:NCCL_SOCKET_IFNAME"}, says: []string{"one character"}},
		{name: "env-bad-value speaks", text: "NCCL_SOCKET_IFNAME=lo,^docker\n", host: usual()},
		{name: "empty", text: "NCCL_SOCKET_IFNAME=\nNCCL_DEBUG=WARN\n", host: usual()},
		{name: "interfaces not known", text: "NCCL_SOCKET_IFNAME=eth0\n", host: matrix(2, nil, "X SYS", "SYS X"), gap: "network interfaces are not in the sources"},
		{name: "a log shows the interface", log: "NCCL_SOCKET_IFNAME=eth7", job: took},
	})
}
