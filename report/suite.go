package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// A TestRun is what a run of test suites found.
type TestRun struct {
	Suites []TestSuite `json:"suites"`
	Totals TestTotals  `json:"totals"`
	// Strict has what did not pass fail, whatever the reason.
	Strict bool `json:"-"`
}

// fails tells whether the run fails for a row.
func (r TestRun) fails(row TestRow) bool {
	return row.Result == rowFail || r.Strict && row.Result != rowPass
}

// failure is why the run fails for a row.
func (r TestRun) failure(row TestRow) string {
	if row.Result == rowFail {
		return row.Reason
	}
	return strings.TrimSpace("--strict: " + row.word() + ": " + row.Reason)
}

// A TestSuite is one suite.
type TestSuite struct {
	Name string    `json:"name"`
	File string    `json:"file"`
	Rows []TestRow `json:"rows"`
}

// A TestRow is one expected result on one resource. Result is pass, fail, deviates,
// excluded or notjudged; the last two say nothing of the policy. Native and Interp
// are empty where that judge was not asked.
type TestRow struct {
	ID       int    `json:"id"`
	Policy   string `json:"policy"`
	Rule     string `json:"rule"`
	Form     string `json:"form"` // the rule that was evaluated: itself, or an expansion
	Resource string `json:"resource"`
	Expected string `json:"expected"`
	Result   string `json:"result"`
	Reason   string `json:"reason"`
	Native   string `json:"native"`
	Interp   string `json:"interp"`
	Message  string `json:"message"`
	// Difference is how an object differs from the one that the row wants.
	Difference string `json:"difference,omitempty"`

	File string `json:"file"`
	Line int    `json:"line"`
}

// TestTotals count rows by result.
type TestTotals struct {
	Suites    int `json:"suites"`
	Tests     int `json:"tests"`
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Deviating int `json:"deviating"`
	Excluded  int `json:"excluded"`
	NotJudged int `json:"notJudged"`
}

// The results of a row.
const (
	rowPass      = "pass"
	rowFail      = "fail"
	rowDeviates  = "deviates"
	rowExcluded  = "excluded"
	rowNotJudged = "notjudged"
)

// NewTestRun numbers and counts the rows of suites.
func NewTestRun(suites []TestSuite) TestRun {
	run := TestRun{}
	for _, s := range suites {
		rows := make([]TestRow, len(s.Rows))
		for i, r := range s.Rows {
			run.Totals.count(r.Result)
			r.ID = run.Totals.Tests
			rows[i] = r
		}
		s.Rows = rows
		run.Suites = append(run.Suites, s)
		run.Totals.Suites++
	}
	return run
}

func (t *TestTotals) count(result string) {
	t.Tests++
	switch result {
	case rowPass:
		t.Passed++
	case rowFail:
		t.Failed++
	case rowDeviates:
		t.Deviating++
	case rowExcluded:
		t.Excluded++
	default:
		t.NotJudged++
	}
}

// String is the totals in a sentence.
func (t TestTotals) String() string {
	s := fmt.Sprintf("%s, %s: %d passed, %d failed", doc.Count(t.Suites, "suite", "suites"), doc.Count(t.Tests, "test", "tests"), t.Passed, t.Failed)
	if t.Deviating > 0 {
		s += fmt.Sprintf(", %d deviating", t.Deviating)
	}
	if t.Excluded > 0 {
		s += fmt.Sprintf(", %d excluded", t.Excluded)
	}
	if t.NotJudged > 0 {
		s += fmt.Sprintf(", %d not judged", t.NotJudged)
	}
	return s
}

// A TestTable says which rows and columns of a run people see.
type TestTable struct {
	// Wide shows what either judge said.
	Wide bool
	// Problems leaves out what passed.
	Problems bool
}

