package graph

import "fmt"

// PathClass says what a path between two devices crosses, best to worst, in
// NCCL's words. Unknown is no class: the facts do not tell.
type PathClass int

// The classes. PXN, NET and DIS arise in NCCL's model only.
const (
	Unknown PathClass = iota
	LOC               // the same device
	NVL               // NVLink, direct or through NVSwitch
	NVB               // NVLink through one other GPU
	C2C               // chip-to-chip link between a GPU and its CPU
	PIX               // at most one PCIe switch
	PXB               // several PCIe switches, no host bridge
	P2C               // GPU–CPU over C2C, then PCIe to a NIC
	PXN               // NIC of another GPU, reached over NVLink
	PHB               // through the host bridge, one NUMA node
	SYS               // between NUMA nodes
	NET               // through the network
	DIS               // not connected
)

var classNames = [...]string{"?", "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}

var classDocs = [...]string{
	"the facts do not tell which way the path goes",
	"the same device",
	"NVLink, direct or through NVSwitch",
	"NVLink through one other GPU",
	"chip-to-chip link between a GPU and its CPU",
	"PCIe through at most one switch",
	"PCIe through several switches, without a host bridge",
	"C2C from the GPU to its CPU, then PCIe to the NIC",
	"the NIC of another GPU, reached over NVLink (NCCL's PXN)",
	"PCIe through the CPU's host bridge, within one NUMA node",
	"PCIe and the link between NUMA nodes (UPI, xGMI)",
	"the network",
	"not connected",
}

func (c PathClass) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("PathClass(%d)", int(c))
	}
	return classNames[c]
}

// Doc says in a sentence what the class means.
func (c PathClass) Doc() string { return classDocs[c] }

// PathClasses lists all classes, best first, without Unknown.
func PathClasses() []PathClass {
	out := make([]PathClass, 0, len(classNames)-1)
	for c := LOC; c <= DIS; c++ {
		out = append(out, c)
	}
	return out
}

func (c PathClass) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Near reports a class that stays below one PCIe host bridge: PIX or PXB.
func (c PathClass) Near() bool { return c == PIX || c == PXB }

// Agrees reports whether the class and a cell of nvidia-smi topo -m (NV18, PIX,
// PXB, PHB, NODE, SYS) can both be true. nvidia-smi tells PHB and NODE apart,
// NCCL does not; nvidia-smi reports a relay over NVLink by its PCIe path.
func (c PathClass) Agrees(code string) bool {
	switch {
	case c == Unknown:
		return true
	case len(code) > 2 && code[:2] == "NV":
		return c == NVL
	case code == "NODE":
		return c == PHB || c == NVB || c == P2C
	case c == NVB:
		return true
	}
	return c.String() == code || c == P2C && code == "PHB"
}
