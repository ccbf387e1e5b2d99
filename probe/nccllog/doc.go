// Package nccllog reads what NCCL prints with NCCL_DEBUG, one of the sources at
// the head of the pipeline: text → [Log] → [probe.Inventory].
//
// It reads NCCL 2.8 to 2.31 as a stream, in memory that does not grow with the
// input: what is repeated is counted, every list has a cap, and a cap that was
// reached is told. Such text passes through launchers, containers and pipes that
// several processes share, so launcher prefixes, colours, two records on one
// physical line, records in the middle of a result row and records that lost
// their end are expected. A record is taken for what it says or not at all:
// half of one is counted as torn and never completed by guessing.
package nccllog
