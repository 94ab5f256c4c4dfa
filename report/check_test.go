package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

const hostile = "<script>alert('x')</script>|`*_\n::error::%0A\x01\"&"

// found is a check with names and texts that no renderer may take for its own markup.
func found() report.Check { return foundAt(0) }

// foundAt is the check with its findings some lines below.
func foundAt(line int) report.Check {
	return checkOf([]report.CheckedObject{
		{
			Kind: "ValidatingAdmissionPolicy", Name: hostile, File: "a b/" + hostile + ".yaml", Line: 3, Releases: []string{"1.30", "1.36"}, Generated: true,
			TypeChecking: []report.PredictedWarning{{FieldRef: "spec.validations[0].expression", Warning: hostile}},
			Cost:         []report.ExpressionCost{{Field: "spec.validations[0].expression", Estimate: 2_000_000, Measured: 1_500_000, Limit: 1_000_000, Safe: "up to 3 " + hostile}},
			Findings: []report.Finding{
				{Code: diag.UndefinedField, Severity: diag.Error, Release: "1.30", Field: "spec.validations[0].expression", File: "a b/" + hostile + ".yaml", Line: 4 + line, Column: 7, Message: hostile, Expression: hostile, ExpressionLine: 1, ExpressionColumn: 2},
				{Code: diag.UndefinedField, Severity: diag.Error, Release: "1.36", Field: "spec.validations[0].expression", File: "a b/" + hostile + ".yaml", Line: 4 + line, Column: 7, Message: hostile, Expression: hostile, ExpressionLine: 1, ExpressionColumn: 2},
				{Code: diag.CostNearLimit, Severity: diag.Warning, File: "b.yaml", Message: hostile},
				{Code: diag.StatusFalseAlarm, Severity: diag.Note, Release: "1.36", Message: hostile, Known: true},
			},
		},
		{Kind: "ValidatingAdmissionPolicyBinding", Name: "clean", File: "b.yaml", Line: 1, Releases: []string{"1.36"}},
	})
}

// checkOf is a check for two releases, of which nothing is accepted.
func checkOf(objects []report.CheckedObject) report.Check {
	return report.NewCheck(objects, nil, []string{"1.30", "1.36"}, func(report.Finding, diag.Pos) string { return "" })
}

