package render

import (
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/render/text"
)

// LogDoc is the document of ncclmap log: what NCCL jobs say of themselves, and the
// findings of it. Its keys are those of the inventory and of ncclmap model where
// they speak of the same thing.
type LogDoc struct {
	Schema     string             `json:"schema"`
	Logs       []probe.LogFile    `json:"logs"`
	Versions   []probe.NCCLSeen   `json:"nccl_versions"`
	Networks   []probe.Network    `json:"networks"`
	Adapters   []probe.Adapter    `json:"adapters"`
	Interfaces []probe.Interface  `json:"interfaces"`
	Settings   []probe.EnvSetting `json:"settings"`
	Comms      []commJSON         `json:"communicators"`
	Choices    []probe.Choice     `json:"choices"`
	Warnings   []probe.Event      `json:"warnings"`
	check.Result
}

type commJSON struct {
	ID         string             `json:"id"`
	NCCL       string             `json:"nccl_version,omitempty"`
	Ranks      int                `json:"ranks"`
	Missing    [][2]int           `json:"ranks_not_in_log"` // first and last of each run
	Nodes      probe.Opt[int]     `json:"nodes"`
	Channels   probe.Opt[int]     `json:"channels"`
	Members    []probe.Member     `json:"members"`
	Graphs     []probe.Graph      `json:"graphs"`
	Rings      []probe.Ring       `json:"rings"`
	Trees      []probe.TreeNode   `json:"trees"`
	Transports []text.Transport   `json:"transports"`
	Conns      []probe.Connection `json:"connections"`
	Tuning     []probe.TuningCell `json:"tuning"` // what NCCL offers
	Limits     []string           `json:"limits"` // what the lines do not prove
}

// NewLogDoc makes the document. Lists that are empty stand there as such.
func NewLogDoc(j *probe.Job, res check.Result) LogDoc {
	d := LogDoc{
		Schema: "ncclmap.log/v1", Logs: list(j.Logs), Versions: list(j.Versions), Networks: list(j.Networks), Adapters: list(j.Adapters),
		Interfaces: list(j.Interfaces), Settings: list(j.Env), Comms: []commJSON{}, Choices: list(j.Choices), Warnings: []probe.Event{}, Result: res,
	}
	for i := range j.Comms {
		c := &j.Comms[i]
		out := commJSON{
			ID: c.ID, NCCL: c.NCCL, Ranks: c.Ranks, Missing: list(text.MissingRanks(c)), Nodes: c.Nodes, Channels: c.Channels, Members: list(c.Members),
			Graphs: list(c.Graphs), Rings: list(c.Rings), Trees: list(c.Trees), Transports: list(text.Transports(c)), Conns: list(c.Conns),
			Tuning: []probe.TuningCell{}, Limits: list(text.Limits(j, c)),
		}
		for _, t := range c.Tuning {
			if t.GBs > 0 {
				out.Tuning = append(out.Tuning, t)
			}
		}
		d.Comms = append(d.Comms, out)
	}
	for _, e := range j.Events {
		if e.Kind != probe.EventNote {
			d.Warnings = append(d.Warnings, e)
		}
	}
	return d
}

// list makes an empty list of a missing one.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
