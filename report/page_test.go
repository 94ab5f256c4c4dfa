package report_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// What others wrote is text on the page, wherever it stands.
func TestPageIsText(t *testing.T) {
	const hostile = `</pre><script>'"&%s`
	conversion := report.New([]report.Policy{{
		Name: hostile, Kind: hostile, File: hostile,
		Rules: []report.Rule{{Name: hostile, Target: report.Webhook, Reason: hostile}},
	}}, nil)
	page := conversion.Document(report.ConversionView{Pairs: []report.Pair{{
		Policy: hostile, Rule: hostile, File: hostile,
		Source:      []doc.SourceLine{{Number: 1, Text: hostile, Mark: 1}},
		Expressions: []doc.PairedExpression{{Object: hostile, Field: hostile, Text: hostile, Mark: 1}},
	}}})
	page.Title = hostile
	var out strings.Builder
	if err := page.Write(&out, doc.Options{Format: "html"}); err != nil {
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
