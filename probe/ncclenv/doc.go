// Package ncclenv knows NCCL's settings: the table of the variables that NCCL
// reads ([Variables]), what NCCL takes from a value ([Variable.Effective]), and
// the ways in which settings are written down. tune decides on settings; this
// package reads and spells them.
//
// Files become a [File] by [Parse]: text → assignments with lines, repeats and
// what is odd about each. Nothing is ever executed or expanded; a value that
// only a shell could tell is unknown.
package ncclenv
