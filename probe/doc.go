// Package probe is the vocabulary of ncclmap: what a source may say about a
// machine, each fact with its origin, each possibly unknown.
//
// Readers (probe/sysfs, probe/nvml, probe/ncclxml, …) each return an
// [Inventory]; [Merge] joins the inventories of one host in a documented order
// of trust and keeps disagreements as conflicts. Everything after Merge (graph,
// tune, render) takes an Inventory and touches neither files nor the clock, so
// one inventory file replays every result.
package probe
