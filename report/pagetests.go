package report

import "github.com/kvap/kvap/diag"

type shownSuite struct {
	Name, File string
	Share      *share
	Rows       []shownTest
}

// A shownTest is a row as the page has it.
type shownTest struct {
	TestRow
	Of, Word, Class, Place string
}

// tests shows what failed, and all of it.
func (v *view) tests(r TestRun) {
	v.Passed = r.Totals.share()
	v.Passed.Note = Count(r.Totals.Suites, "suite", "suites")
	for _, s := range r.Suites {
		suite := shownSuite{Name: s.title(), File: s.File}
		var totals TestTotals
		for _, row := range s.Rows {
			totals.count(row.Result)
			shown := shownTest{row, row.shownRule(), row.word(), classOfResult(row.Result), diag.Pos{File: row.File, Line: row.Line}.String()}
			suite.Rows = append(suite.Rows, shown)
			switch {
			case !r.fails(row):
			case len(v.Failed) < most:
				v.Failed = append(v.Failed, shown)
			default:
				v.Unshown++
			}
		}
		suite.Share = totals.share()
		v.Suites = append(v.Suites, suite)
	}
}

func (t TestTotals) share() *share {
	return sharesOf("tests passed", bar{Name: "passed", Class: "good", Count: t.Passed}, bar{Name: "failed", Class: "bad", Count: t.Failed},
		bar{Name: "deviating", Class: "fair", Count: t.Deviating}, bar{Name: "excluded", Class: "none", Count: t.Excluded},
		bar{Name: "not judged", Class: "none", Count: t.NotJudged})
}

func classOfResult(result string) string {
	switch result {
	case rowPass:
		return "good"
	case rowFail:
		return "bad"
	}
	return "fair"
}
