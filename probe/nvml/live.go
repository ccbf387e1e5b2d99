package nvml

import (
	"context"
	"fmt"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Options bounds how long [Read] and [Record] wait for the driver. The zero
// value is what a tool wants that a person waits for.
type Options struct {
	// Call bounds one call; 0 is 750 ms. See DefaultCall.
	Call time.Duration
	// Open bounds the start of NVML and the attaching of one GPU; 0 is 10 s. A
	// GPU without persistence mode that nobody uses takes seconds to come up, and
	// several of them do so one after the other.
	Open time.Duration
	// Total bounds all calls of one GPU together once it is attached; 0 is 5 s.
	// It ends a GPU that answers each call, but late.
	Total time.Duration
}

// DefaultCall is far above what a call takes and short enough for the whole read
// of a machine with a dead GPU to end within about a second. On two H200 (driver
// 580.159.04, a guest) most calls take 1 µs to 2 ms; while processes started and
// ended on both, the slowest of 42,000 took 108 ms.
const DefaultCall = 750 * time.Millisecond

const (
	defaultOpen  = 10 * time.Second
	defaultTotal = 5 * time.Second
)

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		limit *time.Duration
		value time.Duration
	}{{&o.Call, DefaultCall}, {&o.Open, defaultOpen}, {&o.Total, defaultTotal}} {
		if *d.limit <= 0 {
			*d.limit = d.value
		}
	}
	return o
}

// Read asks the NVIDIA driver of this machine what it knows of its GPUs. It
// changes nothing.
//
// A GPU that does not answer in time or is lost keeps what it said before, with a
// gap, and the others go on beside it; the goroutine of a call that never returns
// is left behind, since nothing can end it. When ctx ends, all that is still
// missing counts as unanswered.
//
// The error is an *[Unavailable] when the driver could not be asked at all.
func Read(ctx context.Context, o Options) (*probe.Inventory, error) {
	return readDriver(ctx, o, openDriver, func(lib library) library { return lib })
}

// session is the driver, until it is closed.
type session interface {
	library
	close()
}

// readDriver opens a driver and reads it through the deadlines and what wrap
// puts round them.
func readDriver(ctx context.Context, o Options, open func() (session, *Unavailable), wrap func(library) library) (*probe.Inventory, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ask the NVIDIA driver: %w", err)
	}
	type result struct {
		lib session
		err *Unavailable
	}
	g := newGuard(ctx, nil, o)
	r, ok := within(g, g.o.Open, func() result { lib, err := open(); return result{lib, err} }, func() {})
	switch {
	case !ok:
		return nil, unavailable(noAnswer)
	case r.err != nil:
		return nil, r.err
	}
	g.lib = r.lib
	inv := read(wrap(g), "", sideBySide)
	if g.waiting.Load() == 0 {
		// With a call still in the library, closing it would pull the ground from
		// under that call's feet.
		within(g, g.o.Call, func() struct{} { r.lib.close(); return struct{}{} }, func() {})
	}
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("what the NVIDIA driver says: %w", err)
	}
	return inv, nil
}

// Unavailable says why the NVIDIA driver could not be asked at all.
type Unavailable struct {
	Why  string
	How  string // what to do about it
	Code int    // NVML's return code; 0 where NVML was not reached or did not return
}

func (e *Unavailable) Error() string { return e.Why }

// Gap is the error as what it is for an inventory: something that could not be
// read.
func (e *Unavailable) Gap() probe.Gap {
	return probe.Gap{What: "what the NVIDIA driver knows", Why: e.Why, How: e.How, Origin: probe.Origin{Source: probe.SourceNVML}}
}

// NoDriver reports that there is no driver here, which is as it should be on a
// machine without an NVIDIA GPU.
func (e *Unavailable) NoDriver() bool {
	return e.Code == int(libraryNotFound) || e.Code == int(driverNotLoaded)
}

const initFunction = "nvmlInit_v2"

// unavailable explains why NVML could not be started.
func unavailable(s status) *Unavailable {
	e := &Unavailable{Why: initFunction + ": " + s.Error(), Code: int(max(s, 0))}
	switch s {
	case libraryNotFound:
		e.Why += ": libnvidia-ml.so.1 cannot be loaded"
		e.How = "install the NVIDIA driver; a container needs the NVIDIA container toolkit and utility among NVIDIA_DRIVER_CAPABILITIES"
	case driverNotLoaded:
		e.Why += ": the kernel module is not there"
		e.How = "modprobe nvidia, and look at dmesg for why it does not stay"
	case versionsDiffer:
		e.Why += ": the kernel module and libnvidia-ml.so.1 are of different releases"
		e.How = "reboot, or unload and load the nvidia modules, after a driver update; restart a container that still holds the old library"
	case noPermission, operatingSystem:
		e.Why += ": /dev/nvidiactl cannot be used"
		e.How = "run as a user who may open /dev/nvidiactl and /dev/nvidia*; a container needs the devices allowed"
	case noAnswer:
		e.How = howSilent
	default:
		e.How = "see what nvidia-smi says"
	}
	return e
}
