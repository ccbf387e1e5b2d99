package ncclenv

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Setting is one variable with the reasons that stand above it as comments.
type Setting struct {
	Name    string
	Value   string
	Comment []string
}

// spelling is how a dialect is written.
type spelling struct {
	dialect Dialect
	doc     string // for the help text
	// head, each setting and tail make the text; all are literal.
	head, tail string
	setting    func(name, value string) string
	// refuses says why a value cannot be carried unchanged; "" = it can.
	refuses func(value string) string
	// joined dialects hold all settings in one command, and comments stand above it.
	joined bool
}

// spellings are the dialects that can be written, in the order of the help text.
var spellings = []spelling{
	{
		dialect: Shell, doc: "export NAME=value, to be sourced by a POSIX shell",
		setting: func(name, value string) string { return "export " + name + "=" + shellQuote(value) + "\n" },
		refuses: fine,
	},
	{
		dialect: Plain, doc: "NAME=value, for docker --env-file and systemd's EnvironmentFile",
		setting: assignment,
		refuses: func(value string) string {
			if strings.ContainsAny(value, "\"'\\$`#") {
				return "docker and systemd read it differently; use dialect sh"
			}
			return ""
		},
	},
	{
		dialect: Conf, doc: "NAME=value, for NCCL's own files: /etc/nccl.conf, ~/.nccl.conf, NCCL_CONF_FILE",
		setting: assignment,
		refuses: func(value string) string {
			if len(value) > maxConfPart {
				return fmt.Sprintf("NCCL takes %d bytes of a value, this has %d", maxConfPart, len(value))
			}
			return ""
		},
	},
	{
		dialect: Slurm, doc: "an #SBATCH --export line for a batch script; srun takes the same option",
		head: "#SBATCH --export=ALL", tail: "\n",
		setting: func(name, value string) string { return "," + assign(name, value) },
		refuses: func(value string) string {
			switch {
			case strings.Contains(value, ","):
				return "commas part the list of --export; set it in the script with dialect sh, ALL hands it on"
			case value == "" || !bare.MatchString(value):
				return "an #SBATCH line carries plain words only; set it in the script with dialect sh, ALL hands it on"
			}
			return ""
		},
		joined: true,
	},
	{
		dialect: MPI, doc: "Open MPI's mpirun -x NAME=value as a script that takes the other arguments",
		head: "mpirun", tail: " \\\n  \"$@\"\n",
		setting: func(name, value string) string { return " \\\n  -x " + name + "=" + shellQuote(value) },
		refuses: fine, // Open MPI 4.1.4 hands on blanks, quotes, commas and ; as they are
		joined:  true,
	},
	{
		dialect: ConfigMap, doc: "a Kubernetes ConfigMap, for envFrom",
		head:    "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nccl-settings\ndata:\n",
		setting: func(name, value string) string { return "  " + name + ": " + strconv.Quote(value) + "\n" },
		refuses: templated,
	},
	{
		dialect: ContainerEnv, doc: "the env list of a container in a Kubernetes pod",
		head: "\nenv:\n",
		setting: func(name, value string) string {
			return "- name: " + name + "\n  value: " + strconv.Quote(value) + "\n"
		},
		refuses: templated,
	},
	{
		dialect: Python, doc: "os.environ assignments, to run before NCCL is loaded",
		head: "\nimport os\n",
		setting: func(name, value string) string {
			return "os.environ[" + strconv.Quote(name) + "] = " + strconv.Quote(value) + "\n"
		},
		refuses: fine,
	},
}

// Dialects lists the dialects that can be written, in the order of the help text.
func Dialects() []Dialect {
	var out []Dialect
	for _, s := range spellings {
		out = append(out, s.dialect)
	}
	return out
}

// DialectsHelp is the list of dialects for a help text.
func DialectsHelp() string {
	var b strings.Builder
	for _, s := range spellings {
		fmt.Fprintf(&b, "  %-10s %s\n", s.dialect, s.doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

// ParseDialect reads the name of a dialect that can be written.
func ParseDialect(s string) (Dialect, error) {
	var known []string
	for _, d := range Dialects() {
		if string(d) == s {
			return d, nil
		}
		known = append(known, string(d))
	}
	return "", fmt.Errorf("dialect %q: want one of %s", s, strings.Join(known, ", "))
}

var (
	nameForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	// bare text means the same to a shell, docker and systemd, whatever reads it.
	bare = regexp.MustCompile(`^[A-Za-z0-9_.,:/@%+=^-]*$`)
	// plain text may also hold what only a shell treats specially.
	plain = regexp.MustCompile(`^([!-~]([ -~]*[!-~])?)?$`)
)

// Write writes header lines as comments and then each setting below its
// comments. A value that the dialect cannot carry unchanged is an error, and
// then nothing is written.
func Write(w io.Writer, d Dialect, header []string, settings []Setting) error {
	var how spelling
	for _, s := range spellings {
		if s.dialect == d {
			how = s
		}
	}
	if how.setting == nil {
		return fmt.Errorf("dialect %q cannot be written", d)
	}
	for _, s := range settings {
		if err := how.check(s); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(w)
	comment(out, header)
	if how.joined {
		for _, s := range settings {
			fmt.Fprintln(out)
			comment(out, append([]string{s.Name + ":"}, s.Comment...))
		}
		fmt.Fprintln(out)
	}
	out.WriteString(how.head)
	for _, s := range settings {
		if !how.joined {
			fmt.Fprintln(out)
			comment(out, s.Comment)
		}
		out.WriteString(how.setting(s.Name, s.Value))
	}
	out.WriteString(how.tail)
	return out.Flush()
}

// check says why a setting cannot be written.
func (how spelling) check(s Setting) error {
	if !nameForm.MatchString(s.Name) {
		return fmt.Errorf("setting %q: not the name of a variable", s.Name)
	}
	if !plain.MatchString(s.Value) {
		return fmt.Errorf("setting %s: value %q cannot be written as one line of text", s.Name, s.Value)
	}
	if why := how.refuses(s.Value); why != "" {
		return fmt.Errorf("setting %s: dialect %s cannot carry value %q: %s", s.Name, how.dialect, s.Value, why)
	}
	return nil
}

func fine(string) string { return "" }

// templated says why a value in YAML may not reach the job as it stands.
func templated(value string) string {
	if strings.ContainsAny(value, "$`") || strings.Contains(value, "{{") {
		return "Kubernetes and what fills in templates expand it"
	}
	return ""
}

func assign(name, value string) string     { return name + "=" + value }
func assignment(name, value string) string { return assign(name, value) + "\n" }

// shellQuote quotes a value where a POSIX shell needs it.
func shellQuote(value string) string {
	if bare.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// maxComment keeps comments below the 4095 bytes that NCCL takes for one line.
const maxComment = 1000

// comment writes lines as comments. What some reader takes for the end of a
// line becomes a blank.
func comment(w io.Writer, lines []string) {
	for _, text := range lines {
		for l := range strings.SplitSeq(strings.ToValidUTF8(text, "?"), "\n") {
			l = strings.Map(func(r rune) rune {
				if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
					return ' '
				}
				return r
			}, l)
			for len(l) > maxComment {
				cut := strings.LastIndexByte(l[:maxComment], ' ') + 1
				if cut == 0 {
					l = l[:maxComment] // one endless word
					break
				}
				fmt.Fprintln(w, strings.TrimRight("# "+l[:cut], " "))
				l = l[cut:]
			}
			fmt.Fprintln(w, strings.TrimRight("# "+strings.ToValidUTF8(l, ""), " "))
		}
	}
}
