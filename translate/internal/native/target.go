package native

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
)

// A Scope says where objects of a kind live.
type Scope int

// The scopes.
const (
	AnyScope Scope = iota
	Namespaced
	Cluster
)

// A Target is one kind of object that a rule is lowered for: a resource, or all
// that a wildcard stands for.
type Target struct {
	GVK schema.GVK // of the object's body; for a subresource its own
	// Group, Version and Resource are as a resource rule names them.
	Group, Version, Resource string
	// Published are the kinds that a resource rule names in place of a group and version that
	// are open.
	Published   []schema.GVK
	Parent      schema.GVK // the top-level kind; GVK where there is no subresource
	Subresource string
	Scope       Scope
	Type        *schema.Type
	Body        *schema.Type // what every object has, and what the schema knows of it
	// KindWild is a wildcard for the kind that no resource rule can say.
	KindWild string
	Guessed  bool
}

// Key is what tells a target from others.
func (t Target) Key() string {
	key := []string{t.Group, t.Version, t.Resource, t.KindWild}
	for _, k := range t.Published {
		key = append(key, k.APIVersion())
	}
	return strings.Join(key, "/")
}

// VersionsOf are the versions that resource rules name, by their group.
func (t Target) VersionsOf() map[string][]string {
	if len(t.Published) == 0 {
		return map[string][]string{t.Group: {t.Version}}
	}
	versions := map[string][]string{}
	for _, k := range t.Published {
		versions[k.Group] = append(versions[k.Group], k.Version)
	}
	return versions
}

// PossibleOperations are the operations that can happen to the target.
func (t Target) PossibleOperations() []Operation {
	switch {
	case t.Subresource == "":
		return []Operation{Create, Update, Delete}
	case t.Subresource == "ephemeralcontainers": // never created, but one rule with the pods reads better
		return []Operation{Create, Update}
	case slices.Contains([]string{"status", "scale", "resize", "approval", "finalize"}, t.Subresource):
		return []Operation{Update}
	case slices.Contains([]string{"binding", "eviction", "token"}, t.Subresource):
		return []Operation{Create}
	case t.connects():
		return []Operation{Connect}
	}
	return []Operation{Create, Update, Delete, Connect}
}

// connects tells that the target is a connection to a pod, a service or a node,
// which is opened and nothing else.
func (t Target) connects() bool {
	switch t.Subresource {
	case "exec", "attach", "portforward", "proxy":
		return t.Parent.Group == "" && t.Parent.Version == "v1" && !t.Guessed
	}
	return false
}

// HasMetadata tells that the body is an object with metadata for sure, as the
// options of a connection are not.
func (t Target) HasMetadata() bool {
	if t.Subresource == "" || t.Subresource == "ephemeralcontainers" || t.Subresource == "status" {
		return true
	}
	return t.Type != nil && t.Type.Fields["metadata"] != nil
}

// HasName tells that each object has a name when it is validated: what is stored. The API
// server makes it of a generateName before. Reviews are answered, and stored nowhere.
func (t Target) HasName() bool {
	return slices.Contains([]string{"", "ephemeralcontainers", "status"}, t.Subresource) && !t.IsAnyResource() &&
		!slices.Contains([]string{"*", "authentication.k8s.io", "authorization.k8s.io"}, t.GVK.Group)
}

// IsAnyResource tells that the target is every resource.
func (t Target) IsAnyResource() bool { return t.Resource == "*" || t.Resource == "*/*" }

// Plural is the resource without a subresource.
func (t Target) Plural() string {
	name, _, _ := strings.Cut(t.Resource, "/")
	return name
}

// PodOf is the type of what a target has of a Pod: the whole of it, or the template that a
// controller has wherever it is there. It is nil for others.
func PodOf(t Target) *schema.Type {
	if t.Parent == (schema.GVK{Version: "v1", Kind: "Pod"}) {
		return t.Body
	}
	at := func(keys ...string) *schema.Type {
		typ := t.Body
		for _, key := range keys {
			if typ == nil || typ.Fields[key] == nil || !typ.Fields[key].Required {
				return nil
			}
			typ = typ.Fields[key].Type
		}
		return typ
	}
	if typ := at("spec", "jobTemplate", "spec", "template"); typ != nil {
		return typ
	}
	return at("spec", "template")
}

