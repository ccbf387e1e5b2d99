package nccltests

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// samples adds the runs of a table with their samples, and says what of it is not
// known.
func (o *Output) samples(inv *probe.Inventory, t *Table) {
	gap := func(line int, why, how string) {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: "samples", Why: why, How: how, Origin: o.origin(line)})
	}
	if why, how := t.unusable(); why != "" {
		gap(t.Line, why, how)
		return
	}
	switch {
	case len(t.Rows) == 0:
		return
	case !t.Ranks.Known():
		gap(t.Line, "the number of ranks is not known: the device list is missing or incomplete", "give the whole output")
	case !t.Nodes.Known():
		gap(t.Line, "the number of hosts is not known: the device list is missing", "give the whole output")
	}
	untimed := 0
	var last *Row
	for i := range t.Rows {
		r := &t.Rows[i]
		s, ok := t.sample(r)
		switch {
		case !ok:
			untimed++
			continue
		case len(r.Notes) > 0:
			gap(r.Line, "a row contradicts itself: "+r.Notes[0], "")
			continue
		}
		if last == nil || last.Type != r.Type || last.Op != r.Op || last.Root != r.Root {
			inv.Runs = append(inv.Runs, o.run(t, r))
		}
		last = r
		s.Run = inv.Runs[len(inv.Runs)-1].ID
		s.Origins = []probe.Origin{o.origin(r.Line)}
		inv.Samples = append(inv.Samples, s)
	}
	if untimed > 0 {
		gap(t.Line, fmt.Sprintf("%d rows have no time", untimed), "")
	}
}

// unusable says why no row of a table gives a sample, "" where rows do.
func (t *Table) unusable() (why, how string) {
	switch {
	case len(t.Rows) == 0 && len(t.Failures) == 0:
		return "the run printed no row", ""
	case len(t.Rows) == 0:
		return "", ""
	case t.Overlap:
		return "several processes ran the test each for itself and wrote into one table", "build nccl-tests with MPI=1"
	case t.Collective == "":
		return "the output does not name the test", "give the whole output, with the command line"
	case t.Rows[0].OutOfPlace.CPUTime:
		return "the times are those of the launch (-C 1)", "run without -C"
	}
	return "", ""
}

// sample makes a sample of a row; ok is false without a time.
func (t *Table) sample(r *Row) (s probe.Sample, ok bool) {
	us := r.OutOfPlace.TimeUS.Or(0)
	alg, okA := r.OutOfPlace.AlgBW.Get()
	bus, okB := r.OutOfPlace.BusBW.Get()
	if !okA || !okB { // 0 GB/s would be a lie
		f, known := probe.BusFactor(t.Collective, t.Ranks.Or(0))
		if !known {
			return s, false
		}
		alg = float64(r.Bytes) / us / 1e3
		bus = alg * f
	}
	s = probe.Sample{
		Collective: t.Collective, Bytes: r.Bytes, Ranks: t.Ranks, Nodes: t.Nodes, Launch: t.Launch,
		TimeUS: us, AlgBW: alg, BusBW: bus,
	}
	if in, known := r.InPlace.TimeUS.Get(); known && in > 0 {
		s.InPlaceUS = probe.Some(in)
	}
	return s, us > 0
}

// run is the run that begins with row r.
func (o *Output) run(t *Table, r *Row) probe.Run {
	at := o.origin(r.Line)
	run := probe.Run{ID: at.Where, File: o.File, Program: t.Program, NCCL: t.NCCL, DataType: r.Type, Op: r.Op, Hosts: t.runHosts(), Origins: []probe.Origin{at}}
	if !t.Told {
		return run
	}
	settings := []probe.EnvSetting{}
	for _, x := range t.Settings {
		settings = append(settings, probe.EnvSetting{Name: x.Name, Value: x.Value, How: probe.EnvVariable, Origins: []probe.Origin{o.origin(x.Line)}})
	}
	slices.SortStableFunc(settings, func(a, b probe.EnvSetting) int { return probe.CompareNames(a.Name, b.Name) })
	run.Settings = probe.Some(settings)
	return run
}

// runHosts are the hosts with the GPUs used there; none where the device list is
// cut or stands for several communicators.
func (t *Table) runHosts() []probe.RunHost {
	if !t.Nodes.Known() || t.Groups != 1 {
		return nil
	}
	var out []probe.RunHost
	at := map[string]int{}
	for _, d := range t.Devices {
		i, known := at[d.Host]
		if !known {
			i = len(out)
			at[d.Host] = i
			out = append(out, probe.RunHost{Name: d.Host})
		}
		out[i].Ranks += max(t.perRecord, 1)
		if t.perRecord <= 1 {
			out[i].GPUs = append(out[i].GPUs, d.Bus)
		}
	}
	slices.SortFunc(out, func(a, b probe.RunHost) int { return probe.CompareNames(a.Name, b.Name) })
	return out
}
