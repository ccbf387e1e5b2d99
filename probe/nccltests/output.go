package nccltests

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceNCCLTests

// Output is what one file holds: one table for each run, in the file's order.
type Output struct {
	File   string
	JSON   bool
	Tables []Table

	Torn    int // rows that lost their end or beginning, and are not in a table
	CutLong int // lines over probe.MaxLine, of which only the beginning was read
	Dropped int // tables, devices, rows, settings and notes over their cap
	Cut     bool
}

// Table is one run of one test program.
type Table struct {
	Line       int    // where it begins
	Program    string // "all_reduce_perf"; "" = not stated
	Collective string // AllReduce, …; "" = unknown
	Tests      string // version of nccl-tests, "2.17.6"
	Headers    string // NCCL version it was built with
	NCCL       string // NCCL version it ran with
	Config     Config
	Devices    []Device
	Groups     int            // communicators that ran at once; 0 = not stated
	Ranks      probe.Opt[int] // of one communicator
	Nodes      probe.Opt[int] // hosts of one communicator
	Launch     string         // LaunchPerGPU, LaunchSingle, "" = mixed or unknown
	Inferred   []string       // which of "collective" and "ranks" follow from the figures
	Settings   []Setting
	// Told says that the output shows the settings: by NCCL's own lines, or the
	// environment of the JSON. Others are then not set.
	Told        bool
	Rows        []Row
	OutOfBounds probe.Opt[int64] // tests points with wrong data
	AvgBusBW    probe.Opt[float64]
	Failures    []Note
	Notes       []Note
	// Overlap says that several processes ran the test each for itself and
	// wrote into one another's table.
	Overlap bool

	done    bool // a footer was seen
	settled bool
	// perRecord is the number of ranks that one device record stands for; 0 = 1.
	perRecord int
}

// Ways of launching a test.
const (
	LaunchPerGPU = "per-gpu" // one process for each GPU
	LaunchSingle = "single"  // one process for all GPUs of a host
)

// Config is what the line "nThread … nGpus …" states.
type Config struct {
	Threads, GPUs      probe.Opt[int] // per process, per thread
	MinBytes, MaxBytes probe.Opt[int64]
	StepFactor         probe.Opt[int64]
	StepBytes          probe.Opt[int64]
	Warmup, Iters, Agg probe.Opt[int]
	Validation, Graph  probe.Opt[int]
}

// Device is one line of the device list.
type Device struct {
	Line   int
	Rank   int
	Group  probe.Opt[int]
	PID    int
	Host   string
	Device int // CUDA's number within the process
	// Bus is the address as printed; older versions print the bus alone
	// ("0x53"), then Addr is unknown.
	Bus  string
	Addr probe.Opt[probe.BDF]
	Name string
}

// Setting is an NCCL_ variable that the same output shows.
type Setting struct {
	Name, Value string
	Line        int
}

// Note is a remark with its place.
type Note struct {
	Line int
	Text string
}

// Row is one size. Bytes is the total as the tool prints it.
type Row struct {
	Line       int
	Bytes      int64
	Count      int64
	Type       string
	Op         string         // "" = none printed
	Root       probe.Opt[int] // unknown where none is printed
	OutOfPlace Result
	InPlace    Result
	Notes      []string // contradictions
}

// Result is one half of a row. Bandwidths are GB/s (1e9).
type Result struct {
	TimeUS, AlgBW, BusBW probe.Opt[float64]
	Wrong                probe.Opt[float64] // elements; unknown = not checked
	MaxError             probe.Opt[float64] // versions up to 2.11 print this instead
	CPUTime              bool               // the time is that of the launch alone

	halves [3]float64 // half of the last digit printed of time, algbw, busbw
}

// Hosts returns the names of the hosts of a table, sorted.
func (t *Table) Hosts() []string {
	var out []string
	for _, d := range t.Devices {
		if len(out) == 0 || out[len(out)-1] != d.Host {
			out = append(out, d.Host)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Setting returns the value of a variable, and false where the output does not
// show it or shows several.
func (t *Table) Setting(name string) (string, bool) {
	value, n := "", 0
	for _, s := range t.Settings {
		if s.Name == name {
			value = s.Value
			n++
		}
	}
	return value, n == 1
}

// Wrong returns the number of wrong elements over all rows and the line of the
// first.
func (t *Table) Wrong() (n float64, line int) {
	for _, r := range t.Rows {
		w := r.OutOfPlace.Wrong.Or(0) + r.InPlace.Wrong.Or(0)
		if w > 0 && line == 0 {
			line = r.Line
		}
		n += w
	}
	return n, line
}

// programs are the tests with the collective that each runs.
var programs = []struct{ program, collective string }{
	{"all_reduce_perf", "AllReduce"},
	{"all_gather_perf", "AllGather"},
	{"reduce_scatter_perf", "ReduceScatter"},
	{"broadcast_perf", "Broadcast"},
	{"reduce_perf", "Reduce"},
	{"sendrecv_perf", "SendRecv"},
	{"alltoall_perf", "AllToAll"},
	{"alltoallv_perf", "AllToAllV"},
	{"gather_perf", "Gather"},
	{"scatter_perf", "Scatter"},
	{"hypercube_perf", "HyperCube"},
}

// collectiveOf names the collective of a program, whatever its builder put
// behind the name ("all_reduce_perf_mpi").
func collectiveOf(program string) string {
	for _, p := range programs {
		if strings.HasPrefix(program, p.program) {
			return p.collective
		}
	}
	return ""
}
