package report_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/report"
)

// What others wrote is text on the page, wherever it stands.
func TestPageIsText(t *testing.T) {
	const hostile = `</pre><script>'"&%s`
	page := report.Page{
		Title: hostile,
		Conversion: &report.Conversion{Policies: []report.Policy{{
			Name: hostile, Kind: hostile, File: hostile,
			Rules: []report.Rule{{Name: hostile, Target: report.Webhook, Reason: hostile}},
		}}},
		Pairs: []report.Pair{{
			Policy: hostile, Rule: hostile, File: hostile,
			Source:      []report.SourceLine{{Number: 1, Text: hostile, Mark: 1}},
			Expressions: []report.PairedExpression{{Object: hostile, Field: hostile, Text: hostile, Mark: 1}},
		}},
	}
	var out strings.Builder
	if err := page.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	const shown = `&lt;/pre&gt;&lt;script&gt;&#39;&#34;&amp;%s`
	if n := strings.Count(out.String(), shown); n < 8 {
		t.Errorf("the text is there %d times:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "%!") {
		t.Errorf("text became markup:\n%s", out.String())
	}
}
