// Package ncclxml reads and writes NCCL's topology XML (NCCL_TOPO_FILE and
// NCCL_TOPO_DUMP_FILE), one of the sources at the head of the pipeline: text →
// [Document] → [probe.Inventory], and back for ncclmap convert.
//
// A [Document] is the file as it stands: every element and attribute, known or
// not, in its order and with its line. [Document.Inventory] turns it into facts.
// It is lenient where real files are (declaration, comments, tabs, missing
// attributes) and strict where a value would have to be guessed. What NCCL's own
// parser, which is no XML parser, would refuse is listed in [Document.Refused].
//
// [DecodeGraphs] reads its other XML, search results (NCCL_GRAPH_DUMP_FILE and
// NCCL_GRAPH_FILE), which say nothing of a machine.
//
// Names of elements and attributes, and what NCCL makes of missing ones, follow
// NCCL 2.30.7 src/graph/xml.cc and topo.cc.
package ncclxml
