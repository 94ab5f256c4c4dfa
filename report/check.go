package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// A Check is what a run of check found.
type Check struct {
	Objects []CheckedObject `json:"objects"`
	// Diagnostics are what is found in the input, and not in one of the objects: what cannot
	// be read, and what converting it says.
	Diagnostics []Finding   `json:"diagnostics"`
	Totals      CheckTotals `json:"totals"`

	found    []foundIn // all findings, the gravest first: what every format has
	releases []string  // of Kubernetes that were asked for, the oldest first
}

// A CheckedObject is an admission policy or a binding.
type CheckedObject struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Releases []string `json:"releases"` // of Kubernetes that it was checked for
	// Generated tells that the object was made of a policy, whose place this is.
	Generated    bool               `json:"generated"`
	TypeChecking []PredictedWarning `json:"typeChecking"`
	Cost         []ExpressionCost   `json:"cost"`
	Findings     []Finding          `json:"findings"`
}

// A PredictedWarning is what kube-controller-manager will write into the status.
type PredictedWarning struct {
	FieldRef string `json:"fieldRef"`
	Warning  string `json:"warning"`
}

// An ExpressionCost is what evaluating a field costs, in units of the API server's budget.
type ExpressionCost struct {
	Field    string `json:"field"`
	Estimate int64  `json:"estimate"` // about the most, on large objects
	Measured int64  `json:"measured"` // the most that was counted, on generated objects
	Limit    int64  `json:"limit"`    // what the API server allows
	Safe     string `json:"safe"`     // up to what size the limit is kept, in words
}

// A Finding is one thing to tell. Release is empty where it does not depend on one.
type Finding struct {
	Code     diag.Code     `json:"code"`
	Severity diag.Severity `json:"severity"`
	Release  string        `json:"release"`
	// Releases are all of which it is true.
	Releases []string `json:"releases"`
	Field    string   `json:"field"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Message  string   `json:"message"`
	// Known tells of a false alarm of the cluster's type checker.
	Known bool `json:"known"`
	// Accepted is why somebody accepts the finding, which then does not count; "" for others.
	Accepted string `json:"accepted"`
	// Expression is the expression that the finding is in; the line and column are
	// those in its text, 0 where all of it is meant.
	Expression       string `json:"expression"`
	ExpressionLine   int    `json:"expressionLine"`
	ExpressionColumn int    `json:"expressionColumn"`
}

// CheckTotals are the sums over all objects and the input.
type CheckTotals struct {
	Objects  int `json:"objects"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	Accepted int `json:"accepted"` // findings, which the others do not count
}

// A foundIn is a finding, and the object that it is of; nil of the input.
type foundIn struct {
	Finding
	object *CheckedObject
}

// A sameFinding is what findings have in common that are told once: for several releases a
// policy may have become several objects.
type sameFinding struct {
	kind, name string
	code       diag.Code
	severity   diag.Severity
	pos        diag.Pos
	message    string // but for the release
	known      bool
}

// NewCheck joins what is the same for several releases, and counts the findings of objects
// and of the input. accept says why somebody accepts a finding of an object at a place, "" where
// nobody does.
func NewCheck(objects []CheckedObject, input []Finding, releases []string, accept func(Finding, diag.Pos) string) Check {
	c := Check{releases: releases}
	first := map[sameFinding]*Finding{}
	join := func(o CheckedObject, of []Finding) []*Finding {
		var own []*Finding
		for _, f := range of {
			f.Releases = []string{f.Release}
			if f.Release == "" {
				f.Releases = slices.Clone(o.Releases)
			}
			if len(o.Releases) == 0 { // as a policy that is not read
				f.Releases = slices.Clone(releases)
			}
			text := f.Message
			if f.Release != "" { // which it may name
				text = strings.ReplaceAll(text, f.Release, "")
			}
			same := sameFinding{o.Kind, o.Name, f.Code, f.Severity, f.Pos(), text, f.Known}
			earlier := first[same]
			if earlier == nil {
				first[same] = &f
				own = append(own, &f)
				continue
			}
			for _, r := range f.Releases {
				if !slices.Contains(earlier.Releases, r) {
					earlier.Releases = append(earlier.Releases, r)
				}
			}
		}
		return own
	}
	joined := make([][]*Finding, len(objects))
	for i, o := range objects {
		joined[i] = join(o, o.Findings)
	}
	ofInput := join(CheckedObject{Releases: releases}, input)
	take := func(list []*Finding, o *CheckedObject) []Finding {
		var out []Finding
		for _, f := range list {
			at := diag.Pos{}
			if o != nil {
				at = diag.Pos{File: o.File, Line: o.Line}
			}
			f.Accepted = accept(*f, at)
			out = append(out, *f)
			c.Totals.count(*f)
			c.found = append(c.found, foundIn{*f, o})
		}
		return out
	}
	for i, o := range objects {
		o.Findings = take(joined[i], &objects[i])
		c.Objects = append(c.Objects, o)
		c.Totals.Objects++
	}
	c.Diagnostics = take(ofInput, nil)
	slices.SortStableFunc(c.found, func(a, b foundIn) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.Pos().Compare(b.Pos()), cmp.Compare(a.Code, b.Code))
	})
	return c
}

func (t *CheckTotals) count(f Finding) {
	switch {
	case f.Accepted != "":
		t.Accepted++
	case f.Severity == diag.Error:
		t.Errors++
	case f.Severity == diag.Warning:
		t.Warnings++
	default:
		t.Notes++
	}
}

// LeavesOut tells that some of the input could not be read, or not be converted, and that
// nobody accepts it.
func (c Check) LeavesOut() bool {
	return slices.ContainsFunc(c.Diagnostics, func(f Finding) bool { return f.Severity == diag.Error && f.Accepted == "" })
}

// AtLeast is how many findings weigh as much as a severity.
func (t CheckTotals) AtLeast(s diag.Severity) int {
	switch s {
	case diag.Error:
		return t.Errors
	case diag.Warning:
		return t.Errors + t.Warnings
	}
	return t.Errors + t.Warnings + t.Notes
}

// String is the totals in a sentence.
func (t CheckTotals) String() string {
	s := fmt.Sprintf("%s: %s, %s, %s", doc.Count(t.Objects, "object", "objects"),
		doc.Count(t.Errors, "error", "errors"), doc.Count(t.Warnings, "warning", "warnings"), doc.Count(t.Notes, "note", "notes"))
	if t.Accepted > 0 {
		s += fmt.Sprintf(", %d accepted", t.Accepted)
	}
	return s
}

// Pos is the place of the finding.
func (f Finding) Pos() diag.Pos {
	return diag.Pos{File: f.File, Line: f.Line, Col: f.Column, Path: f.Field}
}
