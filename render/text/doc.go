// Package text prints topologies, matrices, findings, predictions and plans for
// a terminal: aligned, sorted, without colour unless asked.
package text
