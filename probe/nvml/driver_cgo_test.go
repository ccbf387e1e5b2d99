//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// TestEveryCallIsMade holds the driver's tables against the lists of calls.
func TestEveryCallIsMade(t *testing.T) {
	system, gpu := systemTable(), gpuTable()
	for _, c := range systemCalls() {
		if system[c.name()] == nil {
			t.Errorf("%s is not made", c.name())
		}
		delete(system, c.name())
	}
	for _, c := range slices.Concat(gpuCalls(), linkCalls(), linkPairCalls(), pairCalls()) {
		if gpu[c.name()] == nil && c.name() != fabricList.function {
			t.Errorf("%s is not made", c.name())
		}
		delete(gpu, c.name())
	}
	if len(system)+len(gpu) > 0 {
		t.Errorf("in no list: %v %v", system, gpu)
	}
	for _, c := range slices.Concat(systemCalls(), gpuCalls(), linkCalls(), linkPairCalls(), pairCalls()) {
		name := strings.TrimPrefix(c.name(), "nvml")
		if !strings.Contains(name, "Get") && c.name() != fabricList.function {
			t.Errorf("%s may change something", c.name())
		}
	}
}

func TestFieldNumber(t *testing.T) {
	word := func(v uint64) (b [8]byte) { binary.NativeEndian.PutUint64(b[:], v); return b }
	half := func(v uint32) (b [8]byte) {
		binary.NativeEndian.PutUint32(b[:], v)
		binary.NativeEndian.PutUint32(b[4:], 0xdeadbeef) // left over from something else
		return b
	}
	for _, c := range []struct {
		kind  gonvml.ValueType
		value [8]byte
		want  fieldAnswer
	}{
		{gonvml.VALUE_TYPE_UNSIGNED_INT, half(math.MaxUint32), fieldAnswer{value: math.MaxUint32}},
		{gonvml.VALUE_TYPE_UNSIGNED_LONG, word(math.MaxUint64), fieldAnswer{value: math.MaxUint64}},
		{gonvml.VALUE_TYPE_UNSIGNED_LONG_LONG, word(1 << 40), fieldAnswer{value: 1 << 40}},
		{gonvml.VALUE_TYPE_SIGNED_LONG_LONG, word(7), fieldAnswer{value: 7}},
		{gonvml.VALUE_TYPE_SIGNED_LONG_LONG, word(math.MaxUint64), fieldAnswer{s: unknownError}},
		{gonvml.VALUE_TYPE_SIGNED_INT, half(7), fieldAnswer{value: 7}},
		{gonvml.VALUE_TYPE_SIGNED_INT, half(math.MaxUint32), fieldAnswer{s: unknownError}},
		{gonvml.VALUE_TYPE_DOUBLE, word(math.Float64bits(26562)), fieldAnswer{value: 26562}},
		{gonvml.VALUE_TYPE_DOUBLE, word(math.Float64bits(0.5)), fieldAnswer{s: unknownError}},
		{99, word(1), fieldAnswer{s: unknownError}},
	} {
		if got := fieldNumber(gonvml.FieldValue{ValueType: uint32(c.kind), Value: c.value}); got != c.want {
			t.Errorf("type %d: %+v, want %+v", c.kind, got, c.want)
		}
	}
	if v, s := text("NVIDIA\x00 H\x01200\xff"+strings.Repeat("é", maxLine), gonvml.SUCCESS); s != success || !strings.HasPrefix(v.(string), "NVIDIA H200?é") || len(v.(string)) > maxLine {
		t.Errorf("%q", v)
	}
	f := newFabricInfo(3, 0, 7, [16]uint8{0xab, 15: 1}, nil, nil)
	if f.cluster != "ab000000-0000-0000-0000-000000000001" || f.health.Known() {
		t.Errorf("%+v", f)
	}
}
