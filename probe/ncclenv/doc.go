// Package ncclenv knows how NCCL settings are written down: the dialects of
// environment files. tune decides on settings; this package only spells them.
package ncclenv
