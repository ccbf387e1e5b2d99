package nvbandwidth

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceNVBandwidth

// Forms of an input.
const (
	FormNVBandwidth = "nvbandwidth"
	FormJSON        = "nvbandwidth-json"
	FormP2PTest     = "p2pBandwidthLatencyTest"
	FormPairs       = "pairs" // "0 1 394.3 GB/s", "h2d 0 55.4 GB/s"
)

// Output is what one file holds.
type Output struct {
	File     string
	Form     string
	Version  string
	CUDA     string // runtime, as printed
	Driver   string
	driverAt int
	Devices  []Device
	Matrices []Matrix
	Notes    []Note // waived tests, errors, matrices that were cut
}

// Device is a line of the device list.
type Device struct {
	Line  int
	Index int
	Host  string // multi-node builds only
	Name  string
	Addr  probe.Opt[probe.BDF]
}

// Note is a remark with its place.
type Note struct {
	Line int
	Test string
	Text string
}

// Kinds of a row or column.
const (
	CPU = "cpu"
	GPU = "gpu"
)

// Matrix is the result of one test. Value [i][j] belongs to Rows[i] and
// Columns[j]; unknown is N/A. What the arrow of the description says about the
// direction is in Direction: "->" from row to column, "<-" from column to row,
// "<->" both ways at once.
type Matrix struct {
	Line        int
	Test        string // "device_to_device_memcpy_read_ce"
	Description string
	Unit        string // "GB/s", "us", "ns", "" = none (connectivity)
	RowKind     string // CPU, GPU, "" = unknown
	ColKind     string
	Direction   string
	Rows        []int
	Columns     []int
	Values      [][]probe.Opt[float64]
	Sum         probe.Opt[float64] // as printed
}

// At returns the value for the given row and column names.
func (m *Matrix) At(row, col int) (float64, bool) {
	i, j := slices.Index(m.Rows, row), slices.Index(m.Columns, col)
	if i < 0 || j < 0 || j >= len(m.Values[i]) {
		return 0, false
	}
	return m.Values[i][j].Get()
}

// Inventory returns GPUs and driver. The matrices have no place in it.
func (o *Output) Inventory() *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	if o.Driver != "" {
		inv.Runtime = probe.Runtime{Driver: o.Driver, Origins: []probe.Origin{o.origin(o.driverAt)}}
	}
	hosts := map[string]bool{}
	for _, d := range o.Devices {
		hosts[d.Host] = true
	}
	if len(hosts) > 1 {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: "gpus", Why: fmt.Sprintf("the run used %d hosts; an inventory is one", len(hosts)), Origin: o.origin(0)})
		inv.Normalize()
		return inv
	}
	// CUDA's numbers are the driver's where they follow the bus order from 0.
	ordered := true
	for i, d := range o.Devices {
		a, ok := d.Addr.Get()
		ordered = ordered && ok && d.Index == i
		if i > 0 && ordered {
			before, _ := o.Devices[i-1].Addr.Get()
			ordered = before.Compare(a) < 0
		}
	}
	seen := map[probe.BDF]bool{}
	for _, d := range o.Devices {
		if d.Host != "" && inv.Host.Name == "" {
			inv.Host = probe.Host{Name: d.Host, Origins: []probe.Origin{o.origin(d.Line)}}
		}
		a, ok := d.Addr.Get()
		if !ok || seen[a] {
			continue
		}
		seen[a] = true
		g := probe.GPU{Addr: d.Addr, Name: d.Name, Origins: []probe.Origin{o.origin(d.Line)}}
		if ordered {
			g.Index = probe.Some(d.Index)
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	if len(o.Devices) > 0 && !ordered {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "gpu index", Why: "CUDA's device numbers are not those of the driver: they do not follow the bus order from 0", Origin: o.origin(o.Devices[0].Line),
		})
	}
	inv.Normalize()
	return inv
}

func (o *Output) origin(line int) probe.Origin { return probe.LineOf(Source, o.File, line) }
