package ncclenv

import (
	"cmp"
	"strconv"
	"strings"
)

// Newest is the newest NCCL whose variables are all in the table.
const Newest = "2.31.2"

// oldest is the first NCCL whose variables the table's sources list.
const oldest = "2.3.5"

// release is an NCCL version taken apart; patch is -1 where it is not stated.
type release struct{ major, minor, patch int }

// parseRelease reads "2.28.3", "2.28", "v2.28.3-1" and "2.28.3+cuda12.9".
func parseRelease(s string) (release, bool) {
	s = strings.TrimPrefix(s, "v")
	if i := strings.IndexAny(s, "+-"); i >= 0 {
		s = s[:i]
	}
	f := strings.Split(s, ".")
	if len(f) < 2 || len(f) > 4 {
		return release{}, false
	}
	n := [3]int{0, 0, -1}
	for i := range min(len(f), 3) {
		v, err := strconv.ParseUint(f[i], 10, 16)
		if err != nil {
			return release{}, false
		}
		n[i] = int(v)
	}
	return release{n[0], n[1], n[2]}, n[0] >= 2
}

// compare orders two versions; sure is false when a patch level that is not
// stated decides.
func (r release) compare(o release) (c int, sure bool) {
	if c := cmp.Or(cmp.Compare(r.major, o.major), cmp.Compare(r.minor, o.minor)); c != 0 {
		return c, true
	}
	if r.patch < 0 && o.patch > 0 {
		return 0, false
	}
	return cmp.Compare(max(r.patch, 0), max(o.patch, 0)), true
}

// reached reports whether version is at least bound; a version that cannot be
// read counts as the newest.
func reached(version, bound string) bool {
	v, ok := parseRelease(version)
	b, valid := parseRelease(bound)
	if !ok || !valid {
		return true
	}
	c, _ := v.compare(b)
	return c >= 0
}
