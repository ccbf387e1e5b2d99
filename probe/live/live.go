package live

import (
	"fmt"
	"os"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

// Read looks at this machine. The NVIDIA driver is not asked yet, so what only
// it knows (NVLinks, GPU load, P2P status) is a gap wherever there is a GPU.
func Read() (*probe.Inventory, error) {
	root, err := os.OpenRoot("/")
	if err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	defer root.Close()
	inv, err := sysfs.Read(root.FS(), sysfs.Options{Live: true})
	if err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	if len(inv.GPUs) > 0 {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "NVLinks, GPU load and P2P status", Why: "this version does not ask the NVIDIA driver",
			How: "add the output of nvidia-smi topo -m as a source", Origin: probe.Origin{Source: probe.SourceNVML},
		})
	}
	return probe.Merge(inv)
}
