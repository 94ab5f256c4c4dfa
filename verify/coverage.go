package verify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// An outcome is what a predicate came to.
type outcome uint8

const (
	fails outcome = iota
	holds
	errs
)

// A predicate is a condition of a rule, a key of its patterns, or whether it
// applies at all.
type predicate struct {
	rule string // as Kyverno reports it
	at   string // the place of the condition or the key; "" where the rule itself is meant
}

// coverage is what was seen of the predicates of a policy and of its verdicts.
type coverage struct {
	seen     map[predicate]*[3]bool
	verdicts map[verdict]bool
	rule     string // that is being judged
	fresh    bool   // something new was seen since it was cleared
}

type verdict struct {
	rule   string
	native vap.Outcome
	interp interp.Status
}

// newCoverage knows the predicates of the rules, none of them seen.
func newCoverage(rules []*policy.Rule) *coverage {
	c := &coverage{seen: map[predicate]*[3]bool{}, verdicts: map[verdict]bool{}}
	for _, r := range rules {
		if r.Expansion == "" { // one that was made for a kind may match all of it
			c.know(r.Name, "")
		}
		c.conditions(r.Name, r.Preconditions)
		if v := r.Validate; v != nil {
			c.body(r.Name, v.Pattern, v.AnyPattern, v.Deny, v.ForEach)
		}
	}
	return c
}

func (c *coverage) know(rule, at string) *[3]bool {
	p := predicate{rule, at}
	if c.seen[p] == nil {
		c.seen[p] = &[3]bool{}
	}
	return c.seen[p]
}

func (c *coverage) conditions(rule string, conditions *policy.Conditions) {
	if conditions == nil {
		return
	}
	for _, one := range append(slices.Clone(conditions.Any), conditions.All...) {
		c.know(rule, one.Pos.Path)
	}
}

func (c *coverage) body(rule string, pattern, anyPattern *policy.Node, deny *policy.Deny, loops []*policy.ForEach) {
	c.keys(rule, pattern, "/")
	if anyPattern != nil {
		for _, p := range anyPattern.Items {
			c.keys(rule, p, "/")
		}
	}
	if deny != nil {
		c.conditions(rule, deny.Conditions)
	}
	for _, f := range loops {
		c.conditions(rule, f.Preconditions)
		c.body(rule, f.Pattern, f.AnyPattern, f.Deny, f.ForEach)
	}
}

// keys are those of a pattern, as the interpreter tells of them.
func (c *coverage) keys(rule string, p *policy.Node, at string) {
	if p == nil {
		return
	}
	for _, f := range p.Fields {
		if strings.Contains(f.Key, "{{") {
			continue // known when it is seen
		}
		c.know(rule, at+f.Key+"/")
		name := f.Key
		if m := anchored.FindStringSubmatch(strings.TrimSpace(name)); m != nil {
			name = m[1]
		}
		if !strings.ContainsAny(name, "*?") {
			c.keys(rule, f.Value, at+name+"/")
		}
	}
	for i, item := range p.Items {
		if i == 0 || item.Kind == policy.List {
			c.keys(rule, item, at+"*/")
		}
	}
}

var index = regexp.MustCompile(`/[0-9]+/`)

// observe is told by the interpreter.
func (c *coverage) observe(o interp.Observation) {
	at := ""
	switch {
	case o.Rule != "":
		c.rule = o.Rule
		if o.Holds && c.seen[predicate{o.Rule, ""}] == nil {
			return
		}
	case o.Path != "":
		at = index.ReplaceAllString(o.Path, "/*/")
	default:
		at = o.Pos.Path
	}
	what := fails
	switch {
	case o.Err != nil:
		what = errs
	case o.Holds:
		what = holds
	}
	if seen := c.know(c.rule, at); !seen[what] {
		seen[what] = true
		c.fresh = true
	}
}

func (c *coverage) verdict(o Opinion) {
	v := verdict{o.Rule, o.Native, o.Interp}
	if !c.verdicts[v] {
		c.verdicts[v] = true
		c.fresh = true
	}
}

// bothWays counts the predicates of a rule, and those that were seen to hold and
// to fail.
func (c *coverage) bothWays(rule string) (seen, all int) {
	for p, outcomes := range c.seen {
		if p.rule != rule {
			continue
		}
		all++
		if outcomes[holds] && outcomes[fails] {
			seen++
		}
	}
	return seen, all
}

// oneWay are the predicates of a rule that were not seen both ways, sorted.
func (c *coverage) oneWay(rule string) []Unseen {
	var out []Unseen
	for p, outcomes := range c.seen {
		if p.rule == rule && !(outcomes[holds] && outcomes[fails]) {
			out = append(out, Unseen{At: p.at, Holds: outcomes[holds], Fails: outcomes[fails]})
		}
	}
	slices.SortFunc(out, func(a, b Unseen) int { return strings.Compare(a.At, b.At) })
	return out
}
