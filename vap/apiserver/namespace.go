package apiserver

import (
	"errors"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// A namespaceLister has every namespace. It never answers that one is not found,
// so that the matcher never asks its client, which is nil.
type namespaceLister struct {
	stored  map[string]*corev1.Namespace
	current *corev1.Namespace // the request's, where something is told of it
}

// newNamespaceLister has the request's namespace as it is told. What has no phase is labels alone:
// the rest is what is stored.
func newNamespaceLister(stored map[string]*corev1.Namespace, current string, told *corev1.Namespace) namespaceLister {
	out := namespaceLister{stored: stored}
	if told == nil || current == "" {
		return out
	}
	if have, ok := stored[current]; ok && told.Status.Phase == "" {
		labelled := *have
		labelled.Labels = told.Labels
		told = &labelled
	}
	out.current = named(told, current)
	return out
}

// Get is a namespace.
func (n namespaceLister) Get(name string) (*corev1.Namespace, error) {
	if n.current != nil && n.current.Name == name {
		return n.current, nil
	}
	if ns, ok := n.stored[name]; ok {
		return ns, nil
	}
	return named(&corev1.Namespace{}, name), nil
}

// List is what the matcher never asks for.
func (n namespaceLister) List(labels.Selector) ([]*corev1.Namespace, error) {
	return nil, errors.New("namespaces cannot be listed")
}

// storedNamespaces are Namespaces as an API server has them: with their name in a label,
// and with a phase. Of others, only what a request says is known.
func storedNamespaces(given map[string]*corev1.Namespace) map[string]*corev1.Namespace {
	out := make(map[string]*corev1.Namespace, len(given))
	for name, ns := range given {
		ns = named(ns, name)
		if ns.Status.Phase == "" {
			ns.Status.Phase = corev1.NamespaceActive
		}
		out[name] = ns
	}
	return out
}

// Labelled is a Namespace of which the labels alone are told; nil where they are not.
func Labelled(labels map[string]string) *corev1.Namespace {
	if labels == nil {
		return nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

// named is a Namespace with its name, and the label that says it.
func named(ns *corev1.Namespace, name string) *corev1.Namespace {
	out := *ns
	out.Name = name
	out.Labels = maps.Clone(ns.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[corev1.LabelMetadataName] = name
	return &out
}

// namespaceVariable is what expressions call the namespace of a request.
const namespaceVariable = "namespaceObject"

// ReadsNamespace tells whether an expression reads more of namespaceObject than its name
// and its labels, itself or by variables: nobody can tell its value of a namespace of which
// these alone are known. One that cannot be parsed reads nothing.
func ReadsNamespace(expression string, variables map[string]string) bool {
	mentions := func(text string) bool { return strings.Contains(text, namespaceVariable) }
	if !mentions(expression) && !slices.ContainsFunc(slices.Collect(maps.Values(variables)), mentions) {
		return false
	}
	parsed, err := cel.Parse(expression)
	if err != nil {
		return false
	}
	composed := map[string]cel.Value{}
	for name, text := range variables {
		if v, err := cel.Parse(text); err == nil {
			composed[name] = v
		}
	}
	return slices.ContainsFunc(parsed.Decides(map[string][]string{namespaceVariable: {}}, composed), func(path []string) bool {
		return len(path) < 2 || path[0] != "metadata" || path[1] != "name" && path[1] != "labels"
	})
}

// MembersReadingNamespace tells of each of the rules that a policy was made from whether one of its
// validations reads more of the namespace than its name and its labels.
func MembersReadingNamespace(p *admissionregistrationv1.ValidatingAdmissionPolicy, t vap.Translation) []bool {
	variables := map[string]string{}
	for _, v := range p.Spec.Variables {
		variables[v.Name] = v.Expression
	}
	out := make([]bool, len(t.Members))
	for i, v := range p.Spec.Validations {
		if i >= len(t.Validations) || !ReadsNamespace(v.Expression, variables) {
			continue
		}
		for _, member := range t.Validations[i].Members() {
			out[member] = true
		}
	}
	return out
}

// MutationReadsNamespace tells whether a policy that mutates reads more of the namespace than its
// name and its labels.
func MutationReadsNamespace(p *admissionregistrationv1.MutatingAdmissionPolicy) bool {
	variables := map[string]string{}
	for _, v := range p.Spec.Variables {
		variables[v.Name] = v.Expression
	}
	return slices.ContainsFunc(p.Spec.Mutations, func(m admissionregistrationv1.Mutation) bool {
		return m.JSONPatch != nil && ReadsNamespace(m.JSONPatch.Expression, variables) ||
			m.ApplyConfiguration != nil && ReadsNamespace(m.ApplyConfiguration.Expression, variables)
	})
}
