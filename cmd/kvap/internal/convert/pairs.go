package convert

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/vap"
)

// Pairs are the native rules beside what they became.
func (done *Compilation) Pairs(sources []input.Source) []report.Pair {
	texts := map[string][]string{}
	for _, s := range sources {
		texts[s.Name] = strings.Split(strings.ReplaceAll(string(s.Data), "\r\n", "\n"), "\n")
	}
	var out []report.Pair
	for _, r := range done.Rules {
		if len(r.Objects) > 0 {
			out = append(out, done.pair(r, texts[r.Pos().File]))
		}
	}
	return out
}

func (done *Compilation) pair(r *compile.Rule, lines []string) report.Pair {
	p := report.Pair{Policy: r.Policy.Name, Namespace: r.Policy.Within(), Rule: r.Name(), File: r.Policy.Pos.File}
	marks := map[int]int{} // by line of the source
	for _, f := range r.Forms {
		for _, place := range f.Places {
			p.Expressions = append(p.Expressions, expressionsOf(done.Objects[place.Object], place.Member, marks)...)
		}
	}
	node := r.Policy.Source
	if r.Source != nil {
		node = r.Source.Source
	}
	first, last := r.Pos().Line, lastLine(node)
	for i := first; i <= min(last, len(lines)); i++ {
		p.Source = append(p.Source, doc.SourceLine{Number: i, Text: lines[i-1], Mark: marks[i]})
	}
	return p
}

// expressionsOf are the expressions that enforce one member of an object. Marks are
// given to the lines that they come from.
func expressionsOf(o vap.Objects, member int, marks map[int]int) []doc.PairedExpression {
	const colours = 5
	var out []doc.PairedExpression
	for i, c := range o.Policy.Spec.MatchConditions {
		out = append(out, doc.PairedExpression{Object: o.Policy.Name, Field: fmt.Sprintf("matchConditions[%d]", i), Text: c.Expression})
	}
	for i, v := range o.Policy.Spec.Variables {
		out = append(out, doc.PairedExpression{Object: o.Policy.Name, Field: fmt.Sprintf("variables[%d] %s", i, v.Name), Text: v.Expression})
	}
	for i, v := range o.Policy.Spec.Validations {
		from := o.Draft.Validations[i]
		if !from.Of(member) {
			continue
		}
		if marks[from.Pos.Line] == 0 {
			marks[from.Pos.Line] = len(marks)%colours + 1
		}
		out = append(out, doc.PairedExpression{
			Object: o.Policy.Name, Field: fmt.Sprintf("validations[%d]", i), Text: v.Expression, Mark: marks[from.Pos.Line],
		})
	}
	return out
}

// lastLine is about where a node ends.
func lastLine(n *policy.Node) int {
	if n == nil {
		return 0
	}
	last := n.Pos.Line
	for _, f := range n.Fields {
		last = max(last, lastLine(f.Value))
	}
	for _, item := range n.Items {
		last = max(last, lastLine(item))
	}
	if n.Kind == policy.String {
		last += strings.Count(strings.TrimRight(n.Str, "\n"), "\n")
	}
	return last
}
