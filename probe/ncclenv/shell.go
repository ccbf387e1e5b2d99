package ncclenv

import (
	"path"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// shell reads the assignments of a POSIX shell, bash or csh text. A text with an
// open quote is read as far as a shell would run it.
func (f *File) shell(text string) {
	s := &shell{file: f}
	s.lex = lexer{src: text, line: 1, batch: s.batch}
	if open := s.run(); open != nil {
		f.issue(open.line, "%s is not closed; what follows is not read", open.what)
	}
	for i := range f.Assignments {
		a := &f.Assignments[i]
		if !f.exported[a.Name] && !slices.ContainsFunc([]Mark{MarkExport, MarkCommand, MarkLauncher, MarkUnset, MarkLost}, a.Has) {
			a.Marks = append(a.Marks, MarkNotExported)
		}
	}
}

// shell follows the structure of a text just far enough to know which commands
// surely run.
type shell struct {
	file      *File
	lex       lexer
	blocks    []string // open blocks, by the word that closes them
	allExport bool
	words     []word
	perhaps   bool // the command in words runs only if another one went well or badly
	assigned  bool // the command before was an assignment, which always goes well
}

// closers are the words that open and close blocks.
var closers = map[string]string{"if": "fi", "case": "esac", "for": "done", "while": "done", "until": "done", "select": "done", "{": "}"}

func (s *shell) run() *openError {
	for redirected := false; ; {
		kind, w, err := s.lex.next()
		if err != nil {
			return err // nor does a shell run the command that this stands in
		}
		if kind == tokenEOF {
			s.finish()
			return nil
		}
		switch kind {
		case tokenWord:
			switch {
			case redirected:
				redirected = false
			case len(s.words) == 0 && s.keyword(w):
			default:
				s.words = append(s.words, w)
			}
			continue
		case tokenRedirect:
			redirected = true
			continue
		case tokenEnd:
			s.finish()
			s.perhaps = false
		case tokenAnd:
			s.finish()
			s.perhaps = s.perhaps || !s.assigned
		case tokenOr:
			s.finish()
			s.perhaps = true
		case tokenOpen:
			s.finish()
			s.blocks = append(s.blocks, ")")
		case tokenClose:
			s.finish()
			s.leave(")")
		}
		redirected = false
	}
}

// keyword handles a word that a shell reads as part of its grammar.
func (s *shell) keyword(w word) bool {
	if w.quoted || !w.known {
		return false
	}
	if end, opens := closers[w.text]; opens {
		s.blocks = append(s.blocks, end)
		// The words up to the next command are a list or a pattern.
		return w.text == "{" || w.text == "if" || w.text == "while" || w.text == "until"
	}
	switch w.text {
	case "then", "else", "elif", "do", "!":
		return true
	case "fi", "esac", "done", "}":
		s.leave(w.text)
		return true
	}
	return false
}

func (s *shell) leave(end string) {
	if n := len(s.blocks); n > 0 && s.blocks[n-1] == end {
		s.blocks = s.blocks[:n-1]
	}
}

// finish takes the collected command.
func (s *shell) finish() {
	ws := s.words
	s.words = s.words[:0]
	if len(ws) == 0 {
		return
	}
	s.assigned = s.command(ws)
}

// assign adds an assignment that stands in a word.
func (s *shell) assign(w word, marks ...Mark) bool {
	name, raw, ok := strings.Cut(w.raw, "=")
	name = strings.TrimSuffix(name, "+") // NAME+=more
	if !ok || !isName(name) {
		return false
	}
	_, value, _ := strings.Cut(w.text, "=")
	known := w.known && !strings.HasSuffix(w.raw[:len(w.raw)-len(raw)], "+=")
	s.add(Assignment{Name: name, Raw: raw, Line: w.line, Marks: marks}, value, known, w)
	return true
}

func (s *shell) add(a Assignment, value string, known bool, w word) {
	a.Marks = slices.Clone(a.Marks)
	if known {
		a.Value = probe.Some(value)
	}
	if w.quoted {
		a.Marks = append(a.Marks, MarkQuotes)
	}
	if w.tilde {
		a.Marks = append(a.Marks, MarkTilde)
	}
	if s.perhaps || len(s.blocks) > 0 {
		a.Marks = append(a.Marks, MarkConditional)
	}
	if s.allExport {
		s.file.exported[a.Name] = true
	}
	s.file.add(a)
}

// command reads one simple command; it reports whether it only assigns.
func (s *shell) command(ws []word) (assigns bool) {
	n := leading(ws)
	if n == len(ws) {
		for _, w := range ws {
			s.assign(w)
		}
		return true
	}
	for _, w := range ws[:n] {
		s.assign(w, MarkCommand)
	}
	ws = ws[n:]
	for slices.Contains(wrappers, path.Base(ws[0].text)) {
		for ws = ws[1:]; len(ws) > 0 && strings.HasPrefix(ws[0].text, "-"); {
			ws = ws[1:]
		}
		n := leading(ws)
		for _, w := range ws[:n] {
			s.assign(w, MarkCommand)
		}
		if ws = ws[n:]; len(ws) == 0 {
			return false
		}
	}
	name, args := ws[0].text, ws[1:]
	switch {
	case name == "export" || name == "readonly":
		s.declare(args, name == "export")
		return true
	case name == "declare" || name == "typeset" || name == "local":
		s.declare(args, slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "x") }))
		return true
	case name == "setenv" && len(args) > 0:
		value := word{known: true, line: args[0].line}
		if len(args) > 1 {
			value = args[1]
		}
		s.add(Assignment{Name: args[0].text, Raw: value.raw, Line: args[0].line, Marks: []Mark{MarkExport}}, value.text, value.known, value)
		return true
	case name == "unset" || name == "unsetenv":
		for _, w := range args {
			if isName(w.text) && w.known {
				s.add(Assignment{Name: w.text, Line: w.line, Marks: []Mark{MarkUnset}}, "", false, w)
			}
		}
		return true
	case name == "set":
		s.set(args)
	case len(args) > 0 && strings.HasPrefix(args[0].text, "=") && isName(name):
		s.lost(ws[0], args)
	default:
		if l, ok := launchers[path.Base(name)]; ok {
			s.launch(l, args)
		}
	}
	return false
}

// leading counts the assignments that a command begins with.
func leading(ws []word) int {
	n := slices.IndexFunc(ws, func(w word) bool { return !isAssignment(w) })
	if n < 0 {
		return len(ws)
	}
	return n
}

// isAssignment reports a word that begins with NAME= or NAME+=.
func isAssignment(w word) bool {
	name, _, ok := strings.Cut(w.raw, "=")
	return ok && isName(strings.TrimSuffix(name, "+"))
}
