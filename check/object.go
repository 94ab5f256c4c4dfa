package check

import (
	"encoding/json"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// An Object is one to check. One of the four is set.
type Object struct {
	Policy          *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding         *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	Mutating        *admissionregistrationv1.MutatingAdmissionPolicy
	MutatingBinding *admissionregistrationv1.MutatingAdmissionPolicyBinding
	// Releases are those that the object is for; none means all.
	Releases []cel.Release
	// Pos is the object's own place, or that of its source where it was made just now.
	Pos        diag.Pos
	apiVersion string
	source     fieldSource
	unknown    diag.List // fields that its type does not have
	generated  bool
	// authored tells that what the expressions read is what the author of a policy in CEL wrote.
	authored bool
}

// Kind is the object's kind.
func (o *Object) Kind() string {
	switch {
	case o.Policy != nil:
		return "ValidatingAdmissionPolicy"
	case o.Binding != nil:
		return "ValidatingAdmissionPolicyBinding"
	case o.Mutating != nil:
		return "MutatingAdmissionPolicy"
	}
	return "MutatingAdmissionPolicyBinding"
}

// Name is the object's name.
func (o *Object) Name() string {
	switch {
	case o.Policy != nil:
		return o.Policy.Name
	case o.Binding != nil:
		return o.Binding.Name
	case o.Mutating != nil:
		return o.Mutating.Name
	}
	return o.MutatingBinding.Name
}

// Generated tells that the object was made by kvap, just now or before it was read.
func (o *Object) Generated() bool { return o.generated }

// A fieldSource says where a field of an object comes from. line and column are those in
// the text of the field, from 1; 0 where the field as a whole is meant.
type fieldSource interface {
	at(field string, line, column int) diag.Pos
}

const group = "admissionregistration.k8s.io"

// MayBe tells a file of admission policies from the many others in a folder.
func MayBe(data []byte) bool { return strings.Contains(string(data), group) }

// Written are the admission policies and bindings of a file. Objects of other kinds
// are passed over.
func Written(file string, data []byte) ([]*Object, diag.List) {
	nodes, found := policy.Documents(file, data)
	var out []*Object
	for _, n := range nodes {
		o, d := readWritten(n, data)
		if d != nil {
			found = append(found, *d)
		}
		if o != nil {
			out = append(out, o)
		}
	}
	return out, found.Sort()
}

func readWritten(n *policy.Node, data []byte) (*Object, *diag.Diagnostic) {
	apiVersion, kind := n.Get("apiVersion"), n.Get("kind")
	if apiVersion == nil || kind == nil || !strings.HasPrefix(apiVersion.Str, group+"/") {
		return nil, nil
	}
	o := &Object{Pos: n.Pos, apiVersion: apiVersion.Str}
	var into any
	switch kind.Str {
	case "ValidatingAdmissionPolicy":
		o.Policy = &admissionregistrationv1.ValidatingAdmissionPolicy{}
		into = o.Policy
	case "ValidatingAdmissionPolicyBinding":
		o.Binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		into = o.Binding
	case "MutatingAdmissionPolicy":
		o.Mutating = &admissionregistrationv1.MutatingAdmissionPolicy{}
		into = o.Mutating
	case "MutatingAdmissionPolicyBinding":
		o.MutatingBinding = &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
		into = o.MutatingBinding
	default:
		return nil, nil
	}
	unknown, failed := decode(n, kind.Str, into)
	if failed != nil {
		return nil, failed
	}
	o.unknown = unknown
	o.Pos.Path = ""
	o.fillDefaults()
	o.source = writtenSource{data: data, root: n, nodes: nodesOf(n)}
	if o.Policy != nil {
		t, ok, err := vap.TranslationOf(o.Policy.Annotations)
		o.generated = ok && err == nil && len(t.Members) > 0
	}
	return o, nil
}

func (o *Object) fillDefaults() {
	switch {
	case o.Policy != nil:
		vap.DefaultPolicy(o.Policy)
	case o.Binding != nil:
		vap.DefaultBinding(o.Binding)
	case o.Mutating != nil:
		vap.DefaultMutating(o.Mutating)
	default:
		vap.DefaultMutatingBinding(o.MutatingBinding)
	}
}

// Made are the objects of a compilation for a release.
func Made(validating []vap.Objects, mutations []mutating.Objects, release cel.Release) []*Object {
	var out []*Object
	made := func(version string, source madeSource, authored bool) *Object {
		o := &Object{Releases: []cel.Release{release}, Pos: source.at("", 0, 0), apiVersion: version, source: source, generated: true, authored: authored}
		out = append(out, o)
		return o
	}
	for _, m := range validating {
		made(group+"/v1", madeSource{m}, m.Draft.Authored).Policy = m.Policy
		for _, b := range m.Bindings {
			made(group+"/v1", madeSource{m}, false).Binding = b
		}
	}
	for _, m := range mutations {
		made(m.Policy.APIVersion, madeSource{m}, m.Draft.Authored).Mutating = m.Policy
		for _, b := range m.Bindings {
			made(b.APIVersion, madeSource{m}, false).MutatingBinding = b
		}
	}
	return out
}

// Merge joins objects that were made for several releases and are the same for them.
func Merge(objects []*Object) []*Object {
	var out []*Object
	same := map[string]*Object{}
	for _, o := range objects {
		text, err := json.Marshal([]any{o.Kind(), o.Policy, o.Binding, o.Mutating, o.MutatingBinding})
		if err != nil || len(o.Releases) == 0 {
			out = append(out, o)
			continue
		}
		if first := same[string(text)]; first != nil {
			first.Releases = append(first.Releases, o.Releases...)
			continue
		}
		same[string(text)] = o
		out = append(out, o)
	}
	return out
}
