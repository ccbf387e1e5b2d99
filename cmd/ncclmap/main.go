// Command ncclmap maps how the GPUs, NVLinks, PCIe switches, NUMA nodes and
// network adapters of a machine hang together, predicts what NCCL reaches on
// it, names links that fall short, and writes the settings that the evidence
// supports.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
)

// version is set by the linker.
var version = "unknown"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes, as the help says.
const (
	exitFine     = 0
	exitFindings = 1 // findings at or above --fail-on
	exitInput    = 2 // wrong usage or unreadable input
	exitUnknown  = 3 // a needed source is missing
)

// exitError carries an exit code. An empty message prints nothing.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

var errFindings = exitError{exitFindings, errors.New("")}

// run executes one command line and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitFine
	}
	code := exitInput
	var e exitError
	if errors.As(err, &e) {
		code = e.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(stderr, "ncclmap: %s\n", msg)
	}
	return code
}

// app is what all commands share: the streams and the common flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	format         string
	sysfsRoot      string
	host           string
	quiet, verbose bool
	noColor        bool
	broken         []string // files of a folder or archive that are of a known kind and could not be read
	tellSources    bool     // say what each source was recognised as
}

const longHelp = `ncclmap maps how the GPUs, NVLinks, PCIe switches, NUMA nodes and network
adapters of a machine hang together, predicts what NCCL builds on it and
believes of it, names links that fall short, and writes the NCCL settings that
the evidence supports.

SOURCE is what to look at; without one it is this machine. Files are recognised
by their content:
  FILE            ncclmap inventory or cluster, NVML recording, NCCL topology or
                  graph XML, hwloc XML, output of nvidia-smi (topo -m, -q, -q -x,
                  nvlink, topo -p2p), ibstatus, nccl-tests or nvbandwidth, NCCL
                  log, kernel log, NCCL settings (env file, shell, nccl.conf,
                  launcher, YAML), ncclras, NCCL Inspector, PyTorch flight
                  recorder; gzip, zstd, bzip2 and tar of these
  DIRECTORY       a recorded root: it holds sys/ or proc/ of some machine; or a
                  folder of files and recorded roots of any number of hosts
  -               standard input
  example:NAME    a machine that ships in the program (ncclmap probe --examples)
Sources of one host are joined; several hosts make a cluster, of which check, log
and probe speak as a whole and --host NAME picks one.

Exit codes: 0 fine; 1 findings at or above --fail-on (check, log, report,
tune --lint); 2 wrong usage or unreadable input; 3 could not tell, a needed source
is missing.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "ncclmap",
		Short:         "Topology mapper and NCCL tuning advisor",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			formats := []string{"text", "json"}
			if cmd.Name() == "check" {
				formats = append(formats, "junit")
			}
			if !slices.Contains(formats, a.format) {
				return fmt.Errorf("--format %q: want %s", a.format, strings.Join(formats, " or "))
			}
			if a.quiet && a.verbose {
				return errors.New("--quiet and --verbose exclude each other")
			}
			return nil
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.format, "format", "text", "output of commands that print: text or json; of check also junit")
	f.StringVar(&a.sysfsRoot, "sysfs-root", "", "look at the recorded root in `DIR` instead of this machine")
	f.StringVar(&a.host, "host", "", "of sources that hold several hosts, look at the one called `NAME`")
	f.BoolVar(&a.quiet, "quiet", false, "print data and errors only")
	f.BoolVar(&a.verbose, "verbose", false, "print evidence and everything that was not checked")
	f.BoolVar(&a.noColor, "no-color", false, "no colour (also NO_COLOR)")
	root.AddCommand(a.reportCmd(), a.probeCmd(), a.checkCmd(), a.whyCmd(), a.renderCmd(), a.modelCmd(), a.tuneCmd(), a.compareCmd(), a.logCmd(), a.convertCmd(), a.explainCmd(), a.versionCmd())
	return root
}

// failOn reads a --fail-on level; "never" never fails.
func failOn(s string) (limit check.Severity, fails bool, err error) {
	if s == "never" {
		return 0, false, nil
	}
	limit, err = check.ParseSeverity(s)
	if err != nil {
		return 0, false, fmt.Errorf("--fail-on %q: want never, info, warning or critical", s)
	}
	return limit, true, nil
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.format == "json" {
				return a.printJSON(map[string]string{"schema": "ncclmap.version/v1", "version": version, "nccl_model": graph.NewestNCCL.String()})
			}
			_, err := fmt.Fprintln(a.stdout, "ncclmap", version)
			return err
		},
	}
}
