package verify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
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
	rule *compile.Form
	at   string // the place of the condition or the key; "" where the rule itself is meant
}

// coverage is what was seen of the predicates of a policy and of its verdicts.
type coverage struct {
	seen     map[predicate]*[3]bool
	verdicts map[verdict]bool
	named    map[string][]*compile.Form // long names may be cut to the same
	begun    map[string]int             // how many rules of a name have been judged of the request at hand
	rule     *compile.Form              // that is being judged
	fresh    bool                       // something new was seen of the request at hand
}

type verdict struct {
	rule   *compile.Form
	native apiserver.Outcome
	interp interp.Status
}

// newCoverage knows the predicates of the rules, none of them seen.
func newCoverage(rules []*compile.Form) *coverage {
	c := &coverage{seen: map[predicate]*[3]bool{}, verdicts: map[verdict]bool{}, named: map[string][]*compile.Form{}}
	for _, f := range rules {
		c.named[f.Name] = append(c.named[f.Name], f)
		r := f.Source
		if r == nil {
			if isOf(f) && f.Name == f.Rule.Policy.Name { // as written
				c.know(f, "")
			}
			continue
		}
		if r.Expansion == "" { // one that was made for a kind may match all of it
			c.know(f, "")
		}
		c.conditions(f, r.Preconditions)
		if v := r.Validate; v != nil {
			c.body(f, v.Pattern, v.AnyPattern, v.Deny, v.ForEach)
		}
	}
	return c
}

// begin is told of a new request.
func (c *coverage) begin() { c.begun, c.rule, c.fresh = map[string]int{}, nil, false }

// beginRule is told of the next rule of a name.
func (c *coverage) beginRule(name string) {
	c.rule = nil
	if n := c.begun[name]; n < len(c.named[name]) {
		c.rule = c.named[name][n]
	}
	c.begun[name]++
}

func (c *coverage) know(rule *compile.Form, at string) *[3]bool {
	p := predicate{rule, at}
	if c.seen[p] == nil {
		c.seen[p] = &[3]bool{}
	}
	return c.seen[p]
}

func (c *coverage) conditions(rule *compile.Form, conditions *policy.Conditions) {
	if conditions == nil {
		return
	}
	for _, one := range append(slices.Clone(conditions.Any), conditions.All...) {
		c.know(rule, one.Pos.Path)
	}
}

func (c *coverage) body(rule *compile.Form, pattern, anyPattern *policy.Node, deny *policy.Deny, loops []*policy.ForEach) {
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
func (c *coverage) keys(rule *compile.Form, p *policy.Node, at string) {
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

func (c *coverage) verdict(o judge.Opinion) {
	v := verdict{o.Rule, o.Native, o.Status}
	if !c.verdicts[v] {
		c.verdicts[v] = true
		c.fresh = true
	}
}

// bothWays counts the predicates of a rule, and those that were seen to hold and
// to fail.
func (c *coverage) bothWays(rule *compile.Form) (seen, all int) {
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
func (c *coverage) oneWay(rule *compile.Form) []Unseen {
	var out []Unseen
	for p, outcomes := range c.seen {
		if p.rule == rule && !(outcomes[holds] && outcomes[fails]) {
			out = append(out, Unseen{At: p.at, Holds: outcomes[holds], Fails: outcomes[fails]})
		}
	}
	slices.SortFunc(out, func(a, b Unseen) int { return strings.Compare(a.At, b.At) })
	return out
}
