package background

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// A May tells whether this process may do something with objects of a kind, in a
// namespace, or in all if it is empty. It may with a kind that nobody serves.
type May func(ctx context.Context, verb string, k ObjectKind, namespace string) (bool, error)

// A Missing is what a policy needs and this process may not do.
type Missing struct {
	Policy  v1alpha1.PolicyReference
	Message string
	Waits   bool // it is not a permission that is missing
}

// Missing are the permissions that the rules of the policies need and lack, as far as
// their text tells: a kind or namespace that is a variable is known only later.
func (w *Worker) Missing(ctx context.Context, may May) ([]Missing, error) {
	current := w.current.Load()
	if current == nil {
		return nil, nil
	}
	var out []Missing
	for _, p := range current.policies {
		for _, r := range p.rules {
			lacks, err := lacking(ctx, w.needs(r), may)
			if err != nil {
				return nil, err
			}
			if len(lacks) > 0 {
				out = append(out, Missing{p.Of, fmt.Sprintf("rule %s: kvap may not %s; %s", r.name, strings.Join(lacks, ", nor "), grantIt), false})
			}
		}
	}
	slices.SortFunc(out, func(a, b Missing) int {
		return strings.Compare(keyOf(a.Policy)+a.Message, keyOf(b.Policy)+b.Message)
	})
	return out, nil
}

// An accessNeed is what a rule does with objects of a kind.
type accessNeed struct {
	ObjectKind
	namespace string
	verbs     []string
}

// lacking are the needs of a rule that are not granted.
func lacking(ctx context.Context, needs []accessNeed, may May) ([]string, error) {
	var out []string
	for _, n := range needs {
		var verbs []string
		for _, verb := range n.verbs {
			ok, err := may(ctx, verb, n.ObjectKind, n.namespace)
			if err != nil {
				return nil, err
			}
			if !ok {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			text := strings.Join(verbs, ", ") + " " + n.APIVersion + "/" + n.ObjectKind.Kind
			if n.namespace != "" {
				text += " in the namespace " + n.namespace
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// verbsOf are what is done with objects that are made.
func verbsOf(synchronize, apply bool) []string {
	out := []string{"get", "create"}
	if synchronize {
		out = append(out, "list", "watch", "update", "delete")
	}
	if apply {
		out = append(out, "patch")
	}
	return out
}

// needsOf are what a rule does with what it makes and with what it copies.
func needsOf(g *policy.Generate, apply bool) []accessNeed {
	makes := verbsOf(g.Synchronize, apply)
	var out []accessNeed
	for _, t := range targetsOf(g) {
		one := []*policy.GenerateTarget{t}
		for _, k := range literalKinds(one) {
			out = append(out, accessNeed{k, literal(t.Namespace.Value), makes})
		}
		if t.Clone != nil {
			out = append(out, accessNeed{ObjectKind{t.APIVersion.Value, t.Kind.Value}, literal(t.Clone.Namespace.Value), []string{"get", "patch"}})
		}
		if t.CloneList != nil {
			for _, k := range literalKinds(one) {
				out = append(out, accessNeed{k, literal(t.CloneList.Namespace.Value), []string{"get", "list", "patch"}})
			}
		}
	}
	return out
}

// literal is a text without variables; empty for one with some.
func literal(text string) string {
	if strings.Contains(text, "{{") {
		return ""
	}
	return text
}
