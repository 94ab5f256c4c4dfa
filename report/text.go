package report

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
)

// mostInSummary is how many policies a person reads of. Of more, those that are native
// throughout are counted.
const mostInSummary = 40

// WriteSummary writes one line for each policy and the totals: what a person
// sees at the end of a run. Where all is not set, a long table is cut.
func (c Conversion) WriteSummary(w io.Writer, all bool) error {
	rows := [][]string{{"POLICY", "KIND", "RULES", "NATIVE", "WEBHOOK", "UNSUPPORTED", "CODES"}}
	if c.Totals.toKyverno() {
		rows = [][]string{{"POLICY", "KIND", "RULES", "IN CEL", "LEFT", "CODES"}}
	}
	all = all || len(c.Policies) <= mostInSummary
	titles := c.titles()
	native, others := 0, 0 // that are not listed
	for i, p := range c.Policies {
		t := p.totals()
		switch {
		case all:
		case t.Native+t.CEL == t.Rules:
			native++
			continue
		case len(rows) > mostInSummary:
			others++
			continue
		}
		counts := []int{t.Rules, t.Native, t.Webhook, t.Unsupported}
		if c.Totals.toKyverno() {
			counts = []int{t.Rules, t.CEL, t.Left}
		}
		row := []string{titles[i], p.Kind}
		for _, n := range counts {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, codeTexts(c.told(p))))
	}
	return writeTable(w, rows, unlisted(native, others)+c.totals())
}

// told are the codes of a policy of which a line tells: others are of notes, which mostly nobody
// sees.
func (c Conversion) told(p Policy) []diag.Code {
	return slices.DeleteFunc(p.codes(), func(code diag.Code) bool {
		notes := 0
		for _, d := range c.Diagnostics {
			if d.Code == code && d.File == p.File {
				if d.Severity != diag.Note {
					return false
				}
				notes++
			}
		}
		return notes > 0
	})
}

// unlisted is the line about the policies that a summary leaves out; "" where it leaves
// out none.
func unlisted(native, others int) string {
	var parts []string
	if others > 0 {
		parts = append(parts, Count(others, "more policy that is not native throughout", "more policies that are not native throughout"))
	}
	if native > 0 {
		parts = append(parts, Count(native, "policy that is native throughout", "policies that are native throughout"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "not listed: " + strings.Join(parts, ", ") + "; -v or -o wide lists all\n"
}

// titles are the names of the policies, with a place where several have one name.
func (c Conversion) titles() []string {
	var names, places []string
	for _, p := range c.Policies {
		place := p.File
		if len(p.Rules) > 0 {
			place = diag.Pos{File: p.File, Line: p.Rules[0].Line}.String()
		}
		names, places = append(names, p.title()), append(places, place)
	}
	return apart(names, places)
}

// apart adds its place to each name that stands more than once.
func apart(names, places []string) []string {
	times := map[string]int{}
	for _, name := range names {
		times[name]++
	}
	out := slices.Clone(names)
	for i, name := range names {
		if times[name] > 1 && places[i] != "" {
			out[i] += " (" + places[i] + ")"
		}
	}
	return out
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
	titles := c.titles()
	for i, p := range c.Policies {
		for _, r := range p.Rules {
			rows = append(rows, []string{titles[i], orDash(r.Name), orDash(r.Type), string(r.Target), codeTexts(r.Codes), orDash(strings.Join(r.Objects, " "))})
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

func codeTexts(cs []diag.Code) string {
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
