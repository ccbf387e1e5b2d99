package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// DefaultSizes are the sizes of estimates where none are asked for.
const DefaultSizes = "8:8G:2"

// maxSizes bounds a list of sizes.
const maxSizes = 256

// ParseSizes reads FIRST:LAST:FACTOR, as nccl-tests -b -e -f, in bytes; K, M and G
// are powers of 1024.
func ParseSizes(s string) ([]int64, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q: not FIRST:LAST:FACTOR, such as %s", probe.Excerpt(s), DefaultSizes)
	}
	first, err := parseSize(parts[0])
	if err != nil {
		return nil, err
	}
	last, err := parseSize(parts[1])
	if err != nil {
		return nil, err
	}
	factor, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil || factor < 2 {
		return nil, fmt.Errorf("factor %q: not a whole number of 2 or more", probe.Excerpt(parts[2]))
	}
	if last < first {
		return nil, fmt.Errorf("%q: the last size is below the first", probe.Excerpt(s))
	}
	var out []int64
	for n := first; n <= last && len(out) < maxSizes; n *= factor {
		out = append(out, n)
		if n > math.MaxInt64/factor {
			break
		}
	}
	return out, nil
}

func parseSize(s string) (int64, error) {
	digits, shift := s, 0
	if s != "" {
		if i := strings.IndexByte("KMG", s[len(s)-1]&^0x20); i >= 0 {
			digits, shift = s[:len(s)-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > 1<<50>>shift {
		return 0, fmt.Errorf("size %q: not a number of bytes from 1 to 2^50, with K, M or G", probe.Excerpt(s))
	}
	return n << shift, nil
}