func TestCheckTotals(t *testing.T) {
	c := found()
	if got, want := c.Totals, (report.CheckTotals{Objects: 2, Errors: 1, Warnings: 1, Notes: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if e, w, n := c.Totals.AtLeast(diag.Error), c.Totals.AtLeast(diag.Warning), c.Totals.AtLeast(diag.Note); e != 1 || w != 2 || n != 3 {
		t.Errorf("at least: %d %d %d", e, w, n)
	}
}

// What names its release is one finding for several all the same; what differs otherwise is not.
func TestCheckJoinsReleases(t *testing.T) {
	of := func(release, message string) report.Finding {
		return report.Finding{Code: diag.UnknownField, Severity: diag.Warning, Release: release, File: "a.yaml", Line: 4, Message: message}
	}
	c := report.NewCheck(nil, []report.Finding{
		of("1.30", "no Pod has a field x in Kubernetes 1.30"), of("1.36", "no Pod has a field x in Kubernetes 1.36"), of("1.36", "no Pod has a field y in Kubernetes 1.36"),
	}, []string{"1.30", "1.36"}, func(report.Finding, diag.Pos) string { return "" })
	if c.Totals.Warnings != 2 || len(c.Diagnostics) != 2 || len(c.Diagnostics[0].Releases) != 2 || len(c.Diagnostics[1].Releases) != 1 {
		t.Errorf("%+v", c.Diagnostics)
	}
}

// The JSON of a check is an interface: fields are added, never renamed or dropped.
func TestCheckJSONKeys(t *testing.T) {
	var b bytes.Buffer
	if err := doc.WriteJSON(&b, found()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Objects []map[string]any
		Totals  map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"kind", "name", "file", "line", "releases", "typeChecking", "cost", "findings"} {
		if _, ok := got.Objects[1][key]; !ok || got.Objects[1][key] == nil {
			t.Errorf("an object has no %s", key)
		}
	}
	finding := got.Objects[0]["findings"].([]any)[0].(map[string]any)
	for _, key := range []string{"code", "severity", "release", "field", "file", "line", "column", "message", "known"} {
		if _, ok := finding[key]; !ok {
			t.Errorf("a finding has no %s", key)
		}
	}
	for _, key := range []string{"objects", "errors", "warnings", "notes"} {
		if _, ok := got.Totals[key]; !ok {
			t.Errorf("the totals have no %s", key)
		}
	}
}

// What SARIF 2.1.0 requires of a log, and code scanning of its results.
func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := found().Document(report.CheckView{}).Write(&b, doc.Options{Format: "sarif"}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Schema, Version string
		Runs            []struct {
			ColumnKind string
			Tool       struct {
				Driver struct {
					Name, InformationURI string
					Rules                []struct {
						ID, Name, HelpURI                       string
						ShortDescription, FullDescription, Help struct{ Text string }
						DefaultConfiguration                    struct{ Level string }
					}
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           *struct{ StartLine, StartColumn int }
					}
				}
				PartialFingerprints map[string]string
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || !slices.Contains([]string{"utf16CodeUnits", "unicodeCodePoints"}, log.Runs[0].ColumnKind) {
		t.Fatalf("%+v", log)
	}
	run, levels, prints := log.Runs[0], []string{"none", "note", "warning", "error"}, map[string]bool{}
	for _, r := range run.Tool.Driver.Rules {
		if r.ID == "" || r.Name == "" || r.ShortDescription.Text == "" || r.FullDescription.Text == "" || r.Help.Text == "" ||
			!strings.Contains(r.HelpURI, "codes.md#kv") || !slices.Contains(levels, r.DefaultConfiguration.Level) {
			t.Errorf("a rule lacks something: %+v", r)
		}
	}
	if run.Tool.Driver.Name != "kvap" || len(run.Results) != 3 { // what is the same in two releases is one alert
		t.Errorf("%d results of %s", len(run.Results), run.Tool.Driver.Name)
	}
	for _, r := range run.Results {
		if r.Message.Text == "" || !slices.Contains(levels, r.Level) || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("a result lacks something: %+v", r)
		}
		for _, l := range r.Locations {
			if uri := l.PhysicalLocation.ArtifactLocation.URI; strings.ContainsAny(uri, " <>\"\n|`") || uri == "" {
				t.Errorf("%q is no reference", uri)
			}
			if region := l.PhysicalLocation.Region; region != nil && (region.StartLine < 1 || region.StartColumn < 1) {
				t.Errorf("region %+v", region)
			}
		}
		if print := r.PartialFingerprints["kvap/v1"]; len(print) != 32 || prints[print] {
			t.Errorf("the fingerprint %q is none, or stands twice", print)
		} else {
			prints[print] = true
		}
	}
}

// A fingerprint stays when lines move.
func TestFingerprint(t *testing.T) {
	prints := func(line int) string {
		var b bytes.Buffer
		if err := foundAt(line).Document(report.CheckView{}).Write(&b, doc.Options{Format: "sarif"}); err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(`"kvap/v1": "\w+"`).FindAllString(b.String(), -1)
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if prints(0) != prints(10) {
		t.Error("the fingerprints depend on the lines")
	}
}

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	if err := found().Document(report.CheckView{}).Write(&b, doc.Options{Format: "github"}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
	for _, line := range lines {
		if !regexp.MustCompile(`^::(error|warning|notice) ((file|line|col|title)=[^,:\n]*,?)+::.*$`).MatchString(line) {
			t.Errorf("no command: %s", line)
		}
	}
}

func TestCheckJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := found().Document(report.CheckView{Fails: diag.Warning}).Write(&b, doc.Options{Format: "junit"}); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name string `xml:"name,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Tests != 4 || suites.Failures != 2 || suites.Skipped != 1 || len(suites.Suites) != 2 || suites.Suites[1].Cases[0].Name != "no findings" {
		t.Errorf("%+v\n%s", suites, b.String())
	}
}

// Names and messages make no links, no pictures and no markup.
func TestMarkdownIsInert(t *testing.T) {
	const evil = "![x](https://evil.example/p.png) [y][z] `c` \\](u) <img src=x>\n[z]: https://evil.example\n# head"
	conversion := report.New([]report.Policy{{Name: evil, Kind: "ClusterPolicy", File: evil, Rules: []report.Rule{{Name: evil, Target: report.Webhook, Reason: evil}}}},
		diag.List{diag.Warnf(diag.Pos{File: evil, Line: 1}, diag.CompilerFault, "%s", evil)})
	check := checkOf([]report.CheckedObject{{Kind: "K", Name: evil, Findings: []report.Finding{{Code: diag.UndefinedField, File: evil, Field: evil, Message: evil}}}})
	var b bytes.Buffer
	markdown := doc.Options{Format: "markdown"}
	if err := errors.Join(conversion.Document(report.ConversionView{}).Write(&b, markdown), check.Document(report.CheckView{}).Write(&b, markdown)); err != nil {
		t.Fatal(err)
	}
	prose := regexp.MustCompile("(?s)`` .*? ``").ReplaceAllString(b.String(), "") // what is code is code
	for _, bad := range []string{"](", "][", "]:", "<img", "\n# head", "\n[z]"} {
		if strings.Contains(prose, bad) {
			t.Errorf("the page has %q:\n%s", bad, prose)
		}
	}
}

func TestCheckMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := found().Document(report.CheckView{}).Write(&b, doc.Options{Format: "markdown"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") {
		t.Error("markup of a name reaches the page")
	}
	for line := range strings.Lines(b.String()) {
		if cells := len(regexp.MustCompile(`[^\\]\|`).FindAllString(line, -1)); strings.HasPrefix(line, "| error") && cells != 5 {
			t.Errorf("%d cells: %s", cells, line)
		}
	}
}

// What is much is left out of the page, and the page says so.
func TestHTMLIsBounded(t *testing.T) {
	var objects []report.CheckedObject
	for i := range 10_000 {
		objects = append(objects, report.CheckedObject{Name: "p", Findings: []report.Finding{{Code: diag.UndefinedField, Severity: diag.Error, File: "p.yaml", Line: i, Message: "no field"}}})
	}
	check := checkOf(objects)
	var b bytes.Buffer
	if err := check.Document(report.CheckView{}).Write(&b, doc.Options{Format: "html"}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 100_000 || !strings.Contains(b.String(), "10000 &times;") || !strings.Contains(b.String(), "9950 more are left out here") {
		t.Errorf("%d bytes:\n%.2000s", b.Len(), b.String())
	}
}

// What is said of each form of a rule stands on the page once, and counts once.
func TestHTMLSaysOnce(t *testing.T) {
	said := report.Diagnostic{Code: diag.GuessedResource, Severity: diag.Warning, File: "p.yaml", Line: 3, Message: "it is guessed"}
	elsewhere := said
	elsewhere.Line = 4
	conversion := report.Conversion{Diagnostics: []report.Diagnostic{said, said, elsewhere}}
	var b bytes.Buffer
	if err := conversion.Document(report.ConversionView{}).Write(&b, doc.Options{Format: "html"}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "it is guessed"); n != 2 || !strings.Contains(b.String(), "2 &times;") {
		t.Errorf("said %d times:\n%s", n, b.String())
	}
}

// The page loads nothing, and takes no name for markup.
func TestHTML(t *testing.T) {
	check := found()
	conversion := report.New([]report.Policy{{Name: hostile, Kind: "ClusterPolicy", File: hostile, Rules: []report.Rule{
		{Name: hostile, Target: report.Native, Objects: []string{hostile}},
		{Name: "kept", Target: report.Webhook, Codes: []diag.Code{diag.CompilerFault}, Reason: hostile},
	}}}, nil)
	tests := report.NewTestRun([]report.TestSuite{{Name: hostile, File: hostile, Rows: []report.TestRow{{Policy: hostile, Rule: hostile, Result: "fail", Reason: hostile}}}})
	pairs := []report.Pair{{
		Policy: hostile, Rule: hostile, File: hostile, Source: []doc.SourceLine{{Number: 1, Text: hostile, Mark: 1}},
		Expressions: []doc.PairedExpression{{Object: hostile, Field: hostile, Text: hostile, Mark: 1}},
	}}
	var b bytes.Buffer
	page := doc.Options{Format: "html", By: doc.By{Version: hostile, Command: hostile}}
	if err := errors.Join(check.Document(report.CheckView{Conversion: &conversion, Pairs: pairs}).Write(&b, page), tests.Document(report.TestTable{}).Write(&b, page)); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"<script", "src=", "href=", "url(", "@import", "ZgotmplZ", "http://", "https://"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, want := range []string{"<b>1</b> of 2 rules are native", "<b>1</b> of 2 objects have no findings", "What failed", "Rules that are not native", "Findings", "What it costs per request", "KV405", "prefers-color-scheme: dark", "max-width: 48rem", "1,500,000"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, tag := range []string{"div", "section", "details", "pre", "table", "svg", "p", "ul"} {
		open := len(regexp.MustCompile(`<`+tag+`[ >]`).FindAllString(text, -1))
		if closed := strings.Count(text, "</"+tag+">"); open != closed {
			t.Errorf("%d <%s> and %d </%s>", open, tag, closed, tag)
		}
	}
}
