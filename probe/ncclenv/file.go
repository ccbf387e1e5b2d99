package ncclenv

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ncclmap/ncclmap/probe"
)

// Limits of what one file may add.
const (
	maxAssignments = 10000
	maxIssues      = 1000
)

// File is the settings of one text, in the order in which they stand.
type File struct {
	Name        string // base name or "-"
	Dialect     Dialect
	Assignments []Assignment // repeats included
	// Others counts assignments to names that say nothing about NCCL.
	Others int
	// Issues are what is odd about the text itself, by line.
	Issues []Issue

	bom      bool            // the text began with a byte order mark
	exported map[string]bool // names that the text exports somewhere
}

// Issue is one oddity.
type Issue struct {
	Line int // from 1; 0 = the text as a whole
	Text string
}

// Mark is a property of an assignment as it is written. What it means depends
// on who reads the text.
type Mark string

// The marks.
const (
	MarkExport      Mark = "export"       // export, declare -x, setenv
	MarkQuotes      Mark = "quotes"       // docker and nccl.conf keep them
	MarkSmartQuotes Mark = "smart quotes" // typographic ones: everybody keeps them
	MarkBlanks      Mark = "blanks"       // round the =, or before the name
	MarkComment     Mark = "comment"      // behind the value; only shells and YAML drop it
	MarkTilde       Mark = "tilde"        // only shells expand it
	MarkCR          Mark = "CR"           // Windows line end
	MarkReference   Mark = "reference"    // $VAR, $(command), a template: the value is not in the text
	MarkConditional Mark = "conditional"  // in a branch, loop or function, or behind || or &&
	MarkCommand     Mark = "one command"  // before a command, for that one only
	MarkLauncher    Mark = "launcher"     // mpirun -x, srun --export, docker -e
	MarkNotExported Mark = "not exported" // a shell keeps it to itself
	MarkUnset       Mark = "unset"        // taken away
	MarkLost        Mark = "lost"         // the reader sets another name, or nothing
)

// Assignment is one setting as a text states it.
type Assignment struct {
	Name string
	// Value is what the dialect's reader gives to NCCL; unknown where it is not in
	// the text. In dialect Plain it is what a shell or systemd reads: docker takes
	// Raw, with quotes and comments.
	Value probe.Opt[string]
	Raw   string // as written behind the =
	Line  int
	Marks []Mark
}

// Has reports a mark.
func (a Assignment) Has(m Mark) bool { return slices.Contains(a.Marks, m) }

// Effective lists the assignment that wins for each name, by name: the last
// one, in nccl.conf the first (NCCL never overwrites, os/linux.cc). Names that
// are unset, or that their reader does not set, are left out; the value is
// unknown where only running the text would tell whether it is set.
func (f *File) Effective() []Assignment {
	won := map[string]Assignment{}
	for _, a := range f.Assignments {
		_, seen := won[a.Name]
		switch {
		case a.Has(MarkLost) || f.Dialect == Conf && seen:
		case a.Has(MarkUnset) && !a.Has(MarkConditional):
			delete(won, a.Name)
		default:
			if a.Has(MarkConditional) {
				a.Value = probe.Opt[string]{}
			}
			won[a.Name] = a
		}
	}
	out := make([]Assignment, 0, len(won))
	for _, a := range won {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Assignment) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Parse reads the settings in a text; name is the input's base name, and
// nccl.conf and .nccl.conf are read as NCCL reads them. The dialect of another
// text is told by its content. What cannot be read becomes an Issue. Errors are
// those of r, and probe.ErrTooLarge.
func Parse(name string, r io.Reader) (*File, error) { return parseAs(name, r, dialectOf) }

// ParseConf reads a file as NCCL reads nccl.conf, whatever its name.
func ParseConf(name string, r io.Reader) (*File, error) {
	return parseAs(name, r, func(string, string) Dialect { return Conf })
}

func parseAs(name string, r io.Reader, dialect func(name, text string) Dialect) (*File, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &File{Name: name, exported: map[string]bool{}}
	text := f.decode(raw)
	switch f.Dialect = dialect(name, text); f.Dialect {
	case Shell:
		f.shell(text)
	case YAML:
		f.yaml(text)
	case Conf:
		f.lines(text, f.confLine)
	case Python:
		f.python(text)
	default:
		f.lines(text, f.plainLine)
	}
	slices.SortStableFunc(f.Issues, func(a, b Issue) int { return cmp.Compare(a.Line, b.Line) })
	return f, nil
}

// decode makes text of bytes and notes what had to be done.
func (f *File) decode(raw []byte) string {
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		f.issue(0, "UTF-16 text; no shell and no NCCL reads it")
		text, err := probe.DecodeText(raw)
		if err != nil {
			f.issue(0, "%v", err)
		}
		raw = []byte(text)
	}
	if rest := probe.TrimBOM(raw); len(rest) < len(raw) {
		f.bom = true
		f.issue(1, "byte order mark; shells and NCCL take it for part of the first name")
		raw = rest
	}
	for n, rest := 1, raw; len(f.Issues) < maxIssues; n++ {
		i := bytes.IndexByte(rest, 0)
		if i < 0 {
			break
		}
		n += bytes.Count(rest[:i], []byte("\n"))
		f.issue(n, "NUL byte")
		end := bytes.IndexByte(rest[i:], '\n')
		if end < 0 {
			break
		}
		rest = rest[i+end+1:]
	}
	text := string(bytes.ReplaceAll(raw, []byte{0}, nil))
	if !utf8.ValidString(text) {
		f.issue(0, "not UTF-8")
		text = strings.ToValidUTF8(text, "?")
	}
	return text
}

