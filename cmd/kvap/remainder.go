package main

import (
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

const autogenAnnotation = "pod-policies.kyverno.io/autogen-controllers"

// remainder is the policy with only the rules that stay behind, as YAML; nil when
// none does. Rules with an error are in neither half: they are to be mended first.
func (done *compilation) remainder(p *policy.Policy) []byte {
	stays := done.staying(p)
	switch {
	case p.Validating != nil:
		if done.isNative(p) || p.Invalid {
			return nil
		}
		return policy.Marshal(asWritten(p.Source))
	case len(stays) == 0:
		return nil
	}
	doc := withRules(asWritten(p.Source), sourcesOf(stays))
	if expandsAlike(doc, p, stays) {
		return policy.Marshal(doc)
	}
	// Whether rules are expanded for pod controllers depends on all rules of a
	// policy, also on those that are gone. So the expanded rules are written out,
	// and further expansion is switched off.
	doc = withRules(asWritten(p.Source), sourcesOf(expanded(p, stays)))
	return policy.Marshal(withAnnotation(doc, autogenAnnotation, "none"))
}

// staying are the rules of a policy that have no native form and no error.
func (done *compilation) staying(p *policy.Policy) []*policy.Rule {
	var stays []*policy.Rule
	for _, r := range done.rules {
		if r.Policy == p && r.Rule != nil && r.Target != translate.Native && !r.Rule.Invalid {
			stays = append(stays, r.Rule)
		}
	}
	return stays
}

func (done *compilation) isNative(p *policy.Policy) bool {
	return slices.ContainsFunc(done.rules, func(r translate.RuleResult) bool {
		return r.Policy == p && r.Target == translate.Native
	})
}

// expandsAlike tells whether the document, read again, has the same rules as the
// policy had of those that stay.
func expandsAlike(doc *policy.Node, p *policy.Policy, stays []*policy.Rule) bool {
	f, _ := policy.Parse(p.Pos.File, policy.Marshal(doc))
	if len(f.Policies) != 1 {
		return false
	}
	return slices.Equal(names(policy.Expand(f.Policies[0])), names(expanded(p, stays)))
}

func expanded(p *policy.Policy, stays []*policy.Rule) []*policy.Rule {
	return slices.DeleteFunc(policy.Expand(p), func(r *policy.Rule) bool {
		return !slices.ContainsFunc(stays, func(s *policy.Rule) bool { return s.Index == r.Index })
	})
}

func names(rules []*policy.Rule) []string {
	var list []string
	for _, r := range rules {
		list = append(list, r.Name)
	}
	return list
}

func sourcesOf(rules []*policy.Rule) []*policy.Node {
	var list []*policy.Node
	for _, r := range rules {
		list = append(list, r.Source)
	}
	return list
}

// asWritten is the document without what a server adds to an object, so that it
// can be applied again.
func asWritten(doc *policy.Node) *policy.Node {
	doc = without(doc, "status")
	return withField(doc, "metadata", func(metadata *policy.Node) *policy.Node {
		return without(metadata, "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
	})
}

func withRules(doc *policy.Node, rules []*policy.Node) *policy.Node {
	return withField(doc, "spec", func(spec *policy.Node) *policy.Node {
		return withField(spec, "rules", func(list *policy.Node) *policy.Node {
			changed := *list
			changed.Items = rules
			return &changed
		})
	})
}

func withAnnotation(doc *policy.Node, key, value string) *policy.Node {
	return withField(doc, "metadata", func(metadata *policy.Node) *policy.Node {
		annotations := metadata.Get("annotations")
		if annotations == nil || annotations.Kind != policy.Map {
			annotations = &policy.Node{Kind: policy.Map}
		}
		annotations = without(annotations, key)
		annotations.Fields = append(annotations.Fields, policy.Field{Key: key, Value: &policy.Node{Kind: policy.String, Str: value}})
		metadata = without(metadata, "annotations")
		metadata.Fields = append(metadata.Fields, policy.Field{Key: "annotations", Value: annotations})
		return metadata
	})
}

// withField is a copy of a map with another value of a key that it has.
func withField(n *policy.Node, key string, change func(*policy.Node) *policy.Node) *policy.Node {
	changed := *n
	changed.Fields = slices.Clone(n.Fields)
	for i, f := range changed.Fields {
		if f.Key == key && f.Value != nil {
			changed.Fields[i].Value = change(f.Value)
		}
	}
	return &changed
}

// without is a copy of a map that lacks some keys.
func without(n *policy.Node, keys ...string) *policy.Node {
	changed := *n
	changed.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f policy.Field) bool {
		return slices.Contains(keys, f.Key)
	})
	return &changed
}

// exceptionsFor are the exceptions that name a policy of the remainder: it needs
// them as much as the native half did.
func (done *compilation) exceptionsFor(remains func(*policy.Policy) bool) []*policy.Exception {
	var list []*policy.Exception
	for _, e := range done.exceptions {
		for _, p := range done.policies {
			name := p.Name
			if p.Namespaced() {
				name = p.Namespace + "/" + p.Name
			}
			named := slices.ContainsFunc(e.Exceptions, func(ref policy.ExceptionRef) bool { return ref.PolicyName == name })
			if named && remains(p) && !slices.Contains(list, e) {
				list = append(list, e)
			}
		}
	}
	return list
}
