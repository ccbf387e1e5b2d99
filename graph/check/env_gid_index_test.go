package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// roce is a host with one RoCE port: link-local and IPv4 entries, v1 before v2.
func roce() *host {
	h := rails(1)
	h.inv.HCAs[0].Ports[0].LinkLayer = "Ethernet"
	for i, gid := range []string{"fe80:0000:0000:0000:0000:0000:0000:0001", "fe80:0000:0000:0000:0000:0000:0000:0001",
		"0000:0000:0000:0000:0000:ffff:0a00:0001", "0000:0000:0000:0000:0000:ffff:0a00:0001"} {
		h.inv.HCAs[0].Ports[0].GIDs = append(h.inv.HCAs[0].Ports[0].GIDs, probe.GID{Index: i, GID: gid, Type: []string{"IB/RoCE v1", "RoCE v2"}[i%2]})
	}
	return h
}

func TestEnvGIDIndex(t *testing.T) {
	testEnv(t, "env-gid-index", []envCase{
		{name: "blocks the choice", text: "NCCL_IB_GID_INDEX=3\n", nccl: "2.28.3", host: roce(), want: []string{"info sure env:NCCL_IB_GID_INDEX"}},
		{name: "another entry", text: "NCCL_IB_GID_INDEX=1\n", nccl: "2.28.3", host: roce(), want: []string{"warning sure env:NCCL_IB_GID_INDEX"}, says: []string{"RoCE v2 IPv4 address at index 3"}},
		{name: "needed", text: "NCCL_IB_GID_INDEX=3\n", nccl: "2.20.5", host: roce()},
		{name: "automatic", text: "NCCL_IB_GID_INDEX=-1\n", nccl: "2.28.3", host: roce()},
		{name: "version not known", text: "NCCL_IB_GID_INDEX=3\n", host: roce(), gap: "2.21 and later"},
		{name: "InfiniBand", text: "NCCL_IB_GID_INDEX=3\n", nccl: "2.28.3", host: rails(1), want: []string{"info sure env:NCCL_IB_GID_INDEX"}, says: []string{"no effect here"}},
		{name: "only a log", log: "NCCL_IB_GID_INDEX=3", nccl: "2.28.3", want: []string{"info sure env:NCCL_IB_GID_INDEX"}},
		{name: "differs", log: "NCCL_IB_GID_INDEX=3 NCCL_IB_GID_INDEX=5", nccl: "2.28.3", job: func(j *probe.Job) {
			j.Env[0].Host, j.Env[1].Host = "a", "b"
		}, want: []string{"warning sure a/env:NCCL_IB_GID_INDEX", "warning sure b/env:NCCL_IB_GID_INDEX"}, says: []string{"on b it is 5"}},
	})
}
