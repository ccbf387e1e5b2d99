// Package hwlocxml reads the XML that lstopo and hwloc export, formats 1, 2 and
// 3, one of the sources at the head of the pipeline: text → [probe.Inventory].
//
// hwloc knows packages, NUMA nodes, the PCI tree with the locality of each
// device, and the kernel's and NVML's names of devices. It does not know the
// maximum of a PCIe link: it keeps one rate per device, the current one, which
// for a GPU that NVML knows it replaces by NVML's maximum, in old versions
// counted with the third generation at most. So a rate becomes a link only where
// every way in which hwloc may have counted it leaves one generation and width;
// the figure itself is always kept.
package hwlocxml
