package tune

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph/expect"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
)

// Kinds of a Line.
const (
	LineChosen      = "expected, NCCL's choice"
	LineAlternative = "expected, alternative"
	LineBelieved    = "NCCL believes"
	LinePublished   = "published"
	LineMeasured    = "measured"
)

// Line is bus bandwidth against size.
type Line struct {
	Source     string // whose machine
	Collective string
	Kind       string
	Algo       string // of an alternative
	Proto      string
	Points     []LinePoint
}

// LinePoint is one size of a line. What is not known is 0; a point without TimeUS has
// only bounds.
type LinePoint struct {
	Bytes         int64
	Algo, Proto   string
	Channels      int
	TimeUS        float64
	BusBWGBs      float64
	LowUS, HighUS float64
	Calibrated    bool
}

// Lines returns what there is to draw: by collective the expectation of what NCCL
// chooses, its belief, the expectation of the alternatives, runs that others
// published and runs that were measured here.
func (p *Prediction) Lines(source string) ([]Line, error) {
	e := p.expectation()
	if e == nil || p.Model == nil {
		return nil, nil
	}
	published, err := p.Published()
	if err != nil {
		return nil, err
	}
	estimates, _ := p.Estimates()
	times := newCurves(e)
	var out []Line
	for _, collective := range p.Options.collectives() {
		chosen := Line{Source: source, Collective: collective, Kind: LineChosen}
		believed := Line{Source: source, Collective: collective, Kind: LineBelieved}
		factor, _ := model.BusFactor(collective, p.Search.Ranks)
		for i := range estimates {
			x := &estimates[i]
			if x.Collective != collective {
				continue
			}
			c := x.Choice.Or(model.Choice{})
			at := LinePoint{Bytes: x.Bytes, Algo: c.Algo, Proto: c.Proto, Channels: c.ChannelsUsed}
			chosen.Points = append(chosen.Points, LinePoint{
				at.Bytes, at.Algo, at.Proto, at.Channels, x.TimeUS.Or(0), x.BusBWGBs.Or(0), x.LowUS.Or(0), x.HighUS.Or(0), x.Calibrated,
			})
			if us := x.NCCLTimeUS.Or(0); us > 0 {
				at.TimeUS, at.BusBWGBs = us, float64(x.Bytes)/(1000*us)*factor
				believed.Points = append(believed.Points, at)
			}
		}
		out = append(out, chosen)
		if len(believed.Points) > 0 {
			out = append(out, believed)
		}
		out = append(out, p.alternatives(source, collective, times)...)
		public := Line{Source: source, Collective: collective, Kind: LinePublished}
		for _, r := range published {
			if r.Collective == collective {
				us := func(gbs float64) float64 { return float64(r.Bytes) / (1000 * gbs) * factor }
				public.Points = append(public.Points, LinePoint{Bytes: r.Bytes, TimeUS: us(r.Median), BusBWGBs: r.Median, LowUS: us(r.Max), HighUS: us(r.Min)})
			}
		}
		measured := Line{Source: source, Collective: collective, Kind: LineMeasured}
		for _, x := range p.Measured {
			if x.Collective == collective {
				measured.Points = append(measured.Points, LinePoint{
					Bytes: x.Bytes, Algo: x.Algo, Proto: x.Proto, Channels: x.Channels, TimeUS: x.TimeUS, BusBWGBs: float64(x.Bytes) / (1000 * x.TimeUS) * factor,
				})
			}
		}
		for _, l := range []Line{public, measured} {
			if len(l.Points) > 0 {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// alternatives are the calibrated expectations of all that NCCL might run.
func (p *Prediction) alternatives(source, collective string, times *curves) (out []Line) {
	at := map[[2]string]int{}
	for _, bytes := range p.Options.sizes() {
		for _, c := range p.Model.Alternatives(collective, p.Model.Bytes(collective, bytes)) {
			x := times.of(collective, c.Algo, c.Proto).At(bytes, c.ChannelsUsed)
			if !x.Calibrated {
				continue
			}
			key := [2]string{c.Algo, c.Proto}
			i, ok := at[key]
			if !ok {
				i = len(out)
				at[key] = i
				out = append(out, Line{Source: source, Collective: collective, Kind: LineAlternative, Algo: c.Algo, Proto: c.Proto})
			}
			out[i].Points = append(out[i].Points, LinePoint{bytes, c.Algo, c.Proto, c.ChannelsUsed, x.TimeUS, x.BusBWGBs, x.LowUS, x.HighUS, true})
		}
	}
	return out
}

// UseMeasured takes runs of this machine over: the expectation is corrected by them.
// Runs of other counts of ranks or nodes are left out; n counts those that served.
func (p *Prediction) UseMeasured(samples []probe.Sample) (n int, err error) {
	e := p.expectation()
	if e == nil || p.Model == nil {
		return 0, nil
	}
	for i := range samples {
		if x, ok := p.point(e, &samples[i]); ok {
			p.Measured = append(p.Measured, x)
		}
	}
	if len(p.Measured) == 0 {
		return 0, nil
	}
	if p.Fit, err = p.Fit.Refine(p.Measured); err != nil {
		return 0, fmt.Errorf("measured runs: %w", err)
	}
	return len(p.Measured), nil
}

// point is a sample as the fit takes it. An algorithm that it does not state is the
// one that NCCL chooses.
func (p *Prediction) point(e *expect.Expectation, s *probe.Sample) (x expect.Point, ok bool) {
	if s.Ranks != probe.Some(p.Search.Ranks) || s.Nodes.Known() && s.Nodes != probe.Some(p.Search.Nodes) || s.TimeUS <= 0 || s.Bytes <= 0 || s.Count > 0 {
		return x, false
	}
	x = expect.Point{ID: "measured", Site: "measured", Machine: e.Machine(), Curve: s.Collective, TimeUS: s.TimeUS, LowUS: s.TimeUS, HighUS: s.TimeUS, Grade: expect.Own}
	if s.Launch != "" {
		x.Launch = s.Launch
	}
	x.Run = p.run(expect.Run{Collective: s.Collective, Algo: s.Algorithm, Proto: s.Protocol, Channels: s.Channels.Or(0), Bytes: s.Bytes})
	return x, true
}

// Title names what curves are of.
func (p *Prediction) Title(source string, more bool) string {
	if p.Search == nil {
		return source
	}
	at := fmt.Sprintf("%d GPUs", p.Search.Ranks)
	if p.Search.Nodes > 1 {
		at += fmt.Sprintf(" on %d nodes", p.Search.Nodes)
	}
	if more {
		return fmt.Sprintf("NCCL %s", p.version())
	}
	return fmt.Sprintf("%s: %s, NCCL %s", source, at, p.version())
}
