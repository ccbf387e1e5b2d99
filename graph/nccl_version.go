package graph

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// NCCLVersion is an NCCL version as NCCL numbers it since 2.9: 23007 is 2.30.7.
// The zero value stands for [NewestNCCL].
type NCCLVersion int

// NewestNCCL is the newest version that is modelled. What changed between
// versions is known from 2.21.5 on; older ones are taken as that.
const NewestNCCL NCCLVersion = 23007

// OldestNCCL is the first version that is modelled: NVLSTree came with it.
const OldestNCCL NCCLVersion = 21800

// Modelled refuses a version that is older than the model.
func (v NCCLVersion) Modelled() error {
	if v.orNewest() < OldestNCCL {
		return fmt.Errorf("NCCL %v is not modelled: %v to %v are", v, OldestNCCL, NewestNCCL)
	}
	return nil
}

// ParseNCCLVersion reads "2.30.7", with or without what a build appends
// ("2.28.3+cuda13.0", "2.27.7-1").
func ParseNCCLVersion(s string) (NCCLVersion, error) {
	core, _, _ := strings.Cut(s, "+")
	core, _, _ = strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > 99 || i >= len(n) || len(parts) < 2 {
			return 0, fmt.Errorf("NCCL version %q: not like 2.30.7", s)
		}
		n[i] = v
	}
	if n[0] != 2 {
		return 0, fmt.Errorf("NCCL version %q: only NCCL 2 is modelled", s)
	}
	return NCCLVersion(n[0]*10000 + n[1]*100 + n[2]), nil
}

func (v NCCLVersion) String() string {
	v = v.orNewest()
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

func (v NCCLVersion) orNewest() NCCLVersion { return cmp.Or(v, NewestNCCL) }

// AtLeast reports whether the version is minor.patch of NCCL 2 or newer.
func (v NCCLVersion) AtLeast(minor, patch int) bool {
	return v.orNewest() >= NCCLVersion(20000+100*minor+patch)
}
