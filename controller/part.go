package controller

import (
	"cmp"
	"regexp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/vap"
)

// Policies share native objects, so that a change in one of them changes an object that
// judges by the rules of others. A part is what of an object one rule, as policy/rule, is
// judged by: a text that stays the same while other rules of the object change.
type parts map[string]string

// partsOf are the parts of a native policy with its bindings; nil where nobody judges by it.
// The rules of one that mutates have all of it: each runs on what the others made.
func partsOf(o client.Object, bindings []client.Object) parts {
	bound := make([]string, len(bindings))
	for i, b := range bindings {
		bound[i] = asJSON(specOf(b))
	}
	slices.Sort(bound)
	out := parts{}
	p, ok := o.(*nativePolicy)
	if len(bound) == 0 {
		return nil
	}
	if !ok {
		for _, rule := range rulesOf(o) {
			out[rule] = hashOf(asJSON(specOf(o)) + asJSON(bound))
		}
		return out
	}
	source, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || len(source.Validations) != len(p.Spec.Validations) {
		return nil
	}
	common := p.Spec.DeepCopy()
	common.Validations, common.Variables, common.AuditAnnotations = nil, nil, nil
	if len(p.Spec.Validations) > 1 { // each says all; a single one may leave it to the guard
		common.MatchConditions = slices.DeleteFunc(common.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Name == source.Guard
		})
	}
	shared, named := asJSON(common)+asJSON(bound), namesOf(p.Spec.Variables)
	for _, m := range source.Members {
		out[m.Policy+"/"+m.Rule] = shared
	}
	for i, v := range p.Spec.Validations {
		v.Expression, v.MessageExpression = named.in(v.Expression), "" // which may list other rules, and decides nothing
		for _, member := range source.Validations[i].Members() {
			m := source.Members[member]
			out[m.Policy+"/"+m.Rule] += asJSON(v)
		}
	}
	for key, text := range out {
		out[key] = hashOf(text)
	}
	return out
}

// Variables are called by what they say: their names depend on what else is in an object.
type variableNames map[string]string

// variableCall is a variable where an expression uses it. A text that looks like it is
// replaced too, which leaves what differs different.
var variableCall = regexp.MustCompile(`\bvariables\.\w+`)

// namesOf are the names of variables, each of which uses only those before it.
func namesOf(variables []admissionregistrationv1.Variable) variableNames {
	out := variableNames{}
	for _, v := range variables {
		out["variables."+v.Name] = "variables." + hashOf(out.in(v.Expression))
	}
	return out
}

func (n variableNames) in(expression string) string {
	return variableCall.ReplaceAllStringFunc(expression, func(call string) string { return cmp.Or(n[call], call) })
}

// parts are those of the objects that the controller made, by the names of the objects.
func (l clusterState) parts() map[string]parts {
	bindings := map[string][]client.Object{}
	for _, b := range l.bindings {
		if isOurs(b) {
			bindings[boundTo(b)] = append(bindings[boundTo(b)], b)
		}
	}
	out := map[string]parts{}
	for name, p := range l.policies {
		if isOurs(p) && !isCanary(p.GetName()) {
			out[name] = partsOf(p, bindings[name])
		}
	}
	return out
}

// commonParts are the parts that are the same in both.
func commonParts(a, b map[string]parts) map[string]parts {
	out := map[string]parts{}
	for name, some := range a {
		for rule, text := range some {
			if b[name][rule] == text {
				if out[name] == nil {
					out[name] = parts{}
				}
				out[name][rule] = text
			}
		}
	}
	return out
}

// judgedBy tells that a rule is in some parts as it is wanted in its object of an index.
func (o *passResult) judgedBy(some map[string]parts, r *compile.Rule, index int) bool {
	object := o.all()[index]
	want, known := o.wanted[index]
	if !known {
		if o.wanted == nil {
			o.wanted = map[int]parts{}
		}
		want = partsOf(object.policy, object.bindings)
		o.wanted[index] = want
	}
	found := false
	for _, f := range r.Forms {
		rule := r.PolicyName() + "/" + f.Name
		if text, ok := want[rule]; ok {
			if some[keyOf(object.policy)][rule] != text {
				return false
			}
			found = true
		}
	}
	return found
}