// Document has a table for each suite with what its failed rows have to say, and for a page the rows
// that did not pass.
func (r TestRun) Document(t TestTable) doc.Document {
	d := doc.Document{Title: "Tests", Data: r, Totals: doc.Section{Text: r.Totals.String()}, Shares: []doc.Share{r.Totals.share()}}
	d.Suites.Name = "kvap test"
	failed := doc.Section{In: doc.HTML, Title: "What failed"}
	all := doc.Section{In: doc.HTML, Title: "Suites"}
	for _, s := range r.Suites {
		title := doc.OrDash(s.Name) // old ones may have none
		shown := doc.Section{In: doc.Terminal, Text: title + " (" + s.File + ")", Table: t.rows(s)}
		page := doc.Section{In: doc.Markdown, Title: title, Table: [][]string{pageHeader()}}
		fold, totals := doc.Fold{Title: title, Note: s.File, Table: [][]string{pageHeader()}}, TestTotals{}
		junit := doc.JUnitSuite{Name: s.Name, File: s.File}
		for _, row := range s.Rows {
			totals.count(row.Result)
			cells := []string{row.Policy, doc.OrDash(row.shownRule()), doc.OrDash(row.Resource), row.Expected, row.word(), row.Reason}
			fold.Table = append(fold.Table, cells)
			if row.Result != rowPass {
				page.Table = append(page.Table, cells)
			}
			if row.Result == rowFail && row.detail() != "" {
				head := fmt.Sprintf("%d %s/%s on %s, wanted at %s:%d:", row.ID, row.Policy, doc.OrDash(row.shownRule()), row.Resource, row.File, row.Line)
				shown.Items = append(shown.Items, doc.Item{Text: head, Code: row.detail()})
			}
			if r.fails(row) {
				pos := diag.Pos{File: row.File, Line: row.Line}
				failed.Items = append(failed.Items, doc.Item{
					Of: []string{row.Policy, row.shownRule()}, Text: fmt.Sprintf("on %s: expected %s; %s", row.Resource, row.Expected, row.Reason), Place: pos.String(), Code: row.detail(),
				})
				of := strings.Join([]string{row.Policy, row.shownRule(), row.Resource, row.Expected}, " ")
				pos.Col = 1
				d.Alerts = append(d.Alerts, doc.Alert{Rule: "failed-test", Severity: diag.Error, Pos: pos, Message: of + ": " + r.failure(row), Of: of})
			}
			junit.Cases = append(junit.Cases, r.junit(row))
		}
		if len(shown.Table) > 1 || !t.Problems {
			d.Sections = append(d.Sections, shown)
		}
		fold.Bars = totals.share().Bars
		all.Folds = append(all.Folds, fold)
		d.Sections = append(d.Sections, page)
		d.Suites.Suites = append(d.Suites.Suites, junit)
	}
	d.Sections = append(d.Sections, failed, all)
	return d
}

func pageHeader() []string {
	return []string{"policy", "rule", "resource", "expected", "result", "reason"}
}

func (t TestTotals) share() doc.Share {
	return doc.Share{What: "tests passed", Bars: []doc.Bar{
		{Name: "passed", Class: "good", Count: t.Passed}, {Name: "failed", Class: "bad", Count: t.Failed}, {Name: "deviating", Class: "fair", Count: t.Deviating},
		{Name: "excluded", Class: "none", Count: t.Excluded}, {Name: "not judged", Class: "none", Count: t.NotJudged},
	}}
}

// detail is what a row has to say besides its reason.
func (r TestRow) detail() string { return cmp.Or(r.Difference, r.Message) }

func (t TestTable) rows(s TestSuite) [][]string {
	header := []string{"id", "policy", "rule", "resource", "result", "reason"}
	if t.Wide {
		header = append(header, "expected", "native", "interpreter", "message")
	}
	rows := [][]string{header}
	for _, r := range s.Rows {
		if t.Problems && r.Result == rowPass {
			continue
		}
		row := []string{strconv.Itoa(r.ID), r.Policy, doc.OrDash(r.shownRule()), doc.OrDash(r.Resource), r.word(), doc.FirstLine(r.Reason)}
		if t.Wide {
			row = append(row, r.Expected, doc.OrDash(r.Native), doc.OrDash(r.Interp), doc.FirstLine(r.Message))
		}
		rows = append(rows, row)
	}
	return rows
}

func (r TestRow) shownRule() string {
	if r.Form != "" {
		return r.Form
	}
	return r.Rule
}

// word is the result as a table has it.
func (r TestRow) word() string {
	switch r.Result {
	case rowPass:
		return "Pass"
	case rowFail:
		return "Fail"
	case rowDeviates:
		return "Deviates"
	case rowExcluded:
		return "Excluded"
	}
	return "Not judged"
}

// junit is a row for build servers. What deviates, or was excluded or not judged, is skipped there,
// unless the run is strict.
func (r TestRun) junit(row TestRow) doc.JUnitCase {
	c := doc.JUnitCase{Class: row.Policy + "." + row.shownRule(), Name: strings.TrimSpace(row.Resource + " " + row.Expected), File: row.File, Line: row.Line}
	switch {
	case r.fails(row):
		c.Failure = &doc.JUnitMessage{Message: r.failure(row), Text: row.Message}
		if row.Difference != "" {
			c.Failure.Text += "\n" + row.Difference
		}
	case row.Result != rowPass:
		c.Skipped = &doc.JUnitMessage{Message: row.Reason}
	}
	return c
}
