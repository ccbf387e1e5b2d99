// Package check holds the rules that flag degraded, misplaced or misreported
// hardware. It stands behind graph and before tune and render, takes a
// [graph.Topology] and returns values only: no file, no environment, no clock.
//
// A [Rule] is a documented value; [All] lists them in catalogue order. [Run]
// gives each rule a [Pass] over one host and returns findings and gaps. A fact
// that no source gives never makes a rule fire and never makes it pass: the
// rule leaves a [Gap] that says how to get the fact. Devices that were not read at
// all have gaps of their own, [InventoryGaps].
package check
