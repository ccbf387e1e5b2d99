package render

import (
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nccllog"
	"github.com/ncclmap/ncclmap/render/text"
)

// LogDoc is the document of ncclmap log: what NCCL's logs say, in brief.
type LogDoc struct {
	Schema string    `json:"schema"`
	Logs   []logJSON `json:"logs"`
}

type logJSON struct {
	File     string        `json:"file"`
	Lines    int64         `json:"lines"`
	Records  int64         `json:"records"`
	Torn     int64         `json:"incomplete_records"`
	Versions []versionJSON `json:"versions"`
	Networks []networkJSON `json:"networks"`
	Settings []settingJSON `json:"settings"`
	Comms    []commJSON    `json:"communicators"`
	Warnings []warningJSON `json:"warnings"`
}

type versionJSON struct {
	NCCL string `json:"nccl_version"`
	CUDA string `json:"cuda_version,omitempty"`
	Host string `json:"host,omitempty"`
}

type networkJSON struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Host  string `json:"host,omitempty"`
}

type settingJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	How   string `json:"how"`
	Host  string `json:"host,omitempty"`
}

type commJSON struct {
	ID         string           `json:"id"`
	NCCL       string           `json:"nccl_version,omitempty"`
	Ranks      int              `json:"ranks"`
	Seen       int              `json:"ranks_in_log"`
	Nodes      probe.Opt[int]   `json:"nodes"`
	Channels   probe.Opt[int]   `json:"channels"`
	Graphs     []logGraphJSON   `json:"graphs"`
	Transports []text.Transport `json:"transports"`
	Tuning     []tuningJSON     `json:"tuning"`
}

type logGraphJSON struct {
	Pattern   string  `json:"pattern"`
	Channels  int     `json:"channels"`
	BWIntra   float64 `json:"bw_intra_gbs"`
	BWInter   float64 `json:"bw_inter_gbs"`
	TypeIntra string  `json:"type_intra"`
	TypeInter string  `json:"type_inter"`
	CrossNIC  int     `json:"cross_nic"`
}

type tuningJSON struct {
	Collective string  `json:"collective"`
	Algo       string  `json:"algo"`
	Proto      string  `json:"proto"`
	GBs        float64 `json:"bw_gbs"`
	LatencyUS  float64 `json:"latency_us"`
}

type warningJSON struct {
	Line  int64  `json:"line"`
	Count int64  `json:"count"`
	Host  string `json:"host,omitempty"`
	Text  string `json:"text"`
}

// NewLogDoc makes the document; its keys are those of ncclmap model where both
// speak of the same thing.
func NewLogDoc(logs []*nccllog.Log) LogDoc {
	d := LogDoc{Schema: "ncclmap.log/v1", Logs: []logJSON{}}
	for _, l := range logs {
		j := logJSON{File: l.Name, Lines: l.Lines, Records: l.Records, Torn: l.Torn,
			Versions: []versionJSON{}, Networks: []networkJSON{}, Settings: []settingJSON{}, Comms: []commJSON{}, Warnings: []warningJSON{}}
		for _, v := range l.Versions {
			j.Versions = append(j.Versions, versionJSON{v.NCCL, v.CUDA, v.Host})
		}
		for _, n := range l.Networks {
			j.Networks = append(j.Networks, networkJSON{n.Name, n.State, n.Host})
		}
		for _, e := range l.Env {
			j.Settings = append(j.Settings, settingJSON{e.Name, e.Value, e.How, e.Host})
		}
		for _, c := range l.Comms {
			j.Comms = append(j.Comms, commDoc(c))
		}
		for _, w := range l.Warnings {
			j.Warnings = append(j.Warnings, warningJSON{w.First, w.Count, w.Host, w.Text})
		}
		d.Logs = append(d.Logs, j)
	}
	return d
}

func commDoc(c nccllog.Comm) commJSON {
	j := commJSON{ID: c.ID, NCCL: c.NCCL, Ranks: c.Ranks, Seen: len(c.Members), Nodes: c.Nodes, Channels: c.Counts.Coll,
		Graphs: []logGraphJSON{}, Transports: append([]text.Transport{}, text.Transports(c)...), Tuning: []tuningJSON{}}
	for _, g := range c.Graphs {
		j.Graphs = append(j.Graphs, logGraphJSON{nccllog.PatternName(g.Pattern), g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC})
	}
	for _, t := range c.Tuning {
		if t.GBs <= 0 {
			continue // not offered
		}
		j.Tuning = append(j.Tuning, tuningJSON{t.Func, t.Algo, t.Proto, t.GBs, t.LatencyUS})
	}
	return j
}