// Published are the projects that publish a kind.
func Published(set *schema.Set, k schema.GVK) string {
	var names []string
	for _, r := range set.Published(k.Group, k.Version, k.Kind) {
		if name := r.Project.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// An Operation is what a request does to an object.
type Operation string

// The operations.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// InvalidRequirement tells whether Kubernetes refuses a requirement. (An entry of
// matchLabels that it refuses is one that no object has.)
func InvalidRequirement(e policy.SelectorExpression) bool {
	var op selection.Operator
	switch e.Operator {
	case "In":
		op = selection.In
	case "NotIn":
		op = selection.NotIn
	case "Exists":
		op = selection.Exists
	case "DoesNotExist":
		op = selection.DoesNotExist
	}
	_, err := labels.NewRequirement(e.Key, op, e.Values)
	return err != nil
}

// RefusedSelector tells of a selector that no API server takes.
func RefusedSelector(s *policy.Selector) bool {
	return slices.ContainsFunc(s.Expressions, InvalidRequirement) || slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool {
		return InvalidRequirement(policy.SelectorExpression{Key: p.Key, Operator: "In", Values: []string{p.Value}})
	})
}

// SelectorKey is everything that a selector says.
func SelectorKey(s vap.Selector) string {
	parts := []string{"selector"}
	for _, l := range s.Labels {
		parts = append(parts, l.Key+"="+l.Value)
	}
	for _, e := range s.Expressions {
		parts = append(parts, e.Key+" "+e.Operator+" "+strings.Join(e.Values, ","))
	}
	return strings.Join(parts, "\x04")
}

// PlainSelector is a selector in which nothing is a wildcard; nil selects everything.
func PlainSelector(s *policy.Selector) vap.Selector {
	var out vap.Selector
	if s == nil {
		return out
	}
	for _, p := range s.MatchLabels {
		out.Labels = append(out.Labels, vap.Label{Key: p.Key, Value: p.Value})
	}
	for _, e := range s.Expressions {
		out.Expressions = append(out.Expressions, vap.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return out
}

// Parts is what a CEL rule brings along besides its verdict.
type Parts struct {
	Checks     []vap.Validation // without their members
	Conditions []vap.Condition
	Variables  []vap.Variable
	Audits     []vap.Audit
	ParamKind  *vap.ParamKind
	ParamRef   *vap.ParamRef // NotFound is for a binding that denies
	// Written is what the author wrote, for the API server's compiler: what is
	// asked before an expression can hide that it is no condition.
	Written vap.Draft
}

// Key is everything that the parts say.
func (n *Parts) Key() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.Checks {
		parts = append(parts, "check", c.Expr.String(), c.Message, c.Reason)
		if c.MessageExpression != nil {
			parts = append(parts, c.MessageExpression.String())
		}
	}
	return strings.Join(append(parts, n.Own()), "\x00")
}

// Own is what a policy object has only once; "" where there is none of it, so that
// the rule can share its object with others.
func (n *Parts) Own() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.Conditions {
		parts = append(parts, "condition", c.Name, c.Expr.String())
	}
	for _, v := range n.Variables {
		parts = append(parts, "variable", v.Name, v.Expr.String())
	}
	for _, a := range n.Audits {
		parts = append(parts, "audit", a.Key, a.Value.String())
	}
	if n.ParamKind != nil {
		ref := n.ParamRef
		parts = append(parts, "params", n.ParamKind.APIVersion, n.ParamKind.Kind, ref.Namespace, ref.Name, ref.NotFound)
		if ref.Selector != nil {
			parts = append(parts, SelectorKey(*ref.Selector))
		}
	}
	return strings.Join(parts, "\x00")
}

// AddTo puts the parts into the draft of the rule's object.
func (n *Parts) AddTo(d *vap.Draft) {
	if n == nil {
		return
	}
	d.Conditions = append(d.Conditions, n.Conditions...)
	d.Variables = append(d.Variables, n.Variables...)
	d.Audits = append(d.Audits, n.Audits...)
	if n.ParamKind != nil {
		d.ParamKind = n.ParamKind
	}
}

// MemberName is the policy's name, with its namespace where it has one.
func MemberName(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}
