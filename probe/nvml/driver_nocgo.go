//go:build !cgo

package nvml

// openDriver has no way to load NVML without cgo.
func openDriver() (session, *Unavailable) {
	return nil, &Unavailable{
		Why: "built without cgo: the NVIDIA driver cannot be asked",
		How: "build with CGO_ENABLED=1, or name the output of nvidia-smi topo -m as a source",
	}
}
