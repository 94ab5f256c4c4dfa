package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/kvap/kvap/diag"
)

// A Check is what a run of check found.
type Check struct {
	Objects []CheckedObject `json:"objects"`
	Totals  CheckTotals     `json:"totals"`
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
	Field    string        `json:"field"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Message  string        `json:"message"`
	// Known tells of a false alarm of the cluster's type checker.
	Known bool `json:"known"`
	// Expression is the expression that the finding is in; the line and column are
	// those in its text, 0 where all of it is meant.
	Expression       string `json:"expression"`
	ExpressionLine   int    `json:"expressionLine"`
	ExpressionColumn int    `json:"expressionColumn"`
}

// CheckTotals are the sums over all objects.
type CheckTotals struct {
	Objects  int `json:"objects"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
}

// NewCheck counts the findings of objects.
func NewCheck(objects []CheckedObject) Check {
	c := Check{Objects: []CheckedObject{}}
	for _, o := range objects {
		o.Releases, o.TypeChecking = orEmpty(o.Releases), orEmpty(o.TypeChecking)
		o.Cost, o.Findings = orEmpty(o.Cost), orEmpty(o.Findings)
		c.Objects = append(c.Objects, o)
		c.Totals.Objects++
		for _, f := range o.Findings {
			c.Totals.count(f.Severity)
		}
	}
	return c
}

func (t *CheckTotals) count(s diag.Severity) {
	switch s {
	case diag.Error:
		t.Errors++
	case diag.Warning:
		t.Warnings++
	default:
		t.Notes++
	}
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
	return fmt.Sprintf("%s: %s, %s, %s", Count(t.Objects, "object", "objects"),
		Count(t.Errors, "error", "errors"), Count(t.Warnings, "warning", "warnings"), Count(t.Notes, "note", "notes"))
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// WriteJSON writes the form that programs read.
func (c Check) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// Pos is the place of the finding.
func (f Finding) Pos() diag.Pos {
	return diag.Pos{File: f.File, Line: f.Line, Col: f.Column, Path: f.Field}
}
