package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
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
	c := Comparison{Rules: filled(rules)}
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Evidence = filled(r.Evidence)
		r.Disagreements = filled(r.Disagreements)
		r.Thin = filled(r.Thin)
		r.Notes = filled(r.Notes)
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

// filled is a copy of a list that is never null in JSON.
func filled[T any](list []T) []T { return append([]T{}, list...) }

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
	return orDash(strings.Join(out, ", "))
}

// String is the totals in a sentence.
func (t ComparisonTotals) String() string {
	out := fmt.Sprintf("%s compared on %s: %d agree", Count(t.Rules-t.Unseen, "rule", "rules"),
		Count(t.Observations, "observation", "observations"), t.Agreed)
	if t.Thin > 0 {
		out += fmt.Sprintf(", %d agree on thin evidence", t.Thin)
	}
	out += fmt.Sprintf(", %d disagree", t.Disagreed)
	if t.Unseen > 0 {
		out += fmt.Sprintf("; no evidence for %s", Count(t.Unseen, "rule", "rules"))
	}
	return out
}

// WriteJSON writes the form that programs read.
func (c Comparison) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

func (c Comparison) rows() [][]string {
	rows := [][]string{{"POLICY", "RULE", "JUDGED", "SEEN", "AGREED", "DISAGREED", "VIOLATED", "UNCLEAR", "RESULT", "EVIDENCE"}}
	for _, r := range c.Rules {
		t := r.Total()
		rows = append(rows, []string{r.Policy, r.Rule, string(r.Target), fmt.Sprint(t.Seen), fmt.Sprint(t.Agreed), fmt.Sprint(t.Disagreed),
			fmt.Sprint(t.Violated), fmt.Sprint(t.Unclear), r.result(), r.sources()})
	}
	return rows
}

// A lack is what the evidence for some rules lacks, or what else is to be known of them.
type lack struct {
	why string
	of  []string // policy/rule
}

// lacks are in the order of the rules; what is said of many rules is said once.
func (c Comparison) lacks() (out []*lack) {
	for _, r := range c.Rules {
		for _, why := range slices.Concat(r.Thin, r.Notes) {
			i := slices.IndexFunc(out, func(l *lack) bool { return l.why == why })
			if i < 0 {
				i, out = len(out), append(out, &lack{why: why})
			}
			out[i].of = append(out[i].of, r.Policy+"/"+r.Rule)
		}
	}
	return out
}

// WriteTable writes a row for each rule, what the evidence lacks, and every
// disagreement with what both sides say.
func (c Comparison) WriteTable(w io.Writer) error {
	var foot strings.Builder
	for _, l := range c.lacks() {
		fmt.Fprintf(&foot, "%s: %s\n", strings.Join(l.of, ", "), l.why)
	}
	for _, r := range c.Rules {
		for _, d := range r.Disagreements {
			d.write(&foot, r)
		}
		if more := r.Total().Disagreed - len(r.Disagreements); more > 0 && len(r.Disagreements) > 0 {
			fmt.Fprintf(&foot, "  and %d more of this rule\n", more)
		}
	}
	if c.Totals.Disagreed > 0 {
		foot.WriteByte('\n')
	}
	return writeTable(w, c.rows(), foot.String()+c.Totals.String())
}

func (d Disagreement) write(b *strings.Builder, r ComparedRule) {
	fmt.Fprintf(b, "\nDISAGREE: %s/%s on %s (%s)\n", r.Policy, r.Rule, d.Subject, d.where())
	for _, v := range d.Sides {
		writeIndented(b, v.Who, strings.TrimSuffix(v.Says+": "+strings.TrimSpace(v.Message), ": "))
	}
}

// where is the source, with the place in a file if there is one.
func (d Disagreement) where() string {
	if d.At == "" {
		return d.Source
	}
	return d.Source + ", " + d.At
}

// WriteMarkdown writes a page for the change request.
func (c Comparison) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Comparison\n\n%s.\n", c.Totals)
	if len(c.Rules) > 0 {
		b.WriteString("\n| policy | rule | judged | seen | agreed | disagreed | violated | unclear | result | evidence |\n|---|---|---|---|---|---|---|---|---|---|\n")
		for _, r := range c.rows()[1:] {
			for i := range r {
				r[i] = tableCell(r[i])
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		}
	}
	head := "\n## What the evidence lacks\n\n"
	for _, l := range c.lacks() {
		fmt.Fprintf(&b, "%s- %s: %s\n", head, inline(strings.Join(l.of, ", ")), inline(l.why))
		head = ""
	}
	head = "\n## Disagreements\n\n"
	for _, r := range c.Rules {
		for _, d := range r.Disagreements {
			fmt.Fprintf(&b, "%s- %s / %s on %s (%s)\n", head, inline(r.Policy), inline(r.Rule), inline(d.Subject), inline(d.where()))
			head = ""
			for _, v := range d.Sides {
				fmt.Fprintf(&b, "  - %s: %s\n", inline(v.Who), inline(strings.TrimSuffix(v.Says+": "+v.Message, ": ")))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
