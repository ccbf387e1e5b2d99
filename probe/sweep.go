package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Sweep is what was measured under equal conditions in one file: samples by size.
// Scripts that start the test once for each size, or repeat it, give one sweep.
type Sweep struct {
	Run        Run // the first one
	Collective string
	Ranks      Opt[int]
	Nodes      Opt[int]
	Launch     string
	Algorithm  string
	Protocol   string
	OfJob      bool         // operations of a job at work, not of a benchmark
	Points     []SweepPoint // by size
}

// SweepPoint is one size with its samples, at least one.
type SweepPoint struct {
	Bytes   int64
	Samples []Sample
}

// Sweeps groups the samples, in the order in which the sweeps begin.
func (j *Job) Sweeps() []Sweep {
	runs := make(map[string]*Run, len(j.Runs))
	for i := range j.Runs {
		runs[j.Runs[i].ID] = &j.Runs[i]
	}
	type key struct {
		file, collective, launch, algorithm, protocol, run string
		ranks, nodes                                       Opt[int]
		ofJob                                              bool
	}
	var out []Sweep
	at := map[key]int{}
	conditions := map[string]string{}
	for _, s := range j.Samples {
		run := runs[s.Run]
		if run == nil {
			run = &Run{ID: s.Run, File: fileOf(s.Origins)}
		}
		if _, known := conditions[run.ID]; !known {
			conditions[run.ID] = run.conditions()
		}
		k := key{run.File, s.Collective, s.Launch, s.Algorithm, s.Protocol, conditions[run.ID], s.Ranks, s.Nodes, s.Count > 0}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, Sweep{Run: *run, Collective: s.Collective, Ranks: s.Ranks, Nodes: s.Nodes, Launch: s.Launch, Algorithm: s.Algorithm, Protocol: s.Protocol, OfJob: s.Count > 0})
		}
		out[i].add(s)
	}
	for i := range out {
		slices.SortFunc(out[i].Points, func(a, b SweepPoint) int { return cmp.Compare(a.Bytes, b.Bytes) })
	}
	return out
}

func (s *Sweep) add(x Sample) {
	for i := range s.Points {
		if s.Points[i].Bytes == x.Bytes {
			s.Points[i].Samples = append(s.Points[i].Samples, x)
			return
		}
	}
	s.Points = append(s.Points, SweepPoint{x.Bytes, []Sample{x}})
}

// conditions is what makes two runs of a file comparable point by point.
func (r *Run) conditions() string {
	parts := []string{r.Program, r.NCCL, r.DataType, r.Op, r.SettingsText()}
	for _, h := range r.Hosts {
		parts = append(parts, h.Name, strings.Join(h.GPUs, " "))
	}
	return strings.Join(parts, "\x00")
}

// SettingsText lists the settings as "NCCL_ALGO=Tree NCCL_PROTO=Simple"; "unknown"
// where the output does not show them.
func (r *Run) SettingsText() string {
	settings, known := r.Settings.Get()
	if !known {
		return "unknown"
	}
	var words []string
	for _, s := range settings {
		words = append(words, s.Name+"="+s.Value)
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// HostNames lists the hosts of a run.
func (r *Run) HostNames() []string {
	out := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		out[i] = h.Name
	}
	return out
}

// Fastest returns the sample of the shortest time out of place.
func (p SweepPoint) Fastest() Sample {
	return slices.MinFunc(p.Samples, func(a, b Sample) int { return cmp.Compare(a.TimeUS, b.TimeUS) })
}

// InPlaceBusBW is the bus bandwidth in place.
func (s Sample) InPlaceBusBW() (gbs float64, known bool) {
	us, known := s.InPlaceUS.Get()
	if !known {
		return 0, false
	}
	return s.BusBW * s.TimeUS / us, true
}

// fileOf is the file that facts come from, without the line.
func fileOf(origins []Origin) string {
	if len(origins) == 0 {
		return ""
	}
	file := origins[0].Where
	if i := strings.LastIndexByte(file, ':'); i > 0 && strings.Trim(file[i+1:], "0123456789") == "" {
		file = file[:i]
	}
	return file
}

// SizeText prints a size in the largest binary unit below it: 64 MiB, 2.53 GiB.
func SizeText(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(bytes), 0
	for v >= 1023.5 && u < len(units)-1 {
		v /= 1024
		u++
	}
	digits := 3
	if v >= 1000 {
		digits = 4
	}
	return strconv.FormatFloat(v, 'g', digits, 64) + " " + units[u]
}
