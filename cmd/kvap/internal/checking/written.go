package checking

import (
	"context"
	"slices"

	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/policy/validity"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
)

// write is what is refused, and warned of, when the policies are written into a cluster.
func (run *Run) write(ctx context.Context, kinds *schema.Set) {
	done := run.newest
	for _, p := range done.Policies {
		run.writeOne(ctx, &policy.File{Policies: []*policy.Policy{p}}, p.Kind, p.Name, p.Pos, kinds)
	}
	for _, e := range done.Exceptions {
		run.writeOne(ctx, &policy.File{Exceptions: []*policy.Exception{e}}, "PolicyException", e.Name, e.Pos, kinds)
	}
	for _, c := range done.Cleanups {
		run.writeOne(ctx, &policy.File{Cleanups: []*policy.Cleanup{c}}, c.Kind, c.Name, c.Pos, kinds)
	}
}

func (run *Run) writeOne(ctx context.Context, one *policy.File, kind, name string, at diag.Pos, kinds *schema.Set) {
	o := report.CheckedObject{Kind: kind, Name: name, File: at.File, Line: at.Line}
	for _, d := range validity.Said(validity.Check(ctx, one, kinds.Resources), run.newest.Found) {
		if d.Severity == diag.Error || run.looksFor(check.Lint) {
			o.Findings = append(o.Findings, findingOf(d, ""))
		}
	}
	if len(o.Findings) > 0 {
		run.Written = append(run.Written, o)
	}
}

// refuses tells that a policy would not be taken.
func refuses(o report.CheckedObject) bool {
	return slices.ContainsFunc(o.Findings, func(f report.Finding) bool { return f.Severity == diag.Error })
}

// Refused tells that some policy would not be taken as it is written.
func (run *Run) Refused() bool { return slices.ContainsFunc(run.Written, refuses) }
