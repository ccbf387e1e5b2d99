// Package host names the machine around the GPUs: product, board, processors,
// memory. It asks ghw, which reads what the firmware and the kernel tell any
// user; devices and links are the business of probe/sysfs and probe/nvml.
package host
