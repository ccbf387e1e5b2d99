// Package chart draws bus bandwidth against size, and writes the same figures as
// CSV. It stands at the end of the pipeline beside the other renderers.
package chart
