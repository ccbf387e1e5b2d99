// Package ncclras reads what NCCL's RAS service says of a running job, one of the
// sources at the head of the pipeline: text → [Report] → [probe.Inventory].
//
// It knows the JSON of "ncclras -f json" (NCCL 2.28.7 to 2.31, also the one of
// 2.28.9 that lacks a comma) and the report in text (2.24 to 2.31), as the user
// guide's chapter RAS and src/ras/client_support.cc of NCCL 2.30.7 define them.
// A file may hold several reports of one job in a row: what did not change between
// them stands still. The text names communicators only where something is wrong
// with them, and of their ranks only the few that differ; the JSON names all.
// Hosts are IP addresses. The events of the monitoring mode are not read.
package ncclras
