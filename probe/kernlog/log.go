package kernlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceKernLog

// Kinds of a record.
const (
	KindXid    = "xid"    // error report of a GPU
	KindSXid   = "sxid"   // error report of an NVSwitch
	KindNVRM   = "nvrm"   // the NVIDIA driver's other complaints
	KindNVLink = "nvlink" // link detection and training
	KindPeer   = "peermem"
	KindAER    = "aer"   // PCIe errors
	KindPCIe   = "pcie"  // a link that trained low, a slot that went away
	KindMLX5   = "mlx5"  // ConnectX and BlueField
	KindIOMMU  = "iommu" // faults and the mode
)

// Severity says how bad a message is, in the words of the findings.
type Severity string

// Severities.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

func (s Severity) rank() int {
	return slices.Index([]Severity{Info, Warning, Critical}, s)
}

// Log is what one text says.
type Log struct {
	File     string
	Lines    int // read
	Messages int // lines that have the form of a kernel message
	Records  []Record

	Driver     string // version of the NVIDIA driver that was loaded last
	OpenModule probe.Opt[bool]
	Kernel     string
	Cmdline    string
	Hypervisor string
	IOMMU      probe.Opt[bool] // known true only: devices were put into groups
	UUIDs      map[probe.BDF]string
	Boots      int // "Linux version" lines

	CutLong int // lines over probe.MaxLine, of which only the beginning was read
	Dropped int // messages of records over the cap

	hosts                            []string
	driverAt, kernelAt, hypervisorAt int
	iommuAt, cmdlineAt               int
}

// Record is one message with its repeats.
type Record struct {
	Kind     string
	Code     probe.Opt[int] // Xid or SXid
	Host     string         // "" = the text does not say
	Addr     probe.Opt[probe.BDF]
	Subject  string         // "gpu:0000:65:00.0", "pci:…", "" = none
	Link     probe.Opt[int] // NVLink, where the message names one
	Severity Severity       // of the worst repeat
	Text     string         // of the first, without the kernel's prefix
	Process  string         // "pid 1234 python", of the first
	Count    int
	First    int // line
	Last     int
	FirstAt  string // time as printed
	LastAt   string
	LastBoot int // 0 = before the first boot that the text shows
	PCIe     *PCIeLimit

	reports int // AER: lines that announce an error, beside those that describe one
}

// PCIeLimit is the kernel's remark that a device could do more than its path.
type PCIeLimit struct {
	AvailableGbps float64 // Gb/s after encoding, as the kernel counts
	Limit         probe.PCIeLink
	At            probe.Opt[probe.BDF] // port above the limiting link
	CapableGbps   float64
	Capable       probe.PCIeLink
}

// Hosts returns the host names that the lines bear, sorted.
func (l *Log) Hosts() []string { return slices.Clone(l.hosts) }

func (l *Log) origin(line int) probe.Origin { return probe.LineOf(Source, l.File, line) }

// Inventories returns the records as events, and the facts about driver, kernel
// and IOMMU where the text is of one host; of several hosts it gives one
// inventory each that only names it, and another with the events. Events are in
// the order of first appearance; a repeated one has the last line as a second
// origin.
func (l *Log) Inventories() []*probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	for _, r := range l.Records {
		e := probe.Event{Kind: r.Kind, Code: r.Code, Subject: r.Subject, Host: r.Host, Text: r.Text, Count: int64(r.Count), Origins: []probe.Origin{l.origin(r.First)}}
		if r.Count > 1 {
			e.Origins = append(e.Origins, l.origin(r.Last))
		}
		inv.Events = append(inv.Events, e)
	}
	gap := func(what, why, how string) {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: l.origin(0)})
	}
	if l.Dropped > 0 {
		gap("events", fmt.Sprintf("%d messages are over what is kept of one log", l.Dropped), "give the part of the log that matters")
	}
	if l.CutLong > 0 {
		gap("events", fmt.Sprintf("%d lines are longer than %d bytes; only their beginning was read", l.CutLong, probe.MaxLine), "")
	}
	if len(l.hosts) > 1 {
		gap("host", fmt.Sprintf("the log is of %d hosts (%s); driver and kernel of each are left out", len(l.hosts), shorten(l.hosts)), "give one log for each host")
		inv.Normalize()
		out := []*probe.Inventory{inv}
		for _, h := range l.hosts {
			one := &probe.Inventory{Schema: probe.Schema, Host: probe.Host{Name: h, Origins: []probe.Origin{l.origin(0)}}}
			one.Normalize()
			out = append(out, one)
		}
		return out
	}
	l.host(inv)
	inv.Normalize()
	return []*probe.Inventory{inv}
}

// host adds what the log says of its one host.
func (l *Log) host(inv *probe.Inventory) {
	if len(l.hosts) == 1 {
		inv.Host = probe.Host{Name: l.hosts[0], Origins: []probe.Origin{l.origin(0)}}
	}
	if l.Kernel != "" {
		inv.Host.Kernel = l.Kernel
		inv.Host.Origins = []probe.Origin{l.origin(l.kernelAt)}
	}
	if l.Driver != "" {
		inv.Runtime = probe.Runtime{Driver: l.Driver, Origins: []probe.Origin{l.origin(l.driverAt)}}
	}
	if l.Cmdline != "" || l.IOMMU.Known() {
		inv.Settings.Cmdline, inv.Settings.IOMMU = l.Cmdline, l.IOMMU
		inv.Settings.Origins = []probe.Origin{l.origin(max(l.cmdlineAt, l.iommuAt))}
	}
	if l.Hypervisor != "" {
		inv.Settings.Guest = []probe.Mark{{What: "hypervisor " + l.Hypervisor, Origin: l.origin(l.hypervisorAt)}}
	}
	for a, uuid := range l.UUIDs {
		inv.GPUs = append(inv.GPUs, probe.GPU{Addr: probe.Some(a), UUID: uuid, Origins: []probe.Origin{l.origin(0)}})
	}
}

func shorten(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
