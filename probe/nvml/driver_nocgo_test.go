//go:build !cgo

package nvml

import (
	"testing"
)

func TestWithoutCgo(t *testing.T) {
	if _, err := Read(t.Context(), Options{}); err == nil || err.Error() != "built without cgo: the NVIDIA driver cannot be asked" {
		t.Error(err)
	}
}
