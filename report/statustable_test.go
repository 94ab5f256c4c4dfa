package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// A policy that is there in Kyverno's kind and in that of kvap.dev has two rows, which
// are told apart, and a rule with an object for each pod controller leaves room for what
// comes after.
func TestStatusTable(t *testing.T) {
	rule := report.RuleStatus{Name: "tag", Objects: strings.Fields("a b c d e")}
	s := report.Status{Policies: []report.PolicyStatus{
		{Name: "both", Kind: "ClusterPolicy", Group: "kyverno.io"},
		{Name: "both", Kind: "ClusterPolicy", Group: "kvap.dev", Rules: []report.RuleStatus{rule}},
		{Name: "alone", Kind: "ClusterPolicy", Group: "kyverno.io"},
	}}
	for wide, want := range map[bool][]string{
		false: {"both ClusterPolicy.kyverno.io ", "both ClusterPolicy.kvap.dev ", "alone ClusterPolicy "},
		true:  {" a and 4 more "},
	} {
		var b strings.Builder
		if err := s.Document(time.Time{}, wide).Write(&b, doc.Options{}); err != nil {
			t.Fatal(err)
		}
		table := strings.Join(strings.Fields(b.String()), " ")
		for _, text := range want {
			if !strings.Contains(table, text) {
				t.Errorf("no %q in %s", text, b.String())
			}
		}
	}
}

// What a cluster says is written in no way that steers a terminal.
func TestStatusIsInert(t *testing.T) {
	s := report.Status{
		Policies:  []report.PolicyStatus{{Name: "a", Conditions: []report.Condition{{Type: "Served", Status: "False", Reason: "r", Message: "\x1b[31m\n::error::x"}}}},
		Unmanaged: []report.NativeStatus{{Name: "b\x1b[31m", Warnings: []report.TypeWarning{{Warning: "\x1b[31m"}}}},
	}
	var b strings.Builder
	if err := s.Document(time.Time{}, true).Write(&b, doc.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b") || strings.Contains(b.String(), "\n::") {
		t.Errorf("%q", b.String())
	}
}

// An exception that is in force is in the table, beside what is wrong, and is no finding.
func TestStatusOfExceptions(t *testing.T) {
	s := report.Status{Policies: []report.PolicyStatus{{Name: "p", Kind: "ClusterPolicy", Exceptions: []report.ActiveException{
		{Namespace: "team", Name: "some", Rules: []string{"a", "b"}, Expires: "2100-01-01T00:00:00Z"}, {Namespace: "team", Name: "all"},
	}}}}
	for _, wide := range []bool{false, true} {
		var b strings.Builder
		if err := s.Document(time.Time{}, wide).Write(&b, doc.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"p: the exception team/some is in force for a, b, until 2100-01-01T00:00:00Z\n", "p: the exception team/all is in force\n"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("wide %t: no %q in\n%s", wide, want, b.String())
			}
		}
	}
	if s.Findings() {
		t.Error("an exception is a finding")
	}
}
