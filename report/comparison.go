package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// A Comparison is the evidence that Kyverno and what takes its place say the same.
type Comparison struct {
	Rules  []ComparedRule   `json:"rules"` // in the order of the policies
	Totals ComparisonTotals `json:"totals"`
}

// A ComparedRule is the evidence for one rule, as Kyverno reports it.
type ComparedRule struct {
	Policy        string         `json:"policy"` // with its namespace, if it has one
	Rule          string         `json:"rule"`
	Target        Target         `json:"target"`
	Evidence      []Evidence     `json:"evidence"` // of each source that said something
	Disagreements []Disagreement `json:"disagreements"`
	Thin          []string       `json:"thin"`  // what the evidence lacks
	Notes         []string       `json:"notes"` // what else is to be known, as why something was not compared
}

// Evidence counts what one source said of one rule.
type Evidence struct {
	Source    string `json:"source"`    // objects, reports, requests, audit or verify
	Seen      int    `json:"seen"`      // what the rule had something to say of, and both sides did
	Agreed    int    `json:"agreed"`    // the verdict was the same
	Disagreed int    `json:"disagreed"` // it was not
	Violated  int    `json:"violated"`  // some side found a violation
	Unclear   int    `json:"unclear"`   // one side's answer is not known, so nothing was compared
}

// A Disagreement is one request, or object, on which the two sides differ.
type Disagreement struct {
	Source  string  `json:"source"`
	Subject string  `json:"subject"`
	At      string  `json:"at,omitempty"` // a place in a file
	Sides   []Voice `json:"sides"`
	// Request is for kvap eval --requests; empty where only the log of it is there.
	Request json.RawMessage `json:"request,omitempty"`
}

// A Voice is what one side says.
type Voice struct {
	Who     string `json:"who"`
	Says    string `json:"says"`
	Message string `json:"message,omitempty"`
}

// ComparisonTotals count rules by what the evidence says of them.
type ComparisonTotals struct {
	Rules        int `json:"rules"`
	Agreed       int `json:"agreed"` // with evidence that is not thin
	Thin         int `json:"thin"`
	Disagreed    int `json:"disagreed"`
	Unseen       int `json:"unseen"` // no source said anything
	Observations int `json:"observations"`
}

// NewComparison counts.
func NewComparison(rules []ComparedRule) Comparison {
	c := Comparison{Rules: rules}
	for _, r := range rules {
		total := r.Total()
		c.Totals.Rules++
		c.Totals.Observations += total.Seen
		switch {
		case total.Disagreed > 0:
			c.Totals.Disagreed++
		case total.Seen == 0:
			c.Totals.Unseen++
		case len(r.Thin) > 0:
			c.Totals.Thin++
		default:
			c.Totals.Agreed++
		}
	}
	return c
}

// Total is the evidence of all sources.
func (r ComparedRule) Total() Evidence {
	var out Evidence
	for _, e := range r.Evidence {
		out.Seen += e.Seen
		out.Agreed += e.Agreed
		out.Disagreed += e.Disagreed
		out.Violated += e.Violated
		out.Unclear += e.Unclear
	}
	return out
}

// result is the evidence in a word, and why it is little.
func (r ComparedRule) result() string {
	total := r.Total()
	switch {
	case total.Disagreed > 0:
		return "DISAGREE"
	case total.Seen == 0:
		return "not compared"
	case len(r.Thin) > 0:
		return "agree; thin"
	}
	return "agree"
}

// sources says how much each source saw.
func (r ComparedRule) sources() string {
	var out []string
	for _, e := range r.Evidence {
		if e.Seen > 0 {
			out = append(out, fmt.Sprintf("%s %d", e.Source, e.Seen))
		}
	}
	return doc.OrDash(strings.Join(out, ", "))
}

// String is the totals in a sentence.
func (t ComparisonTotals) String() string {
	out := fmt.Sprintf("%s compared on %s: %d agree", doc.Count(t.Rules-t.Unseen, "rule", "rules"),
		doc.Count(t.Observations, "observation", "observations"), t.Agreed)
	if t.Thin > 0 {
		out += fmt.Sprintf(", %d agree on thin evidence", t.Thin)
	}
	out += fmt.Sprintf(", %d disagree", t.Disagreed)
	if t.Unseen > 0 {
		out += fmt.Sprintf("; no evidence for %s", doc.Count(t.Unseen, "rule", "rules"))
	}
	return out
}

// Document has a row for each rule, what the evidence lacks, and every disagreement with what both
// sides say.
func (c Comparison) Document() doc.Document {
	rows := [][]string{{"policy", "rule", "judged", "seen", "agreed", "disagreed", "violated", "unclear", "result", "evidence"}}
	disagreements := doc.Section{Title: "Disagreements"}
	for _, r := range c.Rules {
		t := r.Total()
		rows = append(rows, []string{r.Policy, r.Rule, string(r.Target), fmt.Sprint(t.Seen), fmt.Sprint(t.Agreed), fmt.Sprint(t.Disagreed),
			fmt.Sprint(t.Violated), fmt.Sprint(t.Unclear), r.result(), r.sources()})
		for i, d := range r.Disagreements {
			item := doc.Item{Text: fmt.Sprintf("DISAGREE: %s/%s on %s (%s)", r.Policy, r.Rule, d.Subject, d.where())}
			for _, v := range d.Sides {
				item.Items = append(item.Items, doc.Item{Text: strings.TrimSuffix(v.Who+": "+v.Says+": "+strings.TrimSpace(v.Message), ": ")})
			}
			if more := t.Disagreed - len(r.Disagreements); more > 0 && i == len(r.Disagreements)-1 {
				item.Items = append(item.Items, doc.Item{Text: fmt.Sprintf("and %d more of this rule", more)})
			}
			disagreements.Items = append(disagreements.Items, item)
		}
	}
	lacks := c.lacks()
	return doc.Document{
		Title: "Comparison", Data: c, Totals: doc.Section{Text: c.Totals.String()},
		Sections: []doc.Section{
			{In: doc.Terminal, Table: rows, Items: lacks}, {In: doc.Pages, Table: rows}, {In: doc.Pages, Title: "What the evidence lacks", Items: lacks}, disagreements,
		},
	}
}

// lacks are what the evidence for rules lacks, or what else is to be known of them, in the order
// of the rules; what is said of many rules is said once.
func (c Comparison) lacks() (out []doc.Item) {
	for _, r := range c.Rules {
		for _, why := range slices.Concat(r.Thin, r.Notes) {
			of := r.Policy + "/" + r.Rule
			if i := slices.IndexFunc(out, func(l doc.Item) bool { return l.Text == why }); i >= 0 {
				out[i].Of[0] += ", " + of
			} else {
				out = append(out, doc.Item{Of: []string{of}, Text: why})
			}
		}
	}
	return out
}

// where is the source, with the place in a file if there is one.
func (d Disagreement) where() string {
	if d.At == "" {
		return d.Source
	}
	return d.Source + ", " + d.At
}
