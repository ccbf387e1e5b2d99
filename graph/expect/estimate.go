package expect

import (
	"fmt"
	"math"

	"github.com/ncclmap/ncclmap/graph/model"
)

// Expectation is the form for one machine. It may be shared.
type Expectation struct {
	m   Machine
	fit *Fit
	x   *fitted
	far float64
}

// For returns the expectation for a machine.
func (f *Fit) For(m Machine) *Expectation {
	return &Expectation{m: m, fit: f, x: newFitted(f.Parameters), far: f.Far}
}

// Machine returns what the expectation is for.
func (e *Expectation) Machine() Machine { return e.m }

// Curve is the expectation for a collective, algorithm and protocol: a function of
// the size.
type Curve struct {
	shape
	x      []float64
	run    Run
	m      Machine
	far    float64
	bands  [3]spread // by band of sizes
	proofs []Evidence
	why    string // there is no form; "" where there is
}

// spread is the half width of the 90 % interval, as a logarithm.
type spread struct {
	half  float64
	known bool
}

// Estimate is what to expect of one operation, µs. Without calibration there is no
// Time: HighUS, where known, is then a bound from the errors on GPU generations that a
// fit had never seen.
type Estimate struct {
	TimeUS, LowUS, HighUS float64 // 0 = none
	BusBWGBs              float64
	Calibrated            bool
	Why                   string // not calibrated
}

// Why a curve has no expectation.
const (
	noForm     = "nothing is known of how long this algorithm takes"
	noEvidence = "nothing like it was measured: this GPU generation, links, algorithm, protocol, ranks, nodes, size, channels and launch"
)

// Curve resolves a curve; its estimates then cost no more than a few powers.
func (e *Expectation) Curve(collective, algo, proto string) *Curve {
	c := &Curve{x: e.x.x, run: Run{Collective: collective, Algo: algo, Proto: proto, Channels: 1}, m: e.m, far: e.far}
	known := true
	s, ok := newShape(&e.m, &c.run, func(name string) int {
		i, has := e.x.at[name]
		if !has {
			known = false
			return 0
		}
		return i
	})
	if !ok || !known {
		c.why = noForm
		return c
	}
	c.shape = s
	for i, b := range bandBytes {
		c.bands[i].half, c.bands[i].known = e.fit.spread(&Point{Machine: e.m, Run: Run{Bytes: b}})
	}
	c.proofs = aboutOnly(e.fit.Evidence, &e.m, &c.run)
	return c
}

// Names are the collective, algorithm and protocol.
func (c *Curve) Names() (collective, algo, proto string) {
	return c.run.Collective, c.run.Algo, c.run.Proto
}

// At returns the expectation for a size, over so many channels.
func (c *Curve) At(bytes int64, channels int) Estimate {
	if c.why != "" {
		return Estimate{Why: c.why}
	}
	t := c.at(c.x, c.run.Proto, channels, bytes)
	us := t.total()
	s := c.bands[bandOf(bytes)]
	if !s.known || !proven(c.proofs, &c.m, bytes, channels) {
		return Estimate{HighUS: us * math.Exp(c.far), Why: noEvidence}
	}
	return Estimate{
		TimeUS: us, LowUS: us * math.Exp(-s.half), HighUS: us * math.Exp(s.half),
		BusBWGBs: float64(bytes) / (1000 * us) * c.factor, Calibrated: true,
	}
}

// Terms are the parts of the expectation for a size, in words, and what holds a
// large operation back. They exist for all that the form knows, calibrated or not.
func (c *Curve) Terms(bytes int64, channels int) (terms []model.Term, bottleneck string) {
	if c.why != "" {
		return nil, ""
	}
	t := c.at(c.x, c.run.Proto, channels, bytes)
	add := func(us float64, name, why string, args ...any) {
		if us > 0 {
			terms = append(terms, model.Term{Name: name, Value: us, Unit: "us", Why: fmt.Sprintf(why, args...)})
		}
	}
	add(t.launch, "launch", "starting an operation, launch %s; it overlaps the kernel before, and the longer counts", launchName(c.m.Launch))
	add(t.base, "kernel", "the least that a kernel of this protocol takes between two GPUs")
	add(t.hops, "steps", "%.4g further steps over %s", c.hops, c.m.Link)
	add(t.netHops, "network steps", "%.4g steps over the network", c.netHops)
	links := fmt.Sprintf("%s: %.4g bytes per byte over %.4g of %.4g GB/s", c.m.LinkName, c.perByte, t.linkGBs, c.linkGBs)
	if t.channelGBs > 0 {
		links += fmt.Sprintf(", %d channels of %.3g GB/s each", channels, t.perChannel)
	}
	net := fmt.Sprintf("the ports of a node: %.4g bytes per byte over %.4g of %.4g GB/s", c.netPerByte, t.netGBs, c.netGBs)
	switch {
	case t.net > t.links:
		add(t.net, "bytes", "%s", net)
		bottleneck = net
	default:
		add(t.links, "bytes", "%s", links)
		bottleneck = links
		if t.channelGBs > 0 && t.channelGBs < t.linkGBs {
			bottleneck = fmt.Sprintf("the channels: %d of %.3g GB/s each, below the links' %.4g GB/s", channels, t.perChannel, t.linkGBs)
		}
	}
	return terms, bottleneck
}
