package suite

import "github.com/kvap/kvap/diag"

// A Verdict is what became of one row on one resource.
type Verdict string

// The verdicts. Deviates is that of a row on which kvap differs from Kyverno on
// purpose. Excluded is that of a row that Kyverno passes although no rule looked at
// the resource; it proves nothing.
const (
	Passed    Verdict = "pass"
	Failed    Verdict = "fail"
	Deviates  Verdict = "deviates"
	Excluded  Verdict = "excluded"
	NotJudged Verdict = "notjudged"
)

// A RowResult is one row on one resource.
type RowResult struct {
	Pos      diag.Pos // of the row
	Policy   string
	Rule     string // as the row names it
	Resource string // kind, namespace and name
	Kind     string
	// Form is the name of the rule that was evaluated: the row's, or one of its
	// expansions. It is empty where none was.
	Form     string
	Expected string
	// Native and Interp are what the judges say, empty where one was not asked.
	Native, Interp string
	Verdict        Verdict
	Reason         string
	Message        string // the rule's, where it has one
	// Difference is how an object differs from the one that the row wants, line by
	// line.
	Difference string
}

// Results are those of a suite.
type Results struct {
	Suite *Suite
	Rows  []RowResult
}
