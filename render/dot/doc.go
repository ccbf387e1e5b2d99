// Package dot writes undirected graphs in Graphviz's DOT language.
//
// It stands between the packages that decide what a drawing shows, which fill
// a [Graph], and render/graphviz, which lays it out. The order of clusters,
// nodes, edges and attributes is kept as given: sort before filling, and the
// same graph gives the same bytes.
//
// Every text is escaped, so names read from a machine can neither end a
// string nor be taken for one of Graphviz's own escapes. A graph that Graphviz
// would draw wrongly without saying so (an edge that would create a node, a
// cluster that would not be drawn, a malformed HTML-like label) is an error.
package dot
