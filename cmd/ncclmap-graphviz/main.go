package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-graphviz"
)

// maxInput is far above any topology and far below the 4 GiB that WebAssembly
// can address.
const maxInput = 16 << 20

const (
	exitOK = iota
	exitFailed
	exitUsage
)

// noFiles stays empty. A graph may name image files, and one that came from
// elsewhere must not make the engine read files of this host.
var noFiles embed.FS

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ncclmap-graphviz", flag.ContinueOnError)
	flags.SetOutput(stderr)
	format := flags.String("T", "", "output `format`: svg, json or dot")
	engine := flags.String("K", "dot", "layout `engine`: dot, neato or fdp")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	fail := func(code int, err error) int {
		// Graphviz reports over several lines.
		fmt.Fprintln(stderr, "ncclmap-graphviz:", strings.Join(strings.Fields(err.Error()), " "))
		return code
	}
	if err := checkUsage(*format, *engine, flags.Args()); err != nil {
		return fail(exitUsage, err)
	}
	drawing, err := draw(stdin, *format, *engine)
	if err != nil {
		return fail(exitFailed, err)
	}
	if _, err := stdout.Write(drawing); err != nil {
		return fail(exitFailed, fmt.Errorf("write drawing: %w", err))
	}
	return exitOK
}

func checkUsage(format, engine string, rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("argument %q: the graph is read from standard input", rest[0])
	case format == "png":
		return errors.New("-T png: go-graphviz's PNG writer is wrong (filled edges, no outlines); paint the json output instead")
	case !slices.Contains([]string{"svg", "json", "dot"}, format):
		return fmt.Errorf("-T %q: want svg, json or dot", format)
	case !slices.Contains([]string{"dot", "neato", "fdp"}, engine):
		return fmt.Errorf("-K %q: want dot, neato or fdp", engine)
	}
	return nil
}

// draw returns the drawing whole, so that a failure leaves no half of it on
// standard output.
func draw(stdin io.Reader, format, engine string) ([]byte, error) {
	source, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read graph: %w", err)
	}
	if len(source) > maxInput {
		return nil, fmt.Errorf("read graph: larger than %d MiB", maxInput>>20)
	}
	graphviz.SetFileSystem(noFiles)
	graph, err := graphviz.ParseBytes(source)
	if err != nil {
		return nil, fmt.Errorf("parse graph: %w", err)
	}
	if graph == nil {
		return nil, errors.New("parse graph: no graph in the input")
	}
	// A cancelled context breaks the WebAssembly module for good; a caller
	// bounds the time by ending the process.
	ctx := context.Background()
	viz, err := graphviz.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("start graphviz: %w", err)
	}
	var out bytes.Buffer
	if err := viz.SetLayout(graphviz.Layout(engine)).Render(ctx, graph, graphviz.Format(format), &out); err != nil {
		return nil, fmt.Errorf("lay out graph: %w", err)
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("lay out graph: no %s output", format)
	}
	if err := lostLabel(); err != nil {
		return nil, fmt.Errorf("lay out graph: %w", err)
	}
	return out.Bytes(), nil
}

// lostLabel finds an HTML-like label that Graphviz could not read: it draws
// that node empty and calls it a warning. go-graphviz keeps Graphviz's latest
// message to itself, save that parsing nothing at all returns it; an earlier
// message stays unseen.
func lostLabel() error {
	if _, err := graphviz.ParseBytes(nil); err != nil && strings.Contains(err.Error(), "in label of ") {
		return err
	}
	return nil
}
