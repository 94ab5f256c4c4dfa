package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// A Format is what the schema says of the texts of a field.
type Format int

// The formats. AnyText is also the format of what no schema knows.
const (
	AnyText Format = iota
	Quantity
	Duration
	IntOrString // a number, or a text that is none
)

// A Typed is a World that knows schemas: the format of a field of a kind's objects, given
// the keys on the way to it, and * for an element of a list.
type Typed interface {
	Format(group, version, kind string, field []string) Format
}

// formats gives the format of a field; nil knows none.
type formats func(at []string) Format

// formatsFor is what the world knows of the objects that a rule judges. Of a rule about
// kinds that are wildcards no field is known.
func (a *preparedRequest) formatsFor(r *policy.Rule) formats {
	typed, ok := a.world.(Typed)
	if !ok || slices.ContainsFunc(r.Match.Filters(), func(f *policy.Filter) bool { return slices.ContainsFunc(f.Kinds, ofManyKinds) }) {
		return nil
	}
	kind := objectKind(a.request.Admission)
	return func(at []string) Format { return typed.Format(kind.group, kind.version, kind.kind, at) }
}

func ofManyKinds(written policy.Text) bool {
	selector, ok := policy.ParseKind(written.Value)
	first, _, more := strings.Cut(written.Value, "/")
	return ok && (wildcard.Has(selector.Kind) || more && first != selector.Kind && wildcard.Has(selector.Version))
}

// of is the format of a field; any where it is none.
func (f formats) of(at []string) Format {
	if f == nil || at == nil {
		return AnyText
	}
	return f(at)
}

// ofValue is the format of a value from somewhere. The text of a number is a number like any
// other text's, and the time between two others is a duration.
func (f formats) ofValue(from expr.Provenance) Format {
	if from.Duration {
		return Duration
	}
	format := f.of(from.At)
	if from.Printed && format == IntOrString {
		return AnyText
	}
	return format
}
