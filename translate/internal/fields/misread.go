package fields

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Some of what stands in a rule says another thing to Kyverno than to who reads it. It is
// told with what comes of it; the rule is translated as Kyverno reads it.

// A mapKind says of which map a pattern is, as far as keys with wildcards differ by it.
type mapKind int

const (
	otherMap mapKind = iota
	metadataMap
	labelsMap // or annotations, whose keys have wildcards
)

func (k mapKind) below(key string) mapKind {
	switch {
	case key == "metadata":
		return metadataMap
	case k == metadataMap && (key == "labels" || key == "annotations"):
		return labelsMap
	}
	return otherMap
}

// literalKey tells of a wildcard in a key that is none.
func (u *fieldWalk) literalKey(f policy.Field, in mapKind) {
	kind, key := anchor.Split(f.Key)
	if in == labelsMap || !scalar.IsWild(key) || strings.Contains(key, "{{") {
		return
	}
	u.found = append(u.found, diag.Warnf(f.Pos, diag.LiteralKey,
		"%s has no wildcard for Kyverno, for only keys of labels and annotations of metadata have: it looks for a key that is spelt so, and %s; write the keys out, or ask by a condition",
		key, withoutKey(kind, f.Value)))
}

// withoutKey says what a pattern makes of a map without its key.
func withoutKey(kind anchor.Kind, p *policy.Node) string {
	switch kind {
	case anchor.Conditional:
		return "asks nothing else of a map without one"
	case anchor.Negation:
		return "forbids no other key"
	case anchor.Equality, anchor.Existence, anchor.Global:
		return "asks nothing of other keys"
	}
	if satisfiedByNothing(p) {
		return "lets each map pass that has none"
	}
	return "each map fails that has none"
}

// satisfiedByNothing tells that a pattern is satisfied where there is no value.
func satisfiedByNothing(p *policy.Node) bool {
	return p.Kind == policy.Null || p.Kind == policy.String && p.Str != "*" && scalar.Satisfies(nil, p.Str)
}

// otherElements tells of the elements of a list that are not looked at.
func (u *fieldWalk) otherElements(p *policy.Node) {
	if len(p.Items) < 2 || p.Items[0].Kind == policy.List { // whose lists count one by one
		return
	}
	first := p.Items[0].Value()
	i := slices.IndexFunc(p.Items, func(item *policy.Node) bool { return !reflect.DeepEqual(item.Value(), first) })
	if i < 0 {
		return
	}
	u.found = append(u.found, diag.Warnf(p.Items[i].Pos, diag.OtherElements,
		"Kyverno does not look at this element: it holds the first one of the pattern's list against every element of the object's; put what is asked of each into the first, or use an existence anchor"))
}

// misreadPattern tells of a text of a pattern that looks like a regular expression.
func (u *fieldWalk) misreadPattern(p *policy.Node) {
	if looksRegular(p.Str) {
		u.regular(p, "in a pattern only * and ? are wildcards, | and & separate what is compared, and all else stands for itself")
	}
}

// misreadConditions tells of such texts in the values of conditions.
func (u *fieldWalk) misreadConditions(n *policy.Node) {
	if n == nil {
		return
	}
	u.budget.Spend(1)
	if value := n.Get("value"); value != nil && n.Get("operator") != nil {
		for _, text := range orItems(value) {
			if text.Kind == policy.String && looksRegular(text.Str) && !json.Valid([]byte(text.Str)) {
				u.regular(text, "operators know only the wildcards * and ?, and all else stands for itself")
			}
		}
		return
	}
	for _, item := range n.Items {
		u.misreadConditions(item)
	}
	for _, f := range n.Fields {
		u.misreadConditions(f.Value)
	}
}

// misreadFilters tells of such texts in what names objects and their namespaces.
func (u *fieldWalk) misreadFilters(n *policy.Node) {
	if n == nil {
		return
	}
	u.budget.Spend(1)
	if of := n.Get("resources"); of != nil {
		for _, key := range []string{"name", "names", "namespaces"} {
			for _, text := range orItems(of.Get(key)) {
				if text.Kind == policy.String && looksRegular(text.Str) {
					u.regular(text, "names have only the wildcards * and ?, and no name has what else is in it")
				}
			}
		}
		return
	}
	for _, filters := range []*policy.Node{n.Get("any"), n.Get("all")} {
		for _, f := range items(filters) {
			u.misreadFilters(f)
		}
	}
}

// orItems are the elements of a list, or what is no list itself.
func orItems(n *policy.Node) []*policy.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == policy.List:
		return n.Items
	}
	return []*policy.Node{n}
}

func (u *fieldWalk) regular(at *policy.Node, what string) {
	u.found = append(u.found, diag.Warnf(at.Pos, diag.RegularExpression,
		"Kyverno does not take %q for a regular expression: %s; write out what is meant, or ask with regex_match in a condition", at.Str, what))
}

// looksRegular tells of a text that hardly anybody writes but as a regular expression: it has
// an escape or a class of characters with a range, and how often that is; alternatives in
// brackets at a beginning or an end; or a beginning or an end with something of one between.
// Paths of Windows and of an Ingress are none.
func looksRegular(text string) bool {
	return !strings.Contains(text, "{{") && !strings.Contains(text, "$(") && regularSyntax.MatchString(text)
}

var regularSyntax = regexp.MustCompile(`\\[dwsDWS][+*{]|\[\^?[A-Za-z0-9]-[A-Za-z0-9][^]]*\][+*{]|^\^.*\([^()|]+(\|[^()|]+)+\)|\([^()|]+(\|[^()|]+)+\)\$$|\(\?[i:]|^\^.*[*+)\].$]$|\.[*+]\$$`)
