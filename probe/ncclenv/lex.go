package ncclenv

import "strings"

// word is one word of a shell text. Nothing is expanded: a word that a shell
// would expand is not known.
type word struct {
	text   string // without quotes; of the parts that stand in the text
	raw    string
	line   int
	known  bool
	quoted bool
	tilde  bool
}

// tokenKind is what the lexer found.
type tokenKind int

const (
	tokenWord     tokenKind = iota
	tokenEnd                // of a command: newline ; & |
	tokenAnd                // &&
	tokenOr                 // ||
	tokenOpen               // (
	tokenClose              // )
	tokenRedirect           // < or >, a word follows
	tokenEOF
)

// sbatch begins a comment that is an option line to Slurm.
const sbatch = "#SBATCH "

// lexer splits a shell text into words and operators.
type lexer struct {
	src   string
	pos   int
	line  int
	here  []hereDoc                   // documents that begin after this line
	batch func(line int, text string) // gets #SBATCH lines
}

type hereDoc struct {
	end  string
	tabs bool // <<-
}

// openError is a quote or substitution that the text does not close.
type openError struct {
	line int
	what string
}

func (l *lexer) peek(i int) byte {
	if l.pos+i < len(l.src) {
		return l.src[l.pos+i]
	}
	return 0
}

// next returns the next token.
func (l *lexer) next() (tokenKind, word, *openError) {
	l.skipBlanks()
	for strings.HasPrefix(l.src[l.pos:], "<<") && l.peek(2) != '<' {
		if err := l.hereDoc(); err != nil {
			return tokenEOF, word{}, err
		}
		l.skipBlanks()
	}
	if l.pos >= len(l.src) {
		return tokenEOF, word{}, nil
	}
	c := l.src[l.pos]
	if kind, isOperator := operators[c]; isOperator {
		l.pos++
		switch {
		case c == '\n':
			l.line++
			l.skipHere()
		case c == '&' && l.peek(0) == c:
			l.pos++
			kind = tokenAnd
		case c == '|' && l.peek(0) == c:
			l.pos++
			kind = tokenOr
		case kind == tokenRedirect:
			for l.pos < len(l.src) && strings.IndexByte("<>&|", l.src[l.pos]) >= 0 {
				l.pos++
			}
		}
		return kind, word{}, nil
	}
	w, err := l.word()
	return tokenWord, w, err
}

var operators = map[byte]tokenKind{
	'\n': tokenEnd, ';': tokenEnd, '&': tokenEnd, '|': tokenEnd,
	'(': tokenOpen, ')': tokenClose, '<': tokenRedirect, '>': tokenRedirect,
}

// hereDoc reads << and the word that ends the document behind this line.
func (l *lexer) hereDoc() *openError {
	l.pos += 2
	doc := hereDoc{tabs: l.peek(0) == '-'}
	if doc.tabs {
		l.pos++
	}
	l.skipBlanks()
	w, err := l.word()
	if doc.end = w.text; w.raw != "" {
		l.here = append(l.here, doc)
	}
	return err
}

// skipBlanks skips blanks, continued lines and comments.
func (l *lexer) skipBlanks() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case c == '\\' && l.peek(1) == '\n':
			l.pos += 2
			l.line++
		case c == '\\' && l.peek(1) == '\r' && l.peek(2) == '\n':
			l.pos += 3
			l.line++
		case c == '#':
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				end = len(l.src) - l.pos
			}
			if text, ok := strings.CutPrefix(l.src[l.pos:l.pos+end], sbatch); ok {
				l.batch(l.line, strings.TrimSpace(text))
			}
			l.pos += end
		default:
			return
		}
	}
}

// skipHere skips the documents that begin on this line.
func (l *lexer) skipHere() {
	for _, doc := range l.here {
		for l.pos < len(l.src) {
			text, _, _ := strings.Cut(l.src[l.pos:], "\n")
			l.pos = min(l.pos+len(text)+1, len(l.src))
			l.line++
			text = strings.TrimSuffix(text, "\r")
			if doc.tabs {
				text = strings.TrimLeft(text, "\t")
			}
			if text == doc.end {
				break
			}
		}
	}
	l.here = l.here[:0]
}

