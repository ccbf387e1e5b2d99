package graphviz

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// home returns a folder that only this user can write, whatever the umask.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPrivateCacheKeeps(t *testing.T) {
	base := filepath.Join(home(t), ".cache") // made if missing
	want := filepath.Join(base, "ncclmap", "graphviz")
	for range 2 {
		dir, cleanup, err := PrivateCache(base)
		if err != nil || dir != want {
			t.Fatalf("PrivateCache(%s) = %s, %v; want %s", base, dir, err, want)
		}
		cleanup()
	}
	if info, err := os.Stat(want); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("after cleanup: %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(want)
	if err != nil || len(entries) != 0 {
		t.Errorf("left in it: %v, %v", entries, err)
	}

	// A home reached through a link is as good as the link's target.
	link := filepath.Join(home(t), "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	if dir, _, err := PrivateCache(link); err != nil || dir != want {
		t.Errorf("through a link: %s, %v; want %s", dir, err, want)
	}
}

func TestPrivateCacheFallsBack(t *testing.T) {
	mkdir := func(t *testing.T, base string, mode os.FileMode) {
		t.Helper()
		dir := filepath.Join(base, "ncclmap", "graphviz")
		// Chmod, since the umask takes bits from what Mkdir is given.
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, base string) string // returns the user cache folder
	}{
		{"none", func(*testing.T, string) string { return "" }},
		{"relative", func(*testing.T, string) string { return "cache" }},
		{"below a file", func(t *testing.T, base string) string {
			file := filepath.Join(base, "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(file, "cache")
		}},
		{"not writable", func(t *testing.T, base string) string {
			if os.Getuid() == 0 {
				return "/proc/self" // there not even root can make a folder
			}
			mkdir(t, base, 0o500)
			return base
		}},
		{"group can write", func(t *testing.T, base string) string { mkdir(t, base, 0o720); return base }},
		{"others can write", func(t *testing.T, base string) string { mkdir(t, base, 0o702); return base }},
		{"sticky", func(t *testing.T, base string) string { mkdir(t, base, 0o777|os.ModeSticky); return base }},
		{"others can write above", func(t *testing.T, base string) string {
			mkdir(t, base, 0o700)
			if err := os.Chmod(base, 0o777); err != nil {
				t.Fatal(err)
			}
			return base
		}},
		{"link", func(t *testing.T, base string) string {
			target := home(t)
			if err := errors.Join(os.Mkdir(filepath.Join(base, "ncclmap"), 0o700), os.Symlink(target, filepath.Join(base, "ncclmap", "graphviz"))); err != nil {
				t.Fatal(err)
			}
			return base
		}},
		{"link above", func(t *testing.T, base string) string {
			if err := os.Symlink(home(t), filepath.Join(base, "ncclmap")); err != nil {
				t.Fatal(err)
			}
			return base
		}},
		{"other owner", func(t *testing.T, base string) string {
			mkdir(t, base, 0o700)
			chown(t, filepath.Join(base, "ncclmap", "graphviz"))
			return base
		}},
		{"other user's home", func(t *testing.T, base string) string {
			chown(t, base)
			return filepath.Join(base, ".cache")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := home(t)
			cache := tc.prepare(t, base)
			dir, cleanup, err := PrivateCache(cache)
			if err != nil {
				t.Fatal(err)
			}
			if cache != "" && strings.HasPrefix(dir, base) {
				t.Errorf("took %s", dir)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("%s: %v, %v", dir, info, err)
			}
			cleanup()
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after cleanup: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(base, ".cache")); err == nil {
				t.Error("made a folder in another user's home")
			}
		})
	}
}

// chown gives a folder to another user, which only root can.
func chown(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}

func TestPrivateCacheFails(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(home(t), "missing"))
	if dir, _, err := PrivateCache(""); err == nil || !strings.Contains(err.Error(), "user cache") || !strings.Contains(err.Error(), "temporary folder") {
		t.Errorf("got %q, %v", dir, err)
	}
}
