package probe

import (
	"fmt"
	"strconv"
	"strings"
)

// PCIID is a vendor, device or subsystem id, printed as sysfs prints it: 0x10de.
type PCIID uint16

// PCIClass is the 24-bit class code, printed as sysfs prints it: 0x030200.
type PCIClass uint32

// Vendors and classes that the code asks for by name (pci.ids 2026-08-22).
const (
	VendorNVIDIA    PCIID = 0x10de
	VendorMellanox  PCIID = 0x15b3
	VendorRedHat    PCIID = 0x1b36
	VendorVirtio    PCIID = 0x1af4
	VendorMicrosoft PCIID = 0x1414
	VendorTI        PCIID = 0x104c

	ClassBridgeHost PCIClass = 0x060000
	ClassBridgePCI  PCIClass = 0x060400
	ClassNVSwitch   PCIClass = 0x068000
)

// Base returns the top byte of the class: 3 display, 2 network, 6 bridge.
func (c PCIClass) Base() uint8 { return uint8(c >> 16) }

// IsGPU reports a display controller; with vendor NVIDIA that is a GPU.
func (c PCIClass) IsGPU() bool { return c.Base() == 0x03 }

// IsNIC reports a network controller.
func (c PCIClass) IsNIC() bool { return c.Base() == 0x02 }

// IsPCIBridge reports a PCI-to-PCI bridge, so a root, upstream or downstream port.
func (c PCIClass) IsPCIBridge() bool { return c>>8 == ClassBridgePCI>>8 }

func (i PCIID) String() string    { return fmt.Sprintf("0x%04x", uint16(i)) }
func (c PCIClass) String() string { return fmt.Sprintf("0x%06x", uint32(c)) }

func (i PCIID) MarshalText() ([]byte, error)    { return []byte(i.String()), nil }
func (c PCIClass) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (i *PCIID) UnmarshalText(t []byte) error {
	v, err := ParseHex(string(t), 16)
	*i = PCIID(v)
	return err
}

func (c *PCIClass) UnmarshalText(t []byte) error {
	v, err := ParseHex(string(t), 24)
	*c = PCIClass(v)
	return err
}

// ParseHex reads a hexadecimal number with or without 0x, of at most bits bits.
func ParseHex(s string, bits int) (uint64, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "0x"), "0X")
	v, err := strconv.ParseUint(digits, 16, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a hexadecimal number of up to %d bits", clip(s), bits)
	}
	return v, nil
}

// ParseHexGroups reads a GUID (4 groups) or GID (8 groups) as sysfs prints it,
// 9803:9b03:00aa:bb01; all zeros is unknown and gives "".
func ParseHexGroups(s string, groups int) (string, error) {
	parts := strings.Split(s, ":")
	bad, zero := len(parts) != groups, true
	for _, p := range parts {
		v, err := strconv.ParseUint(p, 16, 16)
		bad = bad || err != nil || len(p) != 4
		zero = zero && v == 0
	}
	switch {
	case bad:
		return "", fmt.Errorf("want %d groups of four hexadecimal digits", groups)
	case zero:
		return "", nil
	}
	return strings.ToLower(s), nil
}
