package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
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
	run := TestRun{Suites: []TestSuite{}}
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
	s := fmt.Sprintf("%s, %s: %d passed, %d failed", Count(t.Suites, "suite", "suites"), Count(t.Tests, "test", "tests"), t.Passed, t.Failed)
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

// WriteText writes a table for each suite, and the totals.
func (r TestRun) WriteText(w io.Writer, t TestTable) error {
	for _, s := range r.Suites {
		rows := t.rows(s)
		if len(rows) == 1 && t.Problems {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s (%s)\n", inLine(s.title()), inLine(s.File)); err != nil {
			return err
		}
		if err := writeTable(w, rows, s.why()); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, r.Totals.String()+"\n")
	return err
}

// why is what the failed rows have to say besides their reasons.
func (s TestSuite) why() string {
	var b strings.Builder
	for _, r := range s.Rows {
		if r.Result != rowFail || r.Message+r.Difference == "" {
			continue
		}
		text := r.Message
		if r.Difference != "" {
			text = r.Difference
		}
		writeBlock(&b, fmt.Sprintf("%d %s/%s on %s, wanted at %s:%d:", r.ID, r.Policy, orDash(r.shownRule()), r.Resource, r.File, r.Line), text)
	}
	return b.String()
}

// title is the name of a suite; old ones may have none.
func (s TestSuite) title() string { return orDash(s.Name) }

func (t TestTable) rows(s TestSuite) [][]string {
	header := []string{"ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON"}
	if t.Wide {
		header = append(header, "EXPECTED", "NATIVE", "INTERPRETER", "MESSAGE")
	}
	rows := [][]string{header}
	for _, r := range s.Rows {
		if t.Problems && r.Result == rowPass {
			continue
		}
		row := []string{strconv.Itoa(r.ID), r.Policy, orDash(r.shownRule()), orDash(r.Resource), r.word(), firstLine(r.Reason)}
		if t.Wide {
			row = append(row, r.Expected, orDash(r.Native), orDash(r.Interp), firstLine(r.Message))
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

// WriteJSON writes the form that programs read.
func (r TestRun) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the form that build servers read. What deviates, or was
// excluded or not judged, is skipped there, unless the run is strict.
func (r TestRun) WriteJUnit(w io.Writer) error {
	out := junitSuites{Name: "kvap test"}
	for _, s := range r.Suites {
		suite := junitSuite{Name: s.Name, File: s.File}
		for _, row := range s.Rows {
			suite.add(r, row)
		}
		out.Tests += suite.Tests
		out.Failures += suite.Failures
		out.Skipped += suite.Skipped
		out.Suites = append(out.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(run TestRun, r TestRow) {
	c := junitCase{Class: r.Policy + "." + r.shownRule(), Name: strings.TrimSpace(r.Resource + " " + r.Expected), File: r.File, Line: r.Line}
	s.Tests++
	switch {
	case run.fails(r):
		s.Failures++
		c.Failure = &junitMessage{run.failure(r), r.Message}
		if r.Difference != "" {
			c.Failure.Text += "\n" + r.Difference
		}
	case r.Result != rowPass:
		s.Skipped++
		c.Skipped = &junitMessage{Message: r.Reason}
	}
	s.Cases = append(s.Cases, c)
}
