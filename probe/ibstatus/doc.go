// Package ibstatus reads what ibstatus (infiniband-diags) prints of the RDMA ports
// of a host, one of the sources at the head of the pipeline: text →
// [probe.Inventory]. The values are those of sysfs; a port that is DOWN shows the
// rate of its slowest lane speed, "10 Gb/sec (4X)", which says nothing of the link.
package ibstatus
