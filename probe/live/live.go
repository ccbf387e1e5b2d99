package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/host"
	"github.com/ncclmap/ncclmap/probe/nvml"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

// Read looks at this machine: the NVIDIA driver, the kernel's device tree and
// the firmware's names, in the order in which Merge believes them, read side by
// side. A source that is missing (no driver, no /sys in a container) is a gap
// that says so; the others still answer. It is an error only if nothing does.
func Read(ctx context.Context) (*probe.Inventory, error) {
	root, err := os.OpenRoot("/")
	if err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	defer root.Close()
	return read(
		func() (*probe.Inventory, error) { return nvml.Read(ctx, nvml.Options{}) },
		func() (*probe.Inventory, error) { return sysfs.Read(root.FS(), sysfs.Options{Live: true}) },
		func() (*probe.Inventory, error) { return host.Read("/"), nil },
	)
}

// read asks the three sources and joins what they say.
func read(driver, kernel, names func() (*probe.Inventory, error)) (*probe.Inventory, error) {
	sources := []struct {
		name, missing, how string
		read               func() (*probe.Inventory, error)
		inv                *probe.Inventory
		err                error
	}{
		{name: probe.SourceNVML, missing: "NVLinks, GPU load and P2P status", how: "load the NVIDIA driver; in a container, start it with the NVIDIA runtime (--gpus all)", read: driver},
		{name: probe.SourceSysfs, missing: "PCI tree, NUMA nodes and HCAs", how: "run on the host, or mount /sys into the container", read: kernel},
		{name: probe.SourceHost, missing: "product, processor and memory names", read: names},
	}
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() { sources[i].inv, sources[i].err = sources[i].read() })
	}
	wg.Wait()
	gaps := &probe.Inventory{}
	parts := []*probe.Inventory{}
	var errs []error
	for _, s := range sources {
		if s.err != nil {
			errs = append(errs, s.err)
			how := s.how
			if u := (*nvml.Unavailable)(nil); errors.As(s.err, &u) && u.How != "" {
				how = u.How
			}
			gaps.Gaps = append(gaps.Gaps, probe.Gap{What: s.missing, Why: s.err.Error(), How: how, Origin: probe.Origin{Source: s.name}})
		}
		if s.inv != nil {
			parts = append(parts, s.inv)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("this machine: %w", errors.Join(errs...))
	}
	return probe.Merge(append(parts, gaps)...)
}
