// Package open turns what a user names on the command line into one inventory:
// it recognises files by their content, reads recorded roots and built-in
// examples, and joins what it got. It stands between the readers and graph.
package open
