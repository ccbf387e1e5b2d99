// Command ncclmap-graphviz lays out one DOT graph: DOT on standard input, the
// drawing on standard output.
//
//	ncclmap-graphviz [-K dot|neato|fdp] -T svg|json|dot <graph.dot
//
// It is a program of its own, which render/graphviz starts only to draw:
// linking go-graphviz compiles WebAssembly before main runs, and keeps the
// native code in $TMPDIR/go-graphviz and loads it from there. The caller must
// point TMPDIR at a folder that no other user can write.
//
// Exit status: 0 drawn; 1 the graph could not be read, parsed or laid out;
// 2 wrong usage.
package main
