package ncclenv

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Setting is one variable with the reasons that stand above it as comments.
type Setting struct {
	Name    string
	Value   string
	Comment []string
}

// Dialect is a way to write settings down.
type Dialect string

// The dialects.
const (
	// Shell is for sourcing: export NAME=value, quoted where a POSIX shell needs it.
	Shell Dialect = "sh"
	// Plain is NAME=value as docker --env-file and systemd's EnvironmentFile read
	// it: no export, no quotes, comments on lines of their own.
	Plain Dialect = "env"
	// Conf is nccl.conf, which NCCL itself reads; it is only read here.
	Conf Dialect = "nccl.conf"
	// YAML is the environment in a Kubernetes object or a compose file; it is only
	// read here.
	YAML Dialect = "yaml"
)

// Dialects lists the dialects that can be written, in the order of the help text.
func Dialects() []Dialect { return []Dialect{Shell, Plain} }

// ParseDialect reads a dialect's name.
func ParseDialect(s string) (Dialect, error) {
	for _, d := range Dialects() {
		if string(d) == s {
			return d, nil
		}
	}
	return "", fmt.Errorf("dialect %q: want sh or env", s)
}

var (
	nameForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	// bare text means the same to a shell, docker and systemd, whatever reads it.
	bare = regexp.MustCompile(`^[A-Za-z0-9_.,:/@%+=^-]*$`)
	// plain text may also hold what only a shell treats specially.
	plain = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
)

// Write writes header lines as comments and then each setting below its
// comments. A value that the dialect cannot carry unchanged is an error.
func Write(w io.Writer, d Dialect, header []string, settings []Setting) error {
	out := bufio.NewWriter(w)
	comment(out, header)
	for _, s := range settings {
		if !nameForm.MatchString(s.Name) {
			return fmt.Errorf("setting %q: not the name of a variable", s.Name)
		}
		value := s.Value
		switch {
		case bare.MatchString(value) && (d == Shell || value != ""):
		case !plain.MatchString(value):
			return fmt.Errorf("setting %s: value %q cannot be written as one line of text", s.Name, value)
		case d == Plain && strings.ContainsAny(value, "\"'\\$`#"):
			return fmt.Errorf("setting %s: docker and systemd read value %q differently; use dialect sh", s.Name, value)
		case d == Shell:
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		fmt.Fprintln(out)
		comment(out, s.Comment)
		if d == Shell {
			fmt.Fprint(out, "export ")
		}
		fmt.Fprintf(out, "%s=%s\n", s.Name, value)
	}
	return out.Flush()
}

func comment(w io.Writer, lines []string) {
	for _, text := range lines {
		for l := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(w, strings.TrimRight("# "+l, " "))
		}
	}
}
