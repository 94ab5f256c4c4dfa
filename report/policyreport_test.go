package report

import (
	"reflect"
	"strings"
	"testing"
)

func scanned() ScannedObject {
	return ScannedObject{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "team", Name: "web", UID: "1-2-3",
		Results: []ScanResult{
			{Policy: "b", Rule: "r", Result: "fail", Message: strings.Repeat("é", 2000), Scored: true},
			{Policy: "a", Rule: "r", Result: "pass", Message: "fine", Scored: true},
			{Policy: "a", Rule: "q", Result: "error", Message: "cannot tell", Severity: "high", Category: "c", Scored: true},
			{Policy: "a", Rule: "p", Result: "fail", Message: "no", Scored: true},
		},
	}
}

func named(report map[string]any) []string {
	var out []string
	for _, r := range entries(report) {
		out = append(out, r["policy"].(string)+"/"+r["rule"].(string))
	}
	return out
}

// A report lists failures, the gravest first, and counts everything.
func TestObjectReport(t *testing.T) {
	r := ObjectReport(scanned(), ObjectOptions{Group: PolicyReports, List: []string{"error", "warn"}, Max: 2}, 7)
	if got := named(r); !reflect.DeepEqual(got, []string{"a/p", "b/r"}) {
		t.Errorf("listed are %v", got)
	}
	if want := map[string]any{"pass": int64(1), "fail": int64(2), "warn": int64(0), "error": int64(1), "skip": int64(0)}; !reflect.DeepEqual(r["summary"], want) {
		t.Errorf("the summary is %v", r["summary"])
	}
	meta := r["metadata"].(map[string]any)
	if r["apiVersion"] != "wgpolicyk8s.io/v1alpha2" || r["kind"] != "PolicyReport" || meta["name"] != "1-2-3" || meta["namespace"] != "team" {
		t.Errorf("got %v", r)
	}
	if text := entries(r)[1]["message"].(string); len([]rune(text)) != maxReportMessage {
		t.Errorf("a message has %d characters", len([]rune(text)))
	}
	if all := named(ObjectReport(scanned(), ObjectOptions{Group: PolicyReports, Max: 10, List: OptionalResults()}, 7)); len(all) != 4 {
		t.Errorf("all are %v", all)
	}
}

// The id of a result is that of the rule, the object and what the rule says of it: neither a
// message nor a time changes it.
func TestResultID(t *testing.T) {
	id := func(s ScannedObject, now int64) any {
		return entries(ObjectReport(s, ObjectOptions{Group: PolicyReports, List: OptionalResults(), Max: 10}, now))[0]["properties"].(map[string]any)["resultID"]
	}
	s := scanned()
	s.Results = s.Results[:1]
	before := id(s, 7)
	s.Results[0].Message = "other words"
	if after := id(s, 8); after != before {
		t.Errorf("%v became %v", before, after)
	}
	s.Results[0].Result = "pass"
	if after := id(s, 8); after == before {
		t.Error("a rule that passes has the id of one that fails")
	}
}

// What a rule says besides is told as Kyverno tells it, and cannot take the place of what reports
// mean by these names.
func TestResultProperties(t *testing.T) {
	s := scanned()
	s.Results = []ScanResult{
		{Policy: "p", Rule: "r", Result: "skip", Exceptions: []string{"a", "b"}},
		{Policy: "p", Rule: "s", Result: "fail", Admission: true, Properties: map[string]string{"process": "mine", "team": strings.Repeat("x", 2000), "resultID": "", "long": strings.Repeat("x", 5000)}},
	}
	var got []map[string]any
	for _, e := range entries(ObjectReport(s, ObjectOptions{Group: PolicyReports, List: OptionalResults(), Max: 10}, 7)) {
		properties := e["properties"].(map[string]any)
		if id, _ := properties["resultID"].(string); len(id) != 20 {
			t.Errorf("the id is %q", id)
		}
		delete(properties, "resultID")
		got = append(got, properties)
	}
	want := []map[string]any{
		{"process": "admission review", "team": strings.Repeat("x", 2000)}, {"process": "background scan", "exceptions": "a,b"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// Open reports say the same in other words, and what has no namespace has a report
// of the cluster.
func TestOpenReport(t *testing.T) {
	s := scanned()
	s.Namespace = ""
	r := ObjectReport(s, ObjectOptions{Group: OpenReports, Max: 1}, 7)
	if e := entries(r)[0]; r["kind"] != "ClusterReport" || r["apiVersion"] != "openreports.io/v1alpha1" || e["description"] != "no" || e["message"] != nil {
		t.Errorf("got %v", r)
	}
}

// An object that violates nothing has no report.
func TestNoReport(t *testing.T) {
	s := scanned()
	s.Results = s.Results[1:2]
	if r := ObjectReport(s, ObjectOptions{Group: PolicyReports, Max: 1}, 7); r != nil {
		t.Errorf("got %v", r)
	}
}

// A scan that finds what was found before gives the same report.
func TestKeepTimes(t *testing.T) {
	o := ObjectOptions{Group: PolicyReports, List: OptionalResults(), Max: 5}
	before, after := ObjectReport(scanned(), o, 7), ObjectReport(scanned(), o, 8)
	if reflect.DeepEqual(before, after) {
		t.Fatal("the times are the same")
	}
	if KeepTimes(after, before); !reflect.DeepEqual(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
}
