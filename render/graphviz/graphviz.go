package graphviz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// engineName is what `make build` names the engine.
const engineName = "ncclmap-graphviz"

// maxMessage bounds how much of the engine's standard error an error quotes:
// Graphviz repeats the offending text, which may be as long as the document.
const maxMessage = 500

// ErrNoEngine says that the engine is not installed.
var ErrNoEngine = errors.New("no Graphviz engine")

// Engine is an installed engine.
type Engine struct {
	Path string // the program
	// CacheDir is where the engine keeps its compiled code and loads it from:
	// an absolute path that no other user can write, see [PrivateCache].
	CacheDir string
}

// Find returns the engine that lies beside executable, the absolute path of the
// running program. It looks nowhere else: a program of that name elsewhere, in
// PATH or the working directory, need not be ours. CacheDir is left to the
// caller.
func Find(executable string) (Engine, error) {
	program, err := filepath.EvalSymlinks(executable)
	if !filepath.IsAbs(executable) {
		err = errors.New("not an absolute path")
	}
	if err != nil {
		return Engine{}, fmt.Errorf("%w: cannot look beside %q: %w", ErrNoEngine, executable, err)
	}
	path := filepath.Join(filepath.Dir(program), engineName)
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0) {
		err = fmt.Errorf("%s is not a program", path)
	}
	if err != nil {
		return Engine{}, fmt.Errorf("%w beside %s: %w; `make build` makes it", ErrNoEngine, program, err)
	}
	return Engine{Path: path}, nil
}

// Render lays out a DOT document and returns it in the given format: "svg",
// "json" (Graphviz's own, with drawing operations) or "dot" (with positions).
// The engine is killed when ctx ends; without a deadline it may run for as long
// as the layout takes.
func (e Engine) Render(ctx context.Context, dotSource []byte, format string) ([]byte, error) {
	out, err := e.render(ctx, dotSource, format)
	if err != nil {
		return nil, fmt.Errorf("graphviz %s: %w", format, err)
	}
	return out, nil
}

func (e Engine) render(ctx context.Context, dotSource []byte, format string) ([]byte, error) {
	// An empty TMPDIR would mean the shared /tmp, where anybody can leave
	// native code for the engine to load.
	if !filepath.IsAbs(e.CacheDir) {
		return nil, fmt.Errorf("cache folder %q: not an absolute path", e.CacheDir)
	}
	cmd := exec.CommandContext(ctx, e.Path, "-T", format)
	cmd.Env = []string{"TMPDIR=" + e.CacheDir, "HOME=" + e.CacheDir}
	cmd.Stdin = bytes.NewReader(dotSource)
	var stdout bytes.Buffer
	var stderr head
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A grandchild could hold the pipes open after the kill.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return stdout.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("stopped %s: %w", e.Path, context.Cause(ctx))
	}
	if message := stderr.message(); message != "" {
		return nil, errors.New(message)
	}
	return nil, fmt.Errorf("run %s: %w", e.Path, err)
}

// head keeps the beginning of what is written to it.
type head struct {
	kept []byte
	more bool
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), maxMessage-len(h.kept))
	h.kept = append(h.kept, p[:n]...)
	h.more = h.more || n < len(p)
	return len(p), nil
}

// message is what was kept as one line, without the engine's name.
func (h *head) message() string {
	s := strings.ToValidUTF8(strings.TrimSpace(string(h.kept)), "")
	s = strings.TrimPrefix(s, engineName+": ")
	if h.more {
		s += " …"
	}
	return s
}
