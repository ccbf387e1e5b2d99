package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// PeerList is a GPU's P2P status with all others. In JSON, peers of one status
// stand together, so that eight GPUs take lines and not hundreds of them:
// {"capability": "read", "status": "ok", "gpus": [1, 2, 3]}.
type PeerList []PeerAccess

type peerGroup struct {
	Capability string `json:"capability"`
	Status     string `json:"status"`
	GPUs       []int  `json:"gpus"`
}

func (l PeerList) MarshalJSON() ([]byte, error) {
	var groups []peerGroup
	for _, p := range l {
		i := slices.IndexFunc(groups, func(g peerGroup) bool { return g.Capability == p.Capability && g.Status == p.Status })
		if i < 0 {
			i = len(groups)
			groups = append(groups, peerGroup{Capability: p.Capability, Status: p.Status})
		}
		groups[i].GPUs = append(groups[i].GPUs, p.GPU)
	}
	slices.SortFunc(groups, func(a, b peerGroup) int {
		return cmp.Or(cmp.Compare(a.Capability, b.Capability), cmp.Compare(a.Status, b.Status))
	})
	return json.Marshal(groups)
}

func (l *PeerList) UnmarshalJSON(b []byte) error {
	var groups []peerGroup
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&groups); err != nil {
		return &valueError{raw: string(b), err: err}
	}
	*l = nil
	for _, g := range groups {
		for _, gpu := range g.GPUs {
			*l = append(*l, PeerAccess{GPU: gpu, Capability: g.Capability, Status: g.Status})
		}
	}
	return nil
}
