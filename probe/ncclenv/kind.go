package ncclenv

import (
	"slices"
	"strings"
)

// NameKind says whose a name is.
type NameKind string

// The kinds.
const (
	KindCore      NameKind = "core"      // a variable of NCCL itself, of any version
	KindPlugin    NameKind = "plugin"    // of a network, tuner or profiler plugin
	KindTool      NameKind = "tool"      // of nccl-tests
	KindLabel     NameKind = "label"     // says what an image holds
	KindBuild     NameKind = "build"     // for building against NCCL
	KindFramework NameKind = "framework" // of PyTorch
	KindUnknown   NameKind = "unknown"
)

// foreign are names that others read, one by one or by how they begin; a name
// that ends in _ stands for all that begin so.
var foreign = []struct {
	name string
	kind NameKind
	of   string
}{
	{"NCCL_ASYNC_ERROR_HANDLING", KindFramework, "PyTorch before 2.2, now TORCH_NCCL_ASYNC_ERROR_HANDLING"},
	{"NCCL_BLOCKING_WAIT", KindFramework, "PyTorch before 2.2, now TORCH_NCCL_BLOCKING_WAIT"},
	{"NCCL_DESYNC_DEBUG", KindFramework, "PyTorch before 2.2, now TORCH_NCCL_DESYNC_DEBUG"},
	{"NCCL_DIR", KindBuild, "builds against NCCL"},
	{"NCCL_ENABLE_TIMING", KindFramework, "PyTorch before 2.2, now TORCH_NCCL_ENABLE_TIMING"},
	{"NCCL_EXTERNAL", KindBuild, "the build of PyTorch"},
	{"NCCL_FASTRAK_", KindPlugin, "Google's FasTrak (TCPXO) plugin"},
	{"NCCL_GPUDIRECTTCPX_", KindPlugin, "Google's GPUDirect-TCPX plugin"},
	{"NCCL_HDR_PATH", KindBuild, "the build of TensorFlow"},
	{"NCCL_HOME", KindBuild, "builds against NCCL"},
	{"NCCL_IBEXT_", KindPlugin, "NVIDIA's rdma-sharp plugin"},
	{"NCCL_INCLUDE", KindBuild, "builds against NCCL"},
	{"NCCL_INCLUDE_DIR", KindBuild, "builds against NCCL"},
	{"NCCL_INCLUDE_DIRS", KindBuild, "builds against NCCL"},
	{"NCCL_INCLUDE_PATH", KindBuild, "builds against NCCL"},
	{"NCCL_INSPECTOR_", KindPlugin, "NCCL's inspector (profiler plugin)"},
	{"NCCL_INSTALL_PATH", KindBuild, "the build of TensorFlow"},
	{"NCCL_LIB", KindBuild, "builds against NCCL"},
	{"NCCL_LIBRARIES", KindBuild, "builds against NCCL"},
	{"NCCL_LIBRARY", KindBuild, "builds against NCCL"},
	{"NCCL_LIBRARY_PATH", KindBuild, "builds against NCCL"},
	{"NCCL_LIB_DIR", KindBuild, "builds against NCCL and Google's start scripts"},
	{"NCCL_LIB_PATH", KindBuild, "builds against NCCL"},
	{"NCCL_PATH", KindBuild, "builds against NCCL"},
	{"NCCL_PROFILER_CE_", KindPlugin, "NCCL's example profiler plugin"},
	{"NCCL_PROFILE_", KindPlugin, "NCCL's example profiler plugin"},
	{"NCCL_ROOT", KindBuild, "builds against NCCL"},
	{"NCCL_ROOT_DIR", KindBuild, "builds against NCCL"},
	{"NCCL_SHARP_", KindPlugin, "NVIDIA's rdma-sharp plugin"},
	{"NCCL_SHIMNET_", KindPlugin, "Google's network plugins"},
	{"NCCL_TESTS_", KindTool, "nccl-tests"},
	{"NCCL_TUNER_CONFIG_", KindPlugin, "tuner plugins"},
	{"NCCL_UCX_", KindPlugin, "the UCX network of NVIDIA's rdma-sharp plugin"},
	{"NCCL_VERSION", KindLabel, "no library: CUDA images state with it what they hold"},
	{"NV_LIBNCCL_", KindLabel, "no library: CUDA images state with it what they hold"},
	{"OFI_NCCL_", KindPlugin, "the aws-ofi-nccl plugin"},
	{"TORCH_NCCL_", KindFramework, "PyTorch"},
}

// Kind says whose a name is.
func Kind(name string) NameKind {
	kind, _ := kindOf(name)
	return kind
}

// ReadElsewhere tells who reads a name that NCCL does not read.
func ReadElsewhere(name string) (by string, ok bool) {
	kind, by := kindOf(name)
	return by, kind != KindCore && kind != KindUnknown
}

func kindOf(name string) (kind NameKind, by string) {
	if _, ok := Lookup(name); ok {
		return KindCore, "NCCL"
	}
	for _, f := range foreign {
		if name == f.name || strings.HasSuffix(f.name, "_") && strings.HasPrefix(name, f.name) {
			return f.kind, f.of
		}
	}
	return KindUnknown, ""
}

// Nearest finds the variable that a name nobody knows probably stands for: the
// one whose alias it is, or the nearest within two edits (a letter left out,
// put in, replaced, or two exchanged).
func Nearest(name string) (string, bool) {
	if kind, _ := kindOf(name); kind != KindUnknown {
		return "", false
	}
	best, at := "", 3
	for _, v := range table {
		if slices.Contains(v.Aliases, name) {
			return v.Name, true
		}
		if d := edits(name, v.Name, at-1); d < at {
			best, at = v.Name, d
		}
	}
	return best, best != ""
}

// misspelt reports a variable's name with one edit in its NCCL_. Another first
// letter is another library (HCCL_, RCCL_, …), not a slip.
func misspelt(name string) bool {
	const prefix = "NCCL_"
	if len(name) <= len(prefix) || strings.HasPrefix(name[1:], prefix[1:]) {
		return false
	}
	for n := len(prefix) - 1; n <= len(prefix)+1; n++ {
		if full := prefix + name[n:]; edits(name, full, 1) == 1 {
			if _, ok := Lookup(full); ok {
				return true
			}
		}
	}
	return false
}

// Matters reports whether an assignment to name says something about NCCL.
func Matters(name string) bool {
	return strings.HasPrefix(name, "NCCL_") || Kind(name) != KindUnknown || misspelt(name)
}

// edits counts the edits between a and b, up to limit; more give limit+1.
func edits(a, b string, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a) == 0 || len(b) == 0:
		return min(len(a)+len(b), limit+1)
	case limit <= 0 || len(a)-len(b) > limit || len(b)-len(a) > limit:
		return limit + 1
	}
	n := 1 + min(edits(a[1:], b, limit-1), edits(a, b[1:], limit-1), edits(a[1:], b[1:], limit-1))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		n = min(n, 1+edits(a[2:], b[2:], limit-1))
	}
	return min(n, limit+1)
}
