// Package live reads this machine: the ordered sources that look at it, and
// what each of them could not tell.
package live
