package verify

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/vap"
)

// A gap is a disagreement that is known and told to the user, or that waits for
// someone to close it. TestAgree passes over them, so that they do not hide others;
// a test sees to it that each still is one.
type gap struct {
	name string
	is   func(e *Engines, o Opinion) bool
}

func gaps() []gap {
	code := func(codes ...diag.Code) func(*Engines, Opinion) bool {
		return func(e *Engines, _ Opinion) bool {
			return slices.ContainsFunc(e.Translation.Diagnostics, func(d diag.Diagnostic) bool { return slices.Contains(codes, d.Code) })
		}
	}
	return []gap{
		{"the translation says itself that texts are compared or written in another way", code(diag.TextForm, diag.TextEquality)},
		{"a message that is no text is an error, which excuses no old violation", func(_ *Engines, o Opinion) bool {
			return strings.Contains(o.InterpMessage, "must resolve to a string")
		}},
		{"what Kyverno calls an error of a pattern depends on the order of evaluation, and excuses no old violation", func(e *Engines, o Opinion) bool {
			return o.Native == vap.Deny && o.Interp == interp.Skip && strings.Contains(o.InterpMessage, "pre-existing")
		}},
		{"lists that are too short for a pattern are an error, which excuses no old violation", func(e *Engines, o Opinion) bool {
			return strings.Contains(o.InterpMessage, "array length mismatch")
		}},
	}
}

func known(e *Engines, o Opinion) bool {
	return slices.ContainsFunc(gaps(), func(g gap) bool { return g.is(e, o) })
}
