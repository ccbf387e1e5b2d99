// Package smiquery reads what nvidia-smi prints about GPUs, one of the sources
// at the head of the pipeline: text → [probe.Inventory].
//
// It knows the XML of -q -x, the text of -q, the lists of nvlink -s, -c, -e, -g,
// -R and -p and of -L, and the matrices of topo -p2p; several of them in one
// text are read together as one host. Drivers 450 to 590 name the same facts
// differently, so each fact lists its names and what is not known is passed
// over. Where nvidia-smi prints a reason instead of a value (N/A, Unknown Error)
// the fact is unknown; a value that is damaged is an error with its line.
package smiquery
