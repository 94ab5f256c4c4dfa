package verify

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/vap"
)

// A gap is a disagreement that is known and told to the user, or that waits for
// someone to close it. TestAgree passes over them, so that they do not hide others;
// a test sees to it that each still is one.
type gap struct {
	name string
	is   func(e *Judges, o judge.Opinion) bool
}

func gaps() []gap {
	code := func(codes ...diag.Code) func(*Judges, judge.Opinion) bool {
		return func(e *Judges, _ judge.Opinion) bool {
			return slices.ContainsFunc(e.Compiled.Diagnostics, func(d diag.Diagnostic) bool { return slices.Contains(codes, d.Code) })
		}
	}
	return []gap{
		{"the translation says itself that texts are written in another way", code(diag.TextForm)},
		{"a message that is no text is an error, which excuses no old violation", func(_ *Judges, o judge.Opinion) bool {
			return strings.Contains(o.Message, "must resolve to a string")
		}},
		{"what Kyverno calls an error of a pattern depends on the order of evaluation, and excuses no old violation", func(e *Judges, o judge.Opinion) bool {
			return o.Native == vap.Deny && o.Status == interp.Skip && strings.Contains(o.Message, "pre-existing")
		}},
		{"lists that are too short for a pattern are an error, which excuses no old violation", func(e *Judges, o judge.Opinion) bool {
			return strings.Contains(o.Message, "array length mismatch")
		}},
	}
}

func known(e *Judges, o judge.Opinion) bool {
	return slices.ContainsFunc(gaps(), func(g gap) bool { return g.is(e, o) })
}
