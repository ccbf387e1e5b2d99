// Package sysfs reads what the kernel shows of a host below sys/ and proc/: PCI
// functions, NUMA nodes and processor packages, RDMA devices, network
// interfaces, modules and the marks of guests and containers. It is one of the
// readers that feed probe.Merge.
//
// The root is an fs.FS: the running machine (os.OpenRoot("/").FS() with
// Options.Live), a recording (os.OpenRoot(dir).FS()) or a test's
// fstest.MapFS. Links are followed here, step by step and within the root, so
// one entry that is broken, looping or hostile costs a [probe.Gap] and nothing
// else.
//
// In a recording an entry that is missing from a folder that was recorded is
// absent, and a folder that was not recorded is unknown: its gap has the
// folder's path as Origin.Where. Attributes for which the kernel has no value
// (EINVAL, "Unknown", -1) are unknown without a gap.
package sysfs
