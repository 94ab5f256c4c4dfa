package validity

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// variables refuses variables where nobody fills them in.
func (c *checker) variables(rule *policy.Rule) {
	for _, part := range []string{"match", "exclude"} {
		c.eachVariable(rule.Source.Get(part), func(pos diag.Pos, text string) {
			c.fail(pos, diag.MisplacedVariable, "%s cannot have the variable %s; write the value, or ask for it in preconditions", part, text)
		})
	}
	if images := rule.Source.Get("verifyImages"); images != nil {
		for _, one := range images.Items {
			c.eachVariable(one.Get("imageReferences"), func(pos diag.Pos, text string) {
				c.fail(pos, diag.MisplacedVariable, "imageReferences cannot have the variable %s; write the value", text)
			})
		}
	}
	m := rule.Mutate
	if m == nil {
		return
	}
	if m.JSON != nil {
		c.paths(*m.JSON)
	}
	if m.Existing {
		c.target(rule)
	}
}

// paths refuses variables in the paths of a JSON patch, which is not in a foreach.
func (c *checker) paths(patch policy.Text) {
	operations, ok := policy.PatchOperations(patch)
	if !ok {
		return // with variables in it, it may be no patch yet
	}
	for _, one := range operations {
		c.eachVariable(one.Get("path"), func(_ diag.Pos, text string) {
			c.fail(patch.Pos, diag.MisplacedVariable, "the path of a JSON patch cannot have the variable %s outside of foreach; write the path", text)
		})
	}
}

// targetWord is the variable target, or a part of it. Kyverno takes all that begins otherwise.
func targetWord() *regexp.Regexp { return regexp.MustCompile(`^\{\{\s*target\b`) }

// target refuses the variable target where the target is not known yet: in the rule's own
// context and preconditions, and in what selects the target.
func (c *checker) target(rule *policy.Rule) {
	for _, e := range rule.Context {
		if e.Name == "target" || strings.HasPrefix(e.Name, "target.") {
			return // it is a variable of the rule's own
		}
	}
	in := func(n *policy.Node) {
		c.eachVariable(n, func(pos diag.Pos, text string) {
			if c.early.MatchString(text) {
				c.fail(pos, diag.MisplacedVariable, "%s is not known here, before the targets are; ask for it in context or preconditions of the target", text)
			}
		})
	}
	in(rule.Source.Get("context"))
	in(rule.Source.Get("preconditions"))
	targets := rule.Source.Get("mutate").Get("targets")
	if targets == nil {
		return
	}
	for _, t := range targets.Items {
		for _, key := range []string{"apiVersion", "kind", "namespace", "name", "selector"} {
			in(t.Get(key))
		}
	}
}

// nulls tells of conditions that are null, as a chart renders an empty list.
func (c *checker) nulls(conditions *policy.Node, refused bool) {
	for _, key := range []string{"any", "all"} {
		n := conditions.Get(key)
		switch {
		case n == nil || n.Kind != policy.Null:
		case refused:
			c.fail(n.Pos, diag.WrongType, "%s is null, and the API server wants a list; write the conditions, or remove the key", key)
		default:
			c.warn(n.Pos, diag.WrongType, "%s is null, so it asks for nothing; write the conditions, or remove the key", key)
		}
	}
}
