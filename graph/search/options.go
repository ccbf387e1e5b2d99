package search

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Options are the settings that change NCCL's channels. Zero values are NCCL's
// defaults.
type Options struct {
	Hosts       int            // with this topology; 0 is 1
	MinChannels int            // NCCL_MIN_NCHANNELS, NCCL_MIN_NRINGS, NCCL_MIN_CTAS
	MaxChannels int            // NCCL_MAX_NCHANNELS, NCCL_MAX_NRINGS, NCCL_MAX_CTAS
	CrossNIC    probe.Opt[int] // NCCL_CROSS_NIC
	NoNVLS      bool           // NCCL_NVLS_ENABLE=0
	NVLSCount   int            // NCCL_NVLS_NCHANNELS
	PerNetPeer  int            // NCCL_NCHANNELS_PER_NET_PEER
	MinP2P      int            // NCCL_MIN_P2P_NCHANNELS
	MaxP2P      int            // NCCL_MAX_P2P_NCHANNELS
}

func (o Options) hosts() int { return max(1, o.Hosts) }

func (o Options) crossNIC() int { return o.CrossNIC.Or(2) }

// Set takes an NCCL setting over; known is false for one that does not change
// NCCL's channels. An error tells that NCCL cannot read the value.
func (o *Options) Set(name, value string) (known bool, err error) {
	counts := map[string]*int{
		"NCCL_MIN_NCHANNELS": &o.MinChannels, "NCCL_MIN_CTAS": &o.MinChannels, "NCCL_MAX_NCHANNELS": &o.MaxChannels, "NCCL_MAX_CTAS": &o.MaxChannels,
		"NCCL_MIN_NRINGS": &o.MinChannels, "NCCL_MAX_NRINGS": &o.MaxChannels,
		"NCCL_NVLS_NCHANNELS": &o.NVLSCount, "NCCL_NCHANNELS_PER_NET_PEER": &o.PerNetPeer, "NCCL_MIN_P2P_NCHANNELS": &o.MinP2P, "NCCL_MAX_P2P_NCHANNELS": &o.MaxP2P,
	}
	to, known := counts[name]
	if !known && name != "NCCL_CROSS_NIC" && name != "NCCL_NVLS_ENABLE" {
		return false, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 0, 32)
	if err != nil {
		return true, fmt.Errorf("%s=%q: not a number", name, probe.Excerpt(value))
	}
	switch name {
	case "NCCL_CROSS_NIC":
		if n < 0 || n > 2 {
			return true, fmt.Errorf("%s=%d: not 0, 1 or 2", name, n)
		}
		o.CrossNIC = probe.Some(int(n))
	case "NCCL_NVLS_ENABLE":
		o.NoNVLS = n == 0
	default:
		*to = max(0, int(n))
	}
	return true, nil
}