// word reads to the next blank or operator that is not quoted.
func (l *lexer) word() (word, *openError) {
	w := word{line: l.line, known: true}
	start := l.pos
	var text strings.Builder
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		if c == '(' && l.pos > start && l.src[l.pos-1] == '=' { // an array
			w.known = false
			if err := l.skip(')', "("); err != nil {
				return w, err
			}
			continue
		}
		if strings.IndexByte(" \t\r\n;&|()<>", c) >= 0 {
			break
		}
		switch c {
		case '\\':
			if l.peek(1) == '\n' {
				l.line++
			} else if l.pos+1 < len(l.src) {
				text.WriteByte(l.src[l.pos+1])
				w.quoted = true
			}
			l.pos = min(l.pos+2, len(l.src))
		case '\'':
			w.quoted = true
			end := strings.IndexByte(l.src[l.pos+1:], '\'')
			if end < 0 {
				return w, &openError{l.line, "'"}
			}
			part := l.src[l.pos+1 : l.pos+1+end]
			text.WriteString(part)
			l.line += strings.Count(part, "\n")
			l.pos += end + 2
		case '"':
			w.quoted = true
			if err := l.doubleQuoted(&w, &text); err != nil {
				return w, err
			}
		case '$', '`':
			expands, err := l.expansion()
			if err != nil {
				return w, err
			}
			if expands {
				w.known = false
			} else {
				text.WriteByte('$')
			}
		case '~':
			if l.pos == start || l.src[l.pos-1] == '=' || l.src[l.pos-1] == ':' {
				w.known, w.tilde = false, true
			}
			text.WriteByte(c)
			l.pos++
		default:
			text.WriteByte(c)
			l.pos++
		}
	}
	w.text, w.raw = text.String(), l.src[start:l.pos]
	return w, nil
}

func (l *lexer) doubleQuoted(w *word, text *strings.Builder) *openError {
	first := l.line
	l.pos++
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; c {
		case '"':
			l.pos++
			return nil
		case '\\':
			next := l.peek(1)
			if next == '\n' {
				l.line++
			} else if strings.IndexByte("$`\"\\", next) >= 0 && next != 0 {
				text.WriteByte(next)
			} else {
				text.WriteString(l.src[l.pos:min(l.pos+2, len(l.src))])
			}
			l.pos = min(l.pos+2, len(l.src))
		case '$', '`':
			if l.peek(1) == '\'' || l.peek(1) == '"' { // a plain $ here
				text.WriteByte(c)
				l.pos++
				continue
			}
			expands, err := l.expansion()
			if err != nil {
				return err
			}
			if expands {
				w.known = false
			} else {
				text.WriteByte('$')
			}
		default:
			if c == '\n' {
				l.line++
			}
			text.WriteByte(c)
			l.pos++
		}
	}
	return &openError{first, `"`}
}

// expansion skips what begins with $ or `. It is false for a $ that stands for
// itself.
func (l *lexer) expansion() (bool, *openError) {
	if l.src[l.pos] == '`' {
		return true, l.skip('`', "`")
	}
	l.pos++
	switch c := l.peek(0); {
	case c == '(':
		return true, l.skip(')', "$(")
	case c == '{':
		return true, l.skip('}', "${")
	case c == '\'' || c == '"': // $'…' and $"…": the quotes are read next
		return true, nil
	case c != 0 && strings.IndexByte("@*#?-$!", c) >= 0 || c >= '0' && c <= '9':
		l.pos++
		return true, nil
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		for l.pos < len(l.src) && isName("a"+l.src[l.pos:l.pos+1]) {
			l.pos++
		}
		return true, nil
	}
	return false, nil
}

// skip goes behind the end of a bracket or substitution, past what is nested
// and quoted in it.
func (l *lexer) skip(end byte, what string) *openError {
	first := l.line
	begin := l.src[l.pos]
	l.pos++
	quote := byte(0)
	for depth := 1; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
		case c == '\\' && quote != '\'':
			if l.peek(1) == '\n' {
				l.line++
			}
			l.pos++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == end:
			if depth--; depth == 0 {
				l.pos++
				return nil
			}
		case c == begin:
			depth++
		case c == '\'' || c == '"':
			quote = c
		}
	}
	l.pos = min(l.pos, len(l.src))
	return &openError{first, what}
}
