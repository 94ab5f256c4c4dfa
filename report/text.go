package report

import (
	"io"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
)

// WriteSummary writes one line for each policy and the totals: what a person
// sees at the end of a run.
func (c Conversion) WriteSummary(w io.Writer) error {
	rows := [][]string{{"POLICY", "KIND", "RULES", "NATIVE", "WEBHOOK", "UNSUPPORTED", "CODES"}}
	for _, p := range c.Policies {
		t := p.totals()
		rows = append(rows, []string{
			p.title(), p.Kind, strconv.Itoa(t.Rules), strconv.Itoa(t.Native), strconv.Itoa(t.Webhook),
			strconv.Itoa(t.Unsupported), codes(p.codes()),
		})
	}
	return writeTable(w, rows, c.totals())
}

// totals are the lines below a table.
func (c Conversion) totals() string {
	lines := []string{c.Totals.String()}
	for _, line := range []string{c.excluded(), c.busiest()} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// WriteText writes one line for each rule and the totals.
func (c Conversion) WriteText(w io.Writer) error {
	rows := [][]string{{"POLICY", "RULE", "TYPE", "TARGET", "CODES", "OBJECTS"}}
	for _, p := range c.Policies {
		for _, r := range p.Rules {
			rows = append(rows, []string{p.title(), r.Name, r.Type, string(r.Target), codes(r.Codes), orDash(strings.Join(r.Objects, " "))})
		}
	}
	return writeTable(w, rows, c.totals())
}

// title is the name as users write it: with the namespace of a namespaced policy.
func (p Policy) title() string {
	if p.Namespace == "" {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

func (p Policy) totals() Totals {
	var t Totals
	for _, r := range p.Rules {
		t.count(r.Target)
	}
	return t
}

// codes are those of the rules, each once, in order of appearance.
func (p Policy) codes() []diag.Code {
	var cs []diag.Code
	seen := map[diag.Code]bool{}
	for _, r := range p.Rules {
		for _, c := range r.Codes {
			if !seen[c] {
				seen[c] = true
				cs = append(cs, c)
			}
		}
	}
	return cs
}

func codes(cs []diag.Code) string {
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = c.String()
	}
	return orDash(strings.Join(words, " "))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
