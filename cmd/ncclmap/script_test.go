package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ncclmap/ncclmap/fixtures"
)

// bin holds both programs as a user has them, built once for all tests here.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ncclmap-bin")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin = dir
		for _, p := range []string{"ncclmap", "ncclmap-graphviz"} {
			if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, p), "../"+p).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", p, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

func TestScripts(t *testing.T) {
	cache := t.TempDir() // one cache for the layout engine: compiling it takes a second
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") == "1",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("XDG_CACHE_HOME", cache)
			return nil
		},
	})
}

// The commands of the README run as they stand there, from the top folder, but
// for the folder they write to: out/ is the user's.
func TestREADME(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n, out := 0, t.TempDir()
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			if command == "" || command == "make test" { // this test is part of it
				continue
			}
			n++
			cmd := exec.Command("sh", "-ec", strings.ReplaceAll(command, " out/", " "+out+"/"))
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "OUT="+out)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, said)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d commands found", n)
	}
}

// Every example goes through the whole program, drawing included.
func TestEveryExampleReports(t *testing.T) {
	cache := t.TempDir()
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range fixtures.Names() {
		dir := filepath.Join(t.TempDir(), name)
		cmd := exec.Command(filepath.Join(bin, "ncclmap"), "report", "example:"+name, "-d", dir, "--fail-on", "never")
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
