// Package graphviz lays out DOT documents, as render/dot writes them, by
// running the engine ncclmap-graphviz as a child process.
//
// [Find] gives the engine that was installed with the running program,
// [PrivateCache] a folder in which it can keep its compiled code out of other
// users' reach, [Engine.Render] a drawing, and [Clean] makes an SVG drawing
// fit to stand inside HTML.
package graphviz
