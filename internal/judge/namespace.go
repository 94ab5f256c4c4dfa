package judge

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// namespacesOf are the Namespaces among objects, by name. One that cannot be read is left out.
func namespacesOf(objects []map[string]any) map[string]*corev1.Namespace {
	out := map[string]*corev1.Namespace{}
	for _, o := range objects {
		if o["kind"] != "Namespace" || o["apiVersion"] != "v1" {
			continue
		}
		if ns := namespaceOf(o); ns != nil {
			out[ns.Name] = ns
		}
	}
	return out
}

func namespaceOf(object map[string]any) *corev1.Namespace {
	ns := &corev1.Namespace{}
	if object == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, ns) != nil {
		return nil
	}
	return ns
}

// toldOf is what is told of the namespace of a request: its labels, or all of it, or both; nil where
// nothing is.
func toldOf(labels map[string]string, object map[string]any) *corev1.Namespace {
	out := namespaceOf(object)
	switch {
	case out == nil:
		return apiserver.Labelled(labels)
	case labels != nil:
		out.Labels = labels
	}
	return out
}

// knowsNamespace tells whether the namespace of a request is known as an API server knows it, or is
// none that policies are told of.
func (j *Judges) knowsNamespace(r *Request) bool {
	name, kind := r.native.Namespace, r.native.Kind
	return r.Namespace != nil || j.namespaces[name] != nil || name == "" || kind.Group == "" && kind.Kind == "Namespace"
}

// asked is a request as the interpreter is asked about it.
func (j *Judges) asked(r *Request) *interp.Request {
	out := r.Interp()
	out.NamespaceUnknown = !j.all && r.NamespaceLabels == nil && !j.knowsNamespace(r)
	return out
}

// storedNamespace is the Namespace that the request tells of as an API server has it: with its
// name in a label, and with a phase.
func (r *Request) storedNamespace() map[string]any {
	if r.Namespace == nil {
		return nil
	}
	u := (&unstructured.Unstructured{Object: r.Namespace}).DeepCopy()
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(r.native.Namespace)
	u.Object = stored([]map[string]any{u.Object})[0]
	if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "" {
		// whose status is no object is no Namespace, which its reader tells
		_ = unstructured.SetNestedField(u.Object, string(corev1.NamespaceActive), "status", "phase")
	}
	return u.Object
}

// LacksNamespace tells whether some rule reads more of the namespace of a request than is known.
func (j *Judges) LacksNamespace(r *Request) bool {
	return !j.knowsNamespace(r) && slices.ContainsFunc(j.standings, func(s ruleStanding) bool { return s.readsNamespace })
}

// readsNamespace tells whether a rule as written reads more of the namespace of a request in CEL
// than its name and labels.
func readsNamespace(f *compile.Form) bool {
	variables := map[string]string{}
	reads := func(expression string) bool { return apiserver.ReadsNamespace(expression, variables) }
	condition := func(c policy.CEL) bool { return reads(c.Expression) }
	validation := func(v policy.CELValidation) bool { return reads(v.Expression) }
	declare := func(list []policy.CEL) {
		for _, v := range list {
			variables[v.Name] = v.Expression
		}
	}
	p := f.Rule.Policy
	switch {
	case p.Validating != nil:
		declare(p.Validating.Variables)
		return slices.ContainsFunc(p.Validating.MatchConditions, condition) || slices.ContainsFunc(p.Validating.Validations, validation)
	case p.Mutating != nil:
		declare(p.Mutating.Variables)
		return slices.ContainsFunc(p.Mutating.MatchConditions, condition) || slices.ContainsFunc(p.Mutating.Mutations, func(m policy.Mutation) bool { return reads(m.Expression) })
	case f.Source != nil && f.Source.Validate != nil && f.Source.Validate.CEL != nil:
		declare(f.Source.Validate.CEL.Variables)
		return slices.ContainsFunc(f.Source.Validate.CEL.Expressions, validation)
	}
	return false
}

// NamespaceNotGiven is why what reads a Namespace is not judged.
func NamespaceNotGiven(name string) string {
	return fmt.Sprintf("the Namespace %s, which the rule reads, was not given", name)
}

// unknown notes that the judges cannot tell, for the namespace of the request was not given.
func (o *Opinion) unknown(namespace string) {
	why := NamespaceNotGiven(namespace)
	if o.Native == apiserver.NoMatch && o.Status == interp.None { // the rule is not about the request
		return
	}
	if o.Native != apiserver.NoMatch {
		o.Native, o.NativeMessage, o.Refused = apiserver.Unknown, why, false
	}
	if o.Status != interp.None {
		o.Status, o.Kyverno, o.Message, o.Deviations = interp.Unknown, interp.Unknown, why, nil
	}
	o.Lacks = &Lookup{Pos: o.Rule.Rule.Pos(), APIVersion: "v1", Kind: "Namespace", Name: namespace}
}

// forget takes back what the judges say for want of what they were not told: the namespace,
// where a rule reads more of it than is known, and the user.
func (j *Judges) forget(r *Request, out []Opinion) {
	whole := j.knowsNamespace(r)
	for i := range out {
		o := &out[i]
		switch {
		case o.Status == interp.Unknown:
			if o.Compared {
				o.Native = apiserver.Unknown
			}
			o.unknown(r.native.Namespace)
		case !whole && (o.Native == apiserver.Unknown || j.standings[i].readsNamespace):
			o.unknown(r.native.Namespace)
		case r.anonymous && o.Status == interp.Error && o.Native != apiserver.Error && readsUser(o.Rule.Rule):
			o.Native, o.NativeMessage, o.Refused = apiserver.Unknown, "the rule reads who acts, and the request names nobody", false
		}
	}
}

// readsUser tells whether a rule reads who acts: by the field of the request, or by a variable that
// is made of it.
func readsUser(r *compile.Rule) bool {
	source := r.Policy.Source
	if r.Source != nil { // not so in CEL, where a policy is one rule
		source = r.Source.Source
	}
	return source.Mentions(regexp.MustCompile(`\brequest\.userInfo\b|\{\{-?\s*serviceAccountName`))
}
