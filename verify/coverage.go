package verify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A predicateOutcome is what a predicate came to.
type predicateOutcome uint8

const (
	fails predicateOutcome = iota
	holds
	errs
)

// A predicate is a condition of a rule, a key of its patterns, or whether it
// applies at all.
type predicate struct {
	rule int    // its place; -1 for none
	at   string // the place of the condition or the key; "" where the rule itself is meant
}

// A CoveredRule is a rule as the interpreter tells of it.
type CoveredRule struct {
	Name   string
	Source *policy.Rule // as expanded; nil for a policy in CEL
	// Whole tells, of a rule without a source, that it is the policy as written.
	Whole bool
}

// Coverage is what was seen of the predicates of rules, and of what was said of them.
type Coverage struct {
	rules int
	seen  map[predicate]*[3]bool
	notes map[any]bool
	named map[string][]int // long names may be cut to the same
	begun map[string]int   // how many rules of a name have been judged of the request at hand
	rule  int              // that is being judged
	fresh bool             // something new was seen of the request at hand
}

// NewCoverage knows the predicates of the rules, none of them seen.
func NewCoverage(rules []CoveredRule) *Coverage {
	c := &Coverage{rules: len(rules), seen: map[predicate]*[3]bool{}, notes: map[any]bool{}, named: map[string][]int{}}
	for i, f := range rules {
		c.named[f.Name] = append(c.named[f.Name], i)
		r := f.Source
		if r == nil {
			if f.Whole {
				c.know(i, "")
			}
			continue
		}
		if r.Expansion == "" { // one that was made for a kind may match all of it
			c.know(i, "")
		}
		c.conditions(i, r.Preconditions)
		if v := r.Validate; v != nil {
			c.body(i, v.Pattern, v.AnyPattern, v.Deny, v.ForEach)
		}
	}
	return c
}

// Rules is how many rules there are.
func (c *Coverage) Rules() int { return c.rules }

// Begin is told of a new request.
func (c *Coverage) Begin() { c.begun, c.rule, c.fresh = map[string]int{}, -1, false }

// Fresh tells that something new was seen of the request.
func (c *Coverage) Fresh() bool { return c.fresh }

// beginRule is told of the next rule of a name.
func (c *Coverage) beginRule(name string) {
	c.rule = -1
	if n := c.begun[name]; n < len(c.named[name]) {
		c.rule = c.named[name][n]
	}
	c.begun[name]++
}

func (c *Coverage) know(rule int, at string) *[3]bool {
	p := predicate{rule, at}
	if c.seen[p] == nil {
		c.seen[p] = &[3]bool{}
	}
	return c.seen[p]
}

func (c *Coverage) conditions(rule int, conditions *policy.Conditions) {
	if conditions == nil {
		return
	}
	for _, one := range append(slices.Clone(conditions.Any), conditions.All...) {
		c.know(rule, one.Pos.Path)
	}
}

func (c *Coverage) body(rule int, pattern, anyPattern *policy.Node, deny *policy.Deny, loops []*policy.ForEach) {
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
func (c *Coverage) keys(rule int, p *policy.Node, at string) {
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

// Observe is told by the interpreter.
func (c *Coverage) Observe(o interp.Observation) {
	at := ""
	switch {
	case o.Rule != "":
		c.beginRule(o.Rule)
		if o.Holds && c.seen[predicate{c.rule, ""}] == nil {
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

// Note is told what came of the request, as a value that can be compared.
func (c *Coverage) Note(v any) {
	if !c.notes[v] {
		c.notes[v] = true
		c.fresh = true
	}
}

// BothWays counts the predicates of a rule, and those that were seen to hold and
// to fail.
func (c *Coverage) BothWays(rule int) (seen, all int) {
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

// OneWay are the predicates of a rule that were not seen both ways, sorted.
func (c *Coverage) OneWay(rule int) []Unseen {
	var out []Unseen
	for p, outcomes := range c.seen {
		if p.rule == rule && !(outcomes[holds] && outcomes[fails]) {
			out = append(out, Unseen{At: p.at, Holds: outcomes[holds], Fails: outcomes[fails]})
		}
	}
	slices.SortFunc(out, func(a, b Unseen) int { return strings.Compare(a.At, b.At) })
	return out
}
