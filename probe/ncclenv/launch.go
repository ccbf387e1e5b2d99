package ncclenv

import (
	"slices"
	"strings"
	"unicode"
)

// launcher is how a program that starts others takes variables for them.
type launcher struct {
	pair     []string // options followed by NAME=value, or by NAME alone
	separate []string // options followed by NAME and by value
	list     string   // option with a comma list of NAME=value
}

var (
	mpi        = launcher{pair: []string{"-x"}, separate: []string{"-genv", "-env"}}
	slurm      = launcher{list: "--export"}
	containers = launcher{pair: []string{"-e", "--env"}}
)

// launchers are known by their base names: Open MPI and MPICH, Slurm, containers.
var launchers = map[string]launcher{
	"mpirun": mpi, "mpiexec": mpi, "mpiexec.hydra": mpi, "orterun": mpi, "prterun": mpi,
	"srun": slurm, "sbatch": slurm, "salloc": slurm,
	"docker": containers, "podman": containers, "nerdctl": containers,
}

// wrappers start what stands behind them, with the assignments between.
var wrappers = []string{"env", "sudo", "exec", "command", "nohup", "time"}

// launch reads the variables that a launcher hands on.
func (s *shell) launch(l launcher, args []word) {
	for i := 0; i < len(args); i++ {
		option, text, joined := strings.Cut(args[i].text, "=")
		switch {
		case slices.Contains(l.pair, args[i].text) && i+1 < len(args):
			i++
			s.assign(unquoted(args[i]), MarkLauncher)
		case slices.Contains(l.pair, option) && joined:
			s.assign(behind(args[i], text), MarkLauncher)
		case slices.Contains(l.separate, args[i].text) && i+2 < len(args):
			w := args[i+2]
			s.add(Assignment{Name: args[i+1].text, Raw: w.raw, Line: w.line, Marks: []Mark{MarkLauncher}}, w.text, w.known, w)
			i += 2
		case l.list != "" && option == l.list && joined:
			s.exportList(behind(args[i], text))
		case l.list != "" && args[i].text == l.list && i+1 < len(args):
			i++
			s.exportList(args[i])
		}
	}
}

// unquoted is a word whose quotes go round the whole of it, as in -x "NAME=value".
func unquoted(w word) word {
	if w.known && !isAssignment(w) {
		w.raw = w.text
	}
	return w
}

// behind is the part of a word behind its first =.
func behind(w word, text string) word {
	_, w.raw, _ = strings.Cut(w.raw, "=")
	w.text = text
	return unquoted(w)
}

// exportList reads srun --export=ALL,NAME=value,…: commas part the list even
// inside a value.
func (s *shell) exportList(w word) {
	last := ""
	for item := range strings.SplitSeq(w.text, ",") {
		part := word{text: item, raw: item, line: w.line, known: w.known}
		if s.assign(part, MarkLauncher) {
			last, _, _ = strings.Cut(item, "=")
			continue
		}
		if Matters(last) && strings.IndexFunc(item, unicode.IsLower) >= 0 {
			s.file.issue(w.line, "Slurm cuts the value of %s before %q: commas part the list of --export", last, item)
		}
	}
}

// batch reads an option line of a Slurm script.
func (s *shell) batch(line int, text string) {
	if list, ok := strings.CutPrefix(text, "--export="); ok {
		s.exportList(word{text: list, raw: list, line: line, known: !refers(list)})
	}
}

// declare reads the arguments of export and declare.
func (s *shell) declare(args []word, export bool) {
	var marks []Mark
	if export {
		marks = []Mark{MarkExport}
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.raw == "=" && i > 0 && isName(args[i-1].text):
			s.lost(args[i-1], args[i:])
			return
		case isAssignment(w) && strings.HasSuffix(w.raw, "=") && i+1 < len(args) && !isName(args[i+1].text) && !isAssignment(args[i+1]):
			s.lost(word{text: strings.TrimSuffix(w.raw, "="), line: w.line}, args[i:])
			return
		case s.assign(w, marks...):
		case isName(w.text) && export:
			s.file.exported[w.text] = true
		}
	}
}

// lost keeps an assignment that blanks round the = spoil.
func (s *shell) lost(name word, rest []word) {
	raw := make([]string, len(rest))
	for i, w := range rest {
		raw[i] = w.raw
	}
	_, value, _ := strings.Cut(strings.Join(raw, " "), "=")
	s.add(Assignment{Name: name.text, Raw: value, Line: name.line, Marks: []Mark{MarkBlanks, MarkLost}}, strings.TrimSpace(value), true, name)
}

// set follows set -a, which exports all that is assigned while it is on.
func (s *shell) set(args []word) {
	for i, w := range args {
		on := strings.HasPrefix(w.text, "-")
		switch {
		case (on || strings.HasPrefix(w.text, "+")) && strings.Contains(w.text, "o") && i+1 < len(args) && args[i+1].text == "allexport",
			(on || strings.HasPrefix(w.text, "+")) && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "a"):
			s.allExport = on
		}
	}
}
