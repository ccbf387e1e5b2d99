package nvml

import (
	"fmt"
	"math"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// shape is how an answer stands in a recording. read returns what it wants when
// it gets something else; write is its inverse.
type shape[T any] struct {
	read  func(*value) (v T, want string)
	write func(T) any
}

func asIs[T any](v T) any { return v }

var (
	line    = shape[string]{oneLine, asIs[string]}
	whole   = shape[int]{number, asIs[int]}
	counter = shape[uint64]{count, asIs[uint64]}

	busMember = shape[string]{busIDMember, func(s string) any { return map[string]any{"busId": s} }}
	gpuShare  = shape[int]{gpuMember, func(n int) any { return map[string]any{"gpu": n} }}
	bar1Total = shape[uint64]{bar1Member, func(n uint64) any { return map[string]any{"bar1Total": n} }}

	fabricObject  = shape[fabricInfo]{fabricObjectMembers, writeFabricObject}
	fabricMembers = shape[fabricInfo]{fabricListMembers, writeFabricList}
)

// numbers is a list of n whole numbers.
func numbers(n int) shape[[]int] {
	return shape[[]int]{
		func(v *value) ([]int, string) {
			if l, ok := v.integers(); ok && len(l) == n {
				return l, ""
			}
			return make([]int, n), fmt.Sprintf("%d whole numbers", n)
		},
		asIs[[]int],
	}
}

func oneLine(v *value) (string, string) {
	s, ok := v.text()
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(s) > maxLine {
		return "", "a line of text"
	}
	return s, ""
}

// maxLine is longer than any text of NVML.
const maxLine = 256

func number(v *value) (int, string) {
	if n, ok := v.integer(); ok {
		return n, ""
	}
	return 0, "a whole number"
}

func count(v *value) (uint64, string) {
	if n, ok := v.unsigned(); ok {
		return n, ""
	}
	return 0, "a count"
}

func busIDMember(v *value) (string, string) {
	if v.kind == '{' && v.object["busId"] != nil {
		if s, want := oneLine(v.object["busId"]); want == "" {
			return s, ""
		}
	}
	return "", "an object with busId"
}

// gpuMember reads {"gpu": percent, "memory": percent}.
func gpuMember(v *value) (int, string) {
	if v.kind == '{' && v.object["gpu"] != nil {
		if n, ok := v.object["gpu"].integer(); ok {
			return n, ""
		}
	}
	return 0, "an object with gpu"
}

// bar1Member reads {"bar1Total": bytes, "bar1Free": bytes, "bar1Used": bytes}.
func bar1Member(v *value) (uint64, string) {
	if v.kind == '{' && v.object["bar1Total"] != nil {
		if n, ok := v.object["bar1Total"].unsigned(); ok {
			return n, ""
		}
	}
	return 0, "an object with bar1Total"
}

func fabricListMembers(v *value) (fabricInfo, string) {
	l, ok := v.integers()
	if !ok || len(l) < 2 {
		return fabricInfo{}, "a list of state, status, clique id, health mask"
	}
	f := fabricInfo{state: l[0], status: l[1]}
	for i, p := range []*probe.Opt[uint32]{&f.clique, &f.health} {
		if len(l) <= 2+i {
			break
		}
		n := l[2+i]
		if n < 0 || n > math.MaxUint32 {
			return f, "unsigned 32-bit numbers for clique id and health mask"
		}
		*p = probe.Some(uint32(n))
	}
	return f, ""
}

func writeFabricList(f fabricInfo) any {
	l := []int{f.state, f.status}
	for _, p := range []probe.Opt[uint32]{f.clique, f.health} {
		n, ok := p.Get()
		if !ok {
			break
		}
		l = append(l, int(n))
	}
	return l
}

// fabricObjectMembers reads the members of nvmlGpuFabricInfo_v3_t, of which
// older structs lack the last two.
func fabricObjectMembers(v *value) (f fabricInfo, want string) {
	const object = "an object with state and status"
	if v.kind != '{' || v.object["state"] == nil || v.object["status"] == nil {
		return f, object
	}
	var ok1, ok2 bool
	f.state, ok1 = v.object["state"].integer()
	f.status, ok2 = v.object["status"].integer()
	if !ok1 || !ok2 {
		return f, object
	}
	if c := v.object["clusterUuid"]; c != nil {
		if f.cluster, want = oneLine(c); want != "" {
			return f, "a line of text for clusterUuid"
		}
	}
	for name, p := range map[string]*probe.Opt[uint32]{"cliqueId": &f.clique, "healthMask": &f.health} {
		if m := v.object[name]; m != nil {
			n, ok := m.unsigned()
			if !ok || n > math.MaxUint32 {
				return f, "unsigned 32-bit numbers for cliqueId and healthMask"
			}
			*p = probe.Some(uint32(n))
		}
	}
	if m := v.object["healthSummary"]; m != nil {
		n, ok := m.integer()
		if !ok {
			return f, "a whole number for healthSummary"
		}
		f.summary = probe.Some(n)
	}
	return f, ""
}

func writeFabricObject(f fabricInfo) any {
	o := map[string]any{"state": f.state, "status": f.status}
	if f.cluster != "" {
		o["clusterUuid"] = f.cluster
	}
	for name, p := range map[string]probe.Opt[uint32]{"cliqueId": f.clique, "healthMask": f.health} {
		if n, ok := p.Get(); ok {
			o[name] = n
		}
	}
	if n, ok := f.summary.Get(); ok {
		o["healthSummary"] = n
	}
	return o
}

// failure is how a call that failed stands in a recording.
func failure(s status) any {
	return map[string]any{"error": s.name(), "code": int(s)}
}
