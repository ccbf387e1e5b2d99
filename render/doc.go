// Package render turns an analysed machine into what people look at: a
// Graphviz diagram, a page, text, JSON. It is the end of the pipeline and knows
// nothing of how the facts were found.
package render
