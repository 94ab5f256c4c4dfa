package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// The groups of reports about objects, which say the same in other words.
const (
	PolicyReports = "wgpolicyk8s.io"
	OpenReports   = "openreports.io"
)

// ReportManager is the value of the label app.kubernetes.io/managed-by on reports,
// and kvap what their results name as their source.
const (
	ReportManager = "kvap-reports"
	reportSource  = "kvap"
)

// A ScannedObject is an object that was there when policies were put to it.
type ScannedObject struct {
	APIVersion, Kind, Namespace, Name, UID string
	Results                                []ScanResult
}

// A ScanResult is what a rule says of an object.
type ScanResult struct {
	Kind     string // of the policy
	Policy   string // with the namespace of a namespaced one
	Rule     string // as Kyverno reports it
	Result   string // pass, fail, warn, error or skip
	Message  string
	Category string
	Severity string // critical, high, medium, low or info; empty where the policy says none
	Scored   bool
	// Exceptions are the names of those that made the rule skip, and Properties what reports tell
	// besides.
	Exceptions []string
	Properties map[string]string
	// Admission tells of a policy whose rules are not asked in the background.
	Admission bool
}

// ObjectOptions are the choices of reports.
type ObjectOptions struct {
	Group string // PolicyReports or OpenReports
	// List are the results that are listed besides fail, and not only counted: of OptionalResults.
	List []string
	Max  int // results in one report; what is more is counted only
}

// OptionalResults are those that reports may list besides fail, the gravest first.
func OptionalResults() []string { return []string{"error", "warn", "pass", "skip"} }

// maxReportMessage bounds a message: a report is an object of the API server.
const maxReportMessage = 1024

// ObjectReport is the report about one object, as JSON data; nil where there is
// nothing to list. The results are in the order of policies and rules, failures
// first. now is when the object was scanned, in seconds; a report of which nothing
// else has changed keeps that of before, given by KeepTimes.
func ObjectReport(s ScannedObject, o ObjectOptions, now int64) map[string]any {
	results := slices.Clone(s.Results)
	slices.SortStableFunc(results, func(a, b ScanResult) int {
		return cmp.Or(cmp.Compare(gravity(a.Result), gravity(b.Result)), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule))
	})
	summary := map[string]any{"pass": int64(0), "fail": int64(0), "warn": int64(0), "error": int64(0), "skip": int64(0)}
	var listed []any
	for _, r := range results {
		n, _ := summary[r.Result].(int64)
		summary[r.Result] = n + 1
		if len(listed) < o.Max && (r.Result == "fail" || slices.Contains(o.List, r.Result)) {
			listed = append(listed, r.entry(s.UID, o.Group, now))
		}
	}
	if len(listed) == 0 {
		return nil
	}
	kind, version := "PolicyReport", "v1alpha2"
	if o.Group == OpenReports {
		kind, version = "Report", "v1alpha1"
	}
	owner := map[string]any{"apiVersion": s.APIVersion, "kind": s.Kind, "name": s.Name, "uid": s.UID}
	scope := maps.Clone(owner)
	meta := map[string]any{
		"name":            s.UID,
		"labels":          map[string]any{"app.kubernetes.io/managed-by": ReportManager},
		"ownerReferences": []any{owner}, // so it goes with the object
	}
	if s.Namespace == "" {
		kind = "Cluster" + kind
	} else {
		meta["namespace"], scope["namespace"] = s.Namespace, s.Namespace
	}
	out := map[string]any{
		"apiVersion": o.Group + "/" + version, "kind": kind, "metadata": meta, "scope": scope, "summary": summary, "results": listed,
	}
	if o.Group == OpenReports {
		out["source"] = reportSource
	}
	return out
}

// gravity orders results.
func gravity(result string) int {
	return slices.Index(OptionalResults(), result) // fail comes first
}

// id is the same as long as a rule says the same of an object: those who read reports tell results
// apart by it, new ones from those that they know.
func (r ScanResult) id(uid string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{uid, r.Policy, r.Rule, r.Result}, "\x00")))
	return hex.EncodeToString(sum[:10])
}

// IsListed reports whether a report about an object lists the result, whatever the message is.
func (r ScanResult) IsListed(in map[string]any, uid string) bool {
	return slices.ContainsFunc(entries(in), func(entry map[string]any) bool {
		properties, _ := entry["properties"].(map[string]any)
		return properties["resultID"] == r.id(uid)
	})
}

// maxProperties bounds how many a rule may have of its own.
const maxProperties = 20

// properties are those of a result, as Kyverno names them. A value that is too long is left out: half
// of it could be read by nobody.
func (r ScanResult) properties(uid string) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(r.Properties)) {
		if value := r.Properties[key]; len(value) <= 4*maxReportMessage && len(key) <= maxReportMessage && len(out) < maxProperties {
			out[key] = value
		}
	}
	if len(r.Exceptions) > 0 {
		out["exceptions"] = doc.Cut(strings.Join(r.Exceptions, ","), maxReportMessage)
	}
	out["process"], out["resultID"] = "background scan", r.id(uid)
	if r.Admission {
		out["process"] = "admission review"
	}
	return out
}

// entry is a result in the report about an object.
func (r ScanResult) entry(uid, group string, now int64) map[string]any {
	text := "message"
	if group == OpenReports {
		text = "description"
	}
	out := map[string]any{
		"source": reportSource, "policy": r.Policy, "rule": r.Rule, "result": r.Result, "scored": r.Scored,
		"timestamp":  map[string]any{"seconds": now, "nanos": int64(0)},
		"properties": r.properties(uid),
	}
	for key, value := range map[string]string{text: doc.Cut(r.Message, maxReportMessage), "category": r.Category, "severity": r.Severity} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

// KeepTimes gives the results of a report that were in the one before the times
// that they had, so that a scan which finds nothing new changes nothing.
func KeepTimes(after, before map[string]any) {
	type result struct{ policy, rule, result, message, description any }
	identity := func(r map[string]any) result {
		return result{r["policy"], r["rule"], r["result"], r["message"], r["description"]}
	}
	old := map[result]any{}
	for _, r := range entries(before) {
		old[identity(r)] = r["timestamp"]
	}
	for _, r := range entries(after) {
		if t := old[identity(r)]; t != nil {
			r["timestamp"] = t
		}
	}
}

func entries(report map[string]any) []map[string]any {
	list, _ := report["results"].([]any)
	var out []map[string]any
	for _, r := range list {
		if m, ok := r.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
