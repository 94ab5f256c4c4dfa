package validity

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// background refuses what asks who sends a request in a policy that is about objects which are
// there as well: a scan of those has no request. As with Kyverno, variables may ask where a
// rule of the policy changes other objects.
func (c *checker) background(p *policy.Policy) {
	if !p.Background || p.InCEL() {
		return
	}
	changes := false
	for _, rule := range p.Rules {
		c.userInfo(rule.Match, "a rule")
		c.userInfo(rule.Exclude, "a rule")
		changes = changes || rule.Mutate != nil && rule.Mutate.Existing
	}
	if spec := p.Source.Get("spec"); spec != nil && !changes {
		c.userVariables(spec)
	}
}

// userInfo refuses filters by who acts.
func (c *checker) userInfo(m *policy.MatchBlock, what string) {
	for _, f := range m.Filters() {
		var pos diag.Pos
		switch {
		case len(f.Roles) > 0:
			pos = f.Roles[0].Pos
		case len(f.ClusterRoles) > 0:
			pos = f.ClusterRoles[0].Pos
		case len(f.Subjects) > 0:
			pos = f.Subjects[0].Pos
		default:
			continue
		}
		c.fail(pos, diag.UserInBackground, "invalid variable used in background mode (background: true, the default): %s cannot match by subjects, roles or clusterRoles, for a scan knows no user; set background: false", what)
	}
}

// A variable is what stands between braces that no backslash escapes.
func variable() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})`)
}

// userWords are about who acts.
func userWords() *regexp.Regexp {
	return regexp.MustCompile(`[^.](serviceAccountName|serviceAccountNamespace|request\.userInfo|request\.roles|request\.clusterRoles)\b`)
}

// userVariables refuses variables about who acts, at or below a node. Kyverno looks for the
// words, wherever they stand in a variable, but behind a dot.
func (c *checker) userVariables(spec *policy.Node) {
	c.eachVariable(spec, func(pos diag.Pos, text string) {
		if c.user.MatchString(text) {
			c.fail(pos, diag.UserInBackground, "variable %s is not allowed in background mode (background: true, the default): a scan knows no user; set background: false", text)
		}
	})
}

// eachVariable visits the variables of all texts at or below a node, keys too.
func (c *checker) eachVariable(n *policy.Node, visit func(pos diag.Pos, text string)) {
	var walk func(*policy.Node)
	in := func(pos diag.Pos, text string) {
		if !strings.Contains(text, "{{") {
			return
		}
		for _, found := range c.variable.FindAllStringSubmatch(text, -1) {
			visit(pos, found[1])
		}
	}
	walk = func(n *policy.Node) {
		if n == nil {
			return
		}
		if n.Kind == policy.String {
			in(n.Pos, n.Str)
		}
		for _, item := range n.Items {
			walk(item)
		}
		for _, f := range n.Fields {
			in(f.Pos, f.Key)
			walk(f.Value)
		}
	}
	walk(n)
}
