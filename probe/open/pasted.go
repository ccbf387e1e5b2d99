package open

import (
	"bufio"
	"bytes"
	"html"
	"io"
	"regexp"
	"strings"
)

// isDocument reports a text that begins as XML or JSON does. In it a line may begin
// with ">", and an escape is part of a value.
func isDocument(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("<?xml")) || bytes.HasPrefix(head, []byte("<!"))
}

var (
	quoteMark = regexp.MustCompile(`^[ \t]{0,3}(?:> ?)+`)
	escape    = regexp.MustCompile(`&(?:lt|gt|amp|quot|nbsp|#[0-9]{1,5}|#x[0-9a-fA-F]{1,4});`)
	fenceMark = regexp.MustCompile("^[ \t]{0,3}(?:```|~~~)")
)

// unpaste takes off what a mail, a ticket or a web page put around a text of which
// head is the beginning: quotation marks before the lines, code fences, and the
// escapes of HTML. Lines keep their numbers.
func unpaste(head []byte, r io.Reader) io.Reader {
	if isDocument(head) {
		return r
	}
	p := &pasted{
		quoted:  bytes.Count(head, []byte("\n>")) > 2,
		fenced:  bytes.Contains(head, []byte("```")) || bytes.Contains(head, []byte("~~~")),
		escaped: escape.Match(head),
	}
	if !p.quoted && !p.fenced && !p.escaped {
		return r
	}
	p.r, p.begin = bufio.NewReaderSize(r, 64<<10), true
	return p
}

type pasted struct {
	quoted, fenced, escaped bool

	r     *bufio.Reader
	begin bool // the next piece begins a line
	line  []byte
}

func (p *pasted) Read(b []byte) (int, error) {
	for len(p.line) == 0 {
		line, err := p.r.ReadSlice('\n') // a long line comes in pieces
		if len(line) == 0 {
			return 0, err
		}
		p.line = p.clean(line)
	}
	n := copy(b, p.line)
	p.line = p.line[n:]
	return n, nil
}

// clean may return nothing.
func (p *pasted) clean(line []byte) []byte {
	begin := p.begin
	p.begin = line[len(line)-1] == '\n'
	if p.escaped && bytes.IndexByte(line, '&') >= 0 {
		line = []byte(html.UnescapeString(string(line)))
	}
	if !begin {
		return line
	}
	if p.quoted {
		line = line[len(quoteMark.Find(line)):]
	}
	if p.fenced && fenceMark.Match(line) {
		return line[len(bytes.TrimRight(line, "\r\n")):]
	}
	return line
}

// The elements that hold a document of their own within a text; what nvidia-smi
// -x prints is found by its reader.
var embedded = regexp.MustCompile(`(?m)^[ \t]*<(system|graphs|topology)[ >\r\n]`)

// takeDocuments takes the XML documents out of a text in which they stand between
// other things, as a terminal shows them. Documents and rest keep the numbers of
// their lines.
func takeDocuments(text []byte) (documents [][]byte, rest []byte) {
	const most = 64
	rest = text
	if bytes.IndexByte(text, '<') < 0 {
		return nil, rest
	}
	for from := 0; len(documents) < most; {
		m := embedded.FindSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		start, end := from+m[0], len(text)
		closing := []byte("</" + string(text[from+m[2]:from+m[3]]) + ">")
		if i := bytes.Index(text[start:], closing); i >= 0 {
			end = start + i + len(closing)
		}
		if len(documents) == 0 {
			rest = bytes.Clone(text)
		}
		documents = append(documents, append(blankLines(text[:start]), text[start:end]...))
		for i := start; i < end; i++ {
			if rest[i] != '\n' {
				rest[i] = ' '
			}
		}
		from = end
	}
	return documents, rest
}

func blankLines(b []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(b, []byte("\n"))) }

// straight are the quotation marks that chat programs and word processors put in
// the place of plain ones; as the value of an attribute they are no XML.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "″", `"`, "‘", "'", "’", "'", "‚", "'")

var curlyValue = regexp.MustCompile(`=[ \t]*[“”„″‘’‚]`)

// straighten makes the quotation marks of an XML document plain.
func straighten(text []byte) []byte {
	if !curlyValue.Match(text) {
		return text
	}
	return []byte(straight.Replace(string(text)))
}
