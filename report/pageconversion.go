package report

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

type shownPolicy struct {
	Title, Kind, File string
	Rules             []shownRule
	Share             *share
}

type shownRule struct {
	Name, Target, Codes, Reason string
	Pair                        *Pair
}

// conversion shows where each rule went, and what is to be known of it.
func (v *view) conversion(c Conversion, pairs []Pair) {
	v.Known, v.Rules = true, c.Totals.share()
	v.Rules.Note = Count(c.Totals.Policies, "policy", "policies")
	if excluded := c.excluded(); excluded != "" {
		v.Rules.Note += "; " + excluded
	}
	v.Behind = behind(c)
	beside := pairsOf(pairs)
	room := mostPaired
	for _, policy := range c.Policies {
		shown := shownPolicy{Title: policy.title(), Kind: policy.Kind, File: policy.File, Share: policy.totals().share()}
		for _, r := range policy.Rules {
			rule := shownRule{Name: r.Name, Target: string(r.Target), Codes: codeTexts(r.Codes), Reason: r.Reason}
			if pair := beside[pairKey{policy.Namespace, policy.Name, policy.File, r.Name}]; pair != nil {
				if room -= pair.size(); room > 0 {
					rule.Pair = pair
				} else {
					v.Unpaired = true
				}
			}
			shown.Rules = append(shown.Rules, rule)
		}
		v.Policies = append(v.Policies, shown)
	}
}

func (t Totals) share() *share {
	return sharesOf("rules are native", bar{Name: "native", Class: "good", Count: t.Native}, bar{Name: "webhook", Class: "fair", Count: t.Webhook},
		bar{Name: "unsupported", Class: "bad", Count: t.Unsupported})
}

// mostPaired is how many characters of sources and expressions the page has.
const mostPaired = 4 << 20

type pairKey struct{ namespace, policy, file, rule string }

func pairsOf(pairs []Pair) map[pairKey]*Pair {
	out := map[pairKey]*Pair{}
	for i := range pairs {
		p := &pairs[i]
		out[pairKey{p.Namespace, p.Policy, p.File, p.Rule}] = p
	}
	return out
}

// size is how many characters the pair has.
func (p *Pair) size() int {
	n := 0
	for _, l := range p.Source {
		n += len(l.Text)
	}
	for _, e := range p.Expressions {
		n += len(e.Text)
	}
	return n
}

// behind are the codes for which rules are not native, the most frequent first.
func behind(c Conversion) []codeGroup {
	var out []codeGroup
	for _, p := range c.Policies {
		for _, r := range p.Rules {
			if r.Target == Native || r.Target == CEL {
				continue
			}
			var g *codeGroup
			var code diag.Code
			if len(r.Codes) > 0 {
				code = r.Codes[0]
			}
			out, g = groupFor(out, code, classOf(r.Target))
			g.add(item{Message: r.Reason, Of: p.title() + " / " + r.Name, Place: diag.Pos{File: p.File, Line: r.Line}.String()})
		}
	}
	slices.SortStableFunc(out, func(a, b codeGroup) int { return b.Count - a.Count })
	return out
}

// groupFor is the group of a code, or of what has none.
func groupFor(list []codeGroup, code diag.Code, class string) ([]codeGroup, *codeGroup) {
	if code != 0 {
		return groupOf(list, code, class)
	}
	if i := slices.IndexFunc(list, func(g codeGroup) bool { return g.Code == "" }); i >= 0 {
		return list, &list[i]
	}
	list = append(list, codeGroup{Title: "without a code", Class: class})
	return list, &list[len(list)-1]
}

func classOf(t Target) string {
	if t == Webhook {
		return "fair"
	}
	return "bad"
}

// diagnostics shows what a conversion warns of. Why a rule is not native is told
// already.
func (v *view) diagnostics(c Conversion) {
	for _, d := range c.Diagnostics {
		switch {
		case d.Severity == diag.Note:
			v.Notes++
		case d.Code < 200 || d.Code > 299:
			var g *codeGroup
			v.Findings, g = groupOf(v.Findings, d.Code, d.Severity.String())
			g.addOnce(item{Message: d.Message, Place: diag.Pos{File: d.File, Line: d.Line, Col: d.Column, Path: d.Path}.String()})
		}
	}
}
