package checking

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/signers"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// A Run is one run of check.
type Run struct {
	Sources []input.Source
	Found   diag.List // what reading said
	Objects []*check.Object
	Options check.Options
	// Accept says why somebody accepts a finding of an object at a place, "" where nobody does;
	// nil accepts none.
	Accept func(report.Finding, diag.Pos) string
	said   []report.Finding     // of converting, for each release
	newest *convert.Compilation // of the policies that were converted; nil where there are none
	served []servedKinds        // by the cluster, if one is asked
	// Written are the policies of which something is to be said as they are written.
	Written []report.CheckedObject
	cluster.LeftOut
}

// Compile finds the native objects, and converts the Kyverno-style policies for each
// release.
func (run *Run) Compile(ctx context.Context, releases []convert.Choices) {
	for _, s := range run.Sources {
		if check.MayBe(s.Data) {
			objects, ds := check.Written(s.Name, s.Data)
			run.Objects, run.Found = append(run.Objects, objects...), append(run.Found, ds...)
		}
	}
	if !slices.ContainsFunc(run.Sources, func(s input.Source) bool { return policy.MayHold(s.Data) || !check.MayBe(s.Data) }) {
		return
	}
	var made []*check.Object
	for _, c := range releases {
		done := convert.Compile(run.Sources, c)
		for _, d := range append(done.Found, done.Relations()...) {
			if d.Severity == diag.Error || run.looksFor(check.Lint) {
				run.said = append(run.said, findingOf(d, c.Translate.Release.String()))
			}
		}
		run.newest = done
		made = append(made, check.Made(done.Objects, done.Mutating, c.Translate.Release)...)
	}
	run.Objects = append(run.Objects, check.Merge(made)...)
	run.write(ctx, releases[len(releases)-1].Translate.Schemas)
	// what is not read is an object of its own, and what is checked is not passed over
	files, documents := map[string]bool{}, map[diag.Pos]bool{}
	for _, o := range run.Objects {
		files[o.Pos.File], documents[diag.Pos{File: o.Pos.File, Line: o.Pos.Line}] = true, true
	}
	run.said = slices.DeleteFunc(run.said, func(f report.Finding) bool {
		checked := documents[diag.Pos{File: f.File, Line: f.Line}] || f.Line == 0 && files[f.File]
		return f.Code == diag.UnreadKind || f.Code == diag.OtherEngine || f.Code == diag.OtherKind && checked
	})
}

// looksFor reports whether a part is looked at.
func (run *Run) looksFor(part check.Part) bool {
	return len(run.Options.Parts) == 0 || slices.Contains(run.Options.Parts, part)
}

// Unread are the policies of kinds that are not read.
func (run *Run) Unread() []*policy.Unread {
	if run.newest == nil {
		return nil
	}
	return run.newest.Unread
}

// NeedsNone tells that rules are native, if only such that need no object.
func (run *Run) NeedsNone() bool {
	return run.newest != nil && slices.ContainsFunc(run.newest.Rules, func(r *compile.Rule) bool { return report.Target(r.Target) == report.Native })
}

// Behind says how many rules are not looked at, for they have no native form; "" for
// none. command is what the program is called.
func (run *Run) Behind(command string) string {
	if run.newest == nil {
		return ""
	}
	n := 0
	for _, r := range run.newest.Rules {
		if report.Target(r.Target) != report.Native {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 rule has no native form and is not checked; " + command + " convert says why"
	}
	return fmt.Sprintf("%d rules have no native form and are not checked; %s convert says why", n, command)
}

// Report fills the values that are rendered.
func (run *Run) Report() report.Check {
	var objects []report.CheckedObject
	typed := map[diag.Pos]bool{} // places where the types of expressions say which field is not there
	for _, r := range check.Objects(run.Objects, run.Options) {
		o := report.CheckedObject{Kind: r.Object.Kind(), Name: r.Object.Name(), File: r.Object.Pos.File, Line: r.Object.Pos.Line, Generated: r.Object.Generated()}
		for _, release := range r.Releases {
			o.Releases = append(o.Releases, release.String())
		}
		for _, w := range r.TypeChecking {
			o.TypeChecking = append(o.TypeChecking, report.PredictedWarning{FieldRef: w.Field, Warning: w.Warning})
		}
		for _, k := range r.Cost {
			o.Cost = append(o.Cost, report.ExpressionCost{Field: k.Field, Estimate: k.Estimate, Measured: k.Measured, Limit: k.Limit, Safe: k.SafeUpTo()})
		}
		for _, f := range r.Findings {
			o.Findings = append(o.Findings, findingRow(f))
			if f.Code == diag.UndefinedField {
				typed[diag.Pos{File: f.File, Line: f.Line, Col: f.Col}] = true
			}
		}
		objects = append(objects, o)
	}
	for _, u := range run.Unread() {
		objects = append(objects, report.CheckedObject{Kind: u.Kind, Name: u.Name, File: u.Pos.File, Line: u.Pos.Line, Findings: []report.Finding{
			{Code: u.Code, Severity: diag.Warning, File: u.Pos.File, Line: u.Pos.Line, Column: u.Pos.Col, Message: u.Reason},
		}})
	}
	var releases []string
	for _, r := range slices.Sorted(maps.Keys(run.Options.Schemas)) {
		releases = append(releases, r.String())
	}
	var input []report.Finding
	for _, d := range run.Found {
		input = append(input, findingOf(d, ""))
	}
	accept := run.Accept
	if accept == nil {
		accept = func(report.Finding, diag.Pos) string { return "" }
	}
	said := slices.DeleteFunc(slices.Clone(run.said), func(f report.Finding) bool {
		return f.Code == diag.UnknownField && typed[diag.Pos{File: f.File, Line: f.Line, Col: f.Column}]
	})
	return report.NewCheck(slices.Concat(objects, run.Signers(), run.Written), append(input, said...), releases, accept)
}

// findingOf is a diagnostic as a finding for a release.
func findingOf(d diag.Diagnostic, release string) report.Finding {
	return report.Finding{Code: d.Code, Severity: d.Severity, Release: release, Field: d.Path, File: d.File, Line: d.Line, Column: d.Col, Message: d.Message}
}

// Signers are the policies that verify images, with what is wrong with who must have signed.
func (run *Run) Signers() (out []report.CheckedObject) {
	if run.newest == nil || !run.looksFor(check.Lint) {
		return nil
	}
	for _, p := range run.newest.Policies {
		if !signers.Verifies(p) {
			continue
		}
		o := report.CheckedObject{Kind: p.Kind, Name: p.Name, File: p.Pos.File, Line: p.Pos.Line}
		for _, d := range signers.Check(p, time.Now()) {
			o.Findings = append(o.Findings, findingOf(d, ""))
		}
		out = append(out, o)
	}
	return out
}

func findingRow(f check.Finding) report.Finding {
	row := report.Finding{
		Code: f.Code, Severity: f.Severity, Field: f.Field, File: f.File, Line: f.Line, Column: f.Pos.Col, Message: f.Message,
		Known: f.Known, Expression: f.Expression, ExpressionLine: f.ExprLine, ExpressionColumn: f.ExprCol,
	}
	if f.Release != 0 {
		row.Release = f.Release.String()
	}
	return row
}

// Converted is what was converted, if anything was, and the rules beside what they became.
func (run *Run) Converted() (*report.Conversion, []report.Pair) {
	if run.newest == nil || run.newest.Empty() {
		return nil, nil
	}
	conversion := run.newest.Report()
	return &conversion, run.newest.Pairs(run.Sources)
}
