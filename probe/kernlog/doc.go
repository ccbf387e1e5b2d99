// Package kernlog reads kernel log text (dmesg, journalctl, syslog files), one
// of the sources at the head of the pipeline: text → [Log] → [probe.Inventory].
//
// It keeps what bears on GPUs, NVLink, PCIe and adapters: Xid and SXid reports,
// what the NVIDIA driver says of itself, PCIe errors and links that trained low,
// mlx5 ports and health, IOMMU. The text is read as a stream in memory that does
// not grow with it: a message that comes again is counted, with the lines where
// it came first and last.
package kernlog
