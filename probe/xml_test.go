package probe

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestXMLStarts(t *testing.T) {
	for _, c := range []struct {
		in, doctype string
		want        bool
	}{
		{"<system>", "", true},
		{"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- a -- b -->\n<system version=\"1\">", "", true},
		{"<system", "", true},
		{"<systems>", "", false},
		{"<!-- <system>", "", false},
		{"<!DOCTYPE system SYSTEM \"a.dtd\">\n<system/>", "", false},
		{"<!DOCTYPE system SYSTEM \"a.dtd\">\n<system/>", "system", true},
		{"<!DOCTYPE html>\n<system/>", "system", false},
		{"text <system>", "", false},
		{"", "", false},
	} {
		if got := XMLStarts([]byte(c.in), "system", c.doctype); got != c.want {
			t.Errorf("%q, document type %q: %v", c.in, c.doctype, got)
		}
	}
}

func TestXMLReader(t *testing.T) {
	read := func(text string) error {
		r := XMLReader{File: "f.xml", Root: "root", MaxDepth: 3, MaxElements: 5, Others: map[string]string{"graphs": "graphs, not a root"}}
		r.Reset(strings.NewReader(text), 10)
		for {
			if _, _, _, err := r.Next(); err != nil {
				return err
			}
		}
	}
	for text, want := range map[string]string{
		"<?xml version=\"1.0\"?>\n<root><a>x</a>\n<b/></root>\n": "EOF",
		"":                           "f.xml:10:1: no <root> element",
		"<top/>":                     "f.xml:10:1: root element is <top>, want <root>",
		"<graphs/>":                  "f.xml:10:1: graphs, not a root",
		"<root/>\n<root/>":           "f.xml:11:1: a second root element <root>",
		"<root>\n</a>":               "f.xml:11:1: </a> where </root> is due (opened on line 10)",
		"<root/></root>":             "f.xml:10:8: </root> closes nothing",
		"<root><a><b><c/>":           "f.xml:10:13: elements are nested deeper than 3",
		"<root><a/><a/><a/><a/><a/>": "f.xml:10:23: more than 5 elements",
		"<root>\n<a>":                "f.xml:11:4: the document is cut off inside <a> of line 11",
		"<root>\n<a b=":              "f.xml:11:6: the document is cut off inside <root> of line 10",
	} {
		if err := read(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	// Names as the format compares them, and a document that begins anew.
	r := XMLReader{Root: "root", MaxDepth: 1, MaxElements: 1, Name: func(n xml.Name) string { return strings.ToLower(n.Local) }}
	for range 2 {
		r.Reset(strings.NewReader("<Root></ROOT>"), 1)
		for range 2 {
			if _, _, _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
	}
}
