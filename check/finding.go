package check

import (
	"cmp"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// A Finding is one thing to tell of an object.
type Finding struct {
	diag.Diagnostic
	// Release is the one that the finding is of; zero where it does not depend on it.
	Release cel.Release
	// Field is the field of the object, for instance spec.validations[0].expression.
	Field string
	// Expression is the expression, where the finding is in one; Line and Col are the
	// place in it, from 1, and 0 where the whole of it is meant.
	Expression        string
	ExprLine, ExprCol int
	// Known tells of a false alarm: the cluster will say it, and it is not so.
	Known bool
}

// report adds a finding about a field.
func (r *Result) report(release cel.Release, field string, d diag.Diagnostic) {
	r.reportIn(release, expression{field: field}, 0, 0, d)
}

// reportIn adds a finding in an expression.
func (r *Result) reportIn(release cel.Release, e expression, line, column int, d diag.Diagnostic) {
	d.Pos = r.Object.source.at(e.field, line, column)
	r.Findings = append(r.Findings, Finding{
		Diagnostic: d, Release: release, Field: e.field, Expression: e.text, ExprLine: line, ExprCol: column,
	})
}

// sort gives the findings their order: by place, code and release, the gravest first.
func (r *Result) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Release, b.Release))
	})
	r.Findings = slices.Compact(r.Findings)
}

// troubled tells that something true has been found in a field.
func (r *Result) troubled(field string, release cel.Release) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Field == field && !f.Known && f.Severity <= diag.Warning && (f.Release == release || f.Release == 0)
	})
}
