// Package nccltests reads what the nccl-tests programs print, as text and as
// the JSON of -J, one of the sources at the head of the pipeline: text →
// [Output] → [probe.Inventory].
//
// Text is read as a stream in memory that does not grow with the input. It
// comes from all versions and through launchers and pipes that ranks share, so
// launcher tags, colours, lost '#' marks, NCCL log records in the middle of a
// row and several runs in one file are expected. A row is taken whole or not at
// all; a row that contradicts itself is kept with a note and gives no sample.
package nccltests
