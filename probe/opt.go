package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Opt is a value that a source may not know. The zero Opt is unknown; unknown
// is JSON null and never a zero value.
type Opt[T any] struct {
	value T
	known bool
}

// Some returns a known value.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, known: true} }

// Get returns the value and whether it is known.
func (o Opt[T]) Get() (T, bool) { return o.value, o.known }

// Known reports whether the value is known.
func (o Opt[T]) Known() bool { return o.known }

// Or returns the value, or def when it is unknown.
func (o Opt[T]) Or(def T) T {
	if o.known {
		return o.value
	}
	return def
}

// IsZero reports unknown; it serves the omitzero tag of rarely known facts.
func (o Opt[T]) IsZero() bool { return !o.known }

func (o Opt[T]) String() string {
	if !o.known {
		return "unknown"
	}
	return fmt.Sprint(o.value)
}

func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.known {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{}
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &o.value); err != nil {
		return &valueError{raw: string(b), err: err}
	}
	o.known = true
	return nil
}

// valueError is a JSON value that does not fit, without its place: the decoder
// does not tell a custom type where it is.
type valueError struct {
	raw string
	err error
}

func (e *valueError) Error() string {
	var typ *json.UnmarshalTypeError
	if errors.As(e.err, &typ) {
		return fmt.Sprintf("%s is no %s", clip(e.raw), typ.Type)
	}
	return strings.TrimPrefix(e.err.Error(), "json: ")
}