func (f *File) issue(line int, format string, args ...any) {
	if len(f.Issues) < maxIssues {
		f.Issues = append(f.Issues, Issue{line, fmt.Sprintf(format, args...)})
	}
}

// add keeps an assignment that says something about NCCL.
func (f *File) add(a Assignment) {
	switch {
	case !Matters(a.Name):
		f.Others++
		return
	case len(f.Assignments) == maxAssignments:
		f.issue(a.Line, "more than %d settings; what follows is not read", maxAssignments)
		return
	case len(f.Assignments) > maxAssignments:
		return
	}
	if strings.ContainsAny(a.Raw, "“”„‘’‚«»") {
		a.Marks = append(a.Marks, MarkSmartQuotes)
		f.issue(a.Line, "typographic quotes in %s; they become part of the value", a.Name)
	}
	if !a.Value.Known() && !a.Has(MarkUnset) && !a.Has(MarkReference) {
		a.Marks = append(a.Marks, MarkReference)
	}
	f.Assignments = append(f.Assignments, a)
}

// lines gives each line to f, without its end and whether that was CR LF.
func (f *File) lines(text string, line func(n int, text string, cr bool)) {
	n := 0
	for l := range strings.SplitSeq(text, "\n") {
		n++
		if len(l) > probe.MaxLine {
			f.issue(n, "line of %d bytes is not read", len(l))
			continue
		}
		l, cr := strings.CutSuffix(l, "\r")
		line(n, l, cr)
	}
}

// isName reports a name that a shell can set.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// dialectOf tells the dialect by a file's name and by how its lines begin.
func dialectOf(name, text string) Dialect {
	if strings.HasSuffix(path.Base(name), "nccl.conf") {
		return Conf
	}
	if isYAML(text) {
		return YAML
	}
	yaml := false
	for l := range strings.SplitSeq(text, "\n") {
		switch how(l) {
		case lineShell:
			return Shell
		case linePython:
			return Python
		case lineYAML:
			yaml = true
		}
	}
	if strings.HasPrefix(text, "#!") {
		return Shell
	}
	if yaml {
		return YAML
	}
	return Plain
}

// lineKind is what one line looks like.
type lineKind int

const (
	lineOther   lineKind = iota // nothing known
	lineEmpty                   // or a comment
	linePlain                   // NAME=value
	lineShell                   // what only a shell reads
	lineYAML                    // NAME: value, or name: NAME
	linePython                  // os.environ["NAME"] = value
	lineNeutral                 // shell words that also begin sentences
)

// statements begin lines that only a shell reads; neutral ones are too common
// elsewhere to tell a shell text.
var (
	statements = []string{"export", "declare", "typeset", "readonly", "unset", "setenv", "unsetenv"}
	neutral    = []string{"set", "source", ".", "if", "then", "else", "elif", "fi", "for", "do", "done", "while", "case", "esac", "module", "ulimit", "cd", "echo", "{", "}"}
)

func how(line string) lineKind {
	line = strings.TrimLeft(strings.TrimSuffix(line[:min(len(line), 4096)], "\r"), " \t")
	switch {
	case strings.HasPrefix(line, sbatch):
		return lineShell
	case line == "" || line[0] == '#' || line == "import os":
		return lineEmpty
	case isPython(line):
		return linePython
	}
	i := strings.IndexAny(line, " \t=:")
	if i < 0 {
		i = len(line)
	}
	word, rest := line[:i], line[i:]
	_, launches := launchers[path.Base(word)]
	switch {
	case strings.HasPrefix(rest, "=") && isName(word):
		if several(rest[1:]) {
			return lineShell
		}
		return linePlain
	case strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") && isName(word):
		return linePlain
	case rest != "" && rest[0] != '=' && (slices.Contains(statements, word) || launches):
		return lineShell
	case slices.Contains(neutral, word):
		return lineNeutral
	}
	if key, value, ok := yamlPair(line); ok && (Matters(key) || key == "name" && Matters(scalarText(value))) {
		return lineYAML
	}
	return lineOther
}

// programs are what settings stand before on one line, besides launchers.
var programs = []string{"python", "python3", "torchrun", "accelerate", "deepspeed"}

// several reports further assignments, or a command, behind the first value.
func several(rest string) bool {
	for i, w := range strings.Fields(rest) {
		name, _, assigns := strings.Cut(w, "=")
		_, launches := launchers[path.Base(w)]
		switch {
		case strings.HasPrefix(w, "#"):
			return false
		case i > 0 && (assigns && isName(name) || launches || slices.Contains(programs, w) || strings.HasPrefix(w, "./")):
			return true
		}
	}
	return false
}
