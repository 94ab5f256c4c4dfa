package interp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/policy"
)

// A Request is an admission request to judge, with what the cluster knows of the
// user and the namespace.
type Request struct {
	// Admission is the AdmissionRequest as JSON: nil, bool, int64, float64, string,
	// []any and map[string]any. It is not changed.
	Admission map[string]any
	// NamespaceLabels are those of the request's namespace; where nil, the World is
	// asked.
	NamespaceLabels map[string]string
	// Namespace, where not nil, is the request's namespace as an object, in the place of
	// what the World has.
	Namespace map[string]any
	// NamespaceUnknown tells that nobody knows more of the request's namespace than its name:
	// what its labels decide is Unknown.
	NamespaceUnknown bool
	// Roles (namespace:name) and ClusterRoles are what is bound to the user.
	Roles, ClusterRoles []string
	// Action, if not empty, takes the place of the policies' own actions.
	Action policy.Action
	// Exact asks for the status that Kyverno gives, where kvap differs on purpose.
	Exact bool
	// Scan tells of an object that is there: policies with admission: false are asked
	// too.
	Scan bool
	// OwnConditions tells that nobody but the engine evaluates the match conditions of policies:
	// one that errs is an error of each rule, as it is of the request to an API server.
	OwnConditions bool
	// Document tells that the object of Admission is a JSON document and none of a cluster's:
	// policies with evaluation.mode JSON judge it, whatever they match, and no others.
	Document bool
	// Asked is the object as it was in the request, where policies that mutate have changed
	// the one of Admission since; nil where they have not. request.object is that in the CEL
	// of a MutatingPolicy.
	Asked map[string]any
	// Verified is shared by the engines that judge one request; nil where one judges it alone.
	Verified *Verified
}

// ParseAdmission reads an AdmissionRequest written as JSON.
func ParseAdmission(data []byte) (map[string]any, error) {
	var m map[string]any
	if err := kjson.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("the admission request is no JSON object: %w", err)
	}
	return m, nil
}

// AdmissionOf is an AdmissionRequest as JSON.
func AdmissionOf(r *admissionv1.AdmissionRequest) (map[string]any, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return ParseAdmission(data)
}

// A preparedRequest is a request, read once for all policies.
type preparedRequest struct {
	ctx     context.Context
	request *Request
	world   World
	limits  Limits
	size    *meter
	data    map[string]any // what expressions see at their root
	kind    resourceKind
	// object and old are nil when absent. They have the type and namespace of the
	// request.
	object, old map[string]any
	// asked is the object before anything changed it.
	asked     map[string]any
	verified  *Verified
	operation string
	namespace string
	user      user
	// labels of the namespace, once they were asked for; labelsErr is why that
	// failed.
	labels    map[string]string
	labelsErr error
	reading
}

func newReview(ctx context.Context, r *Request, w World, limits Limits) *preparedRequest {
	a := r.Admission
	if r.Namespace != nil {
		w = toldWorld{w, digText(a, "namespace"), r.Namespace}
	}
	u, _ := a["userInfo"].(map[string]any)
	out := &preparedRequest{
		ctx: ctx, request: r, world: w, limits: limits,
		size:      &meter{left: limits.context()},
		operation: digText(a, "operation"),
		namespace: digText(a, "namespace"),
		user:      user{name: digText(u, "username"), groups: stringsOf(u["groups"]), roles: r.Roles, clusterRoles: r.ClusterRoles},
		labels:    r.NamespaceLabels,
	}
	out.kind = requestedKind(a, w)
	out.object, out.old = typedObject(a, "object"), typedObject(a, "oldObject")
	out.asked = out.object
	if out.verified = r.Verified; out.verified == nil {
		out.verified = &Verified{}
	}
	if r.Asked != nil {
		out.asked = r.Asked
	}
	account, accountNamespace := serviceAccount(out.user.name)
	out.data = map[string]any{
		"request":                 requestValue(r),
		"serviceAccountName":      account,
		"serviceAccountNamespace": accountNamespace,
	}
	return out
}

// namespaceLabels are empty outside of namespaces.
func (a *preparedRequest) namespaceLabels() map[string]string {
	if a.labels != nil {
		return a.labels
	}
	a.labels = map[string]string{}
	if a.namespace == "" {
		return a.labels
	}
	namespace, err := a.world.Namespace(a.ctx, a.namespace)
	if err != nil {
		a.labelsErr = fmt.Errorf("failed to get the labels of the namespace: %w", err)
		return a.labels
	}
	a.labels = metaMap(namespace, "labels")
	return a.labels
}

// requestedKind is the kind of the resource that a request is about. In a request
// for a subresource, request.kind is that of the object in it, which may be
// another.
func requestedKind(a map[string]any, w World) resourceKind {
	k := objectKind(a)
	k.subresource = digText(a, "subResource")
	if k.subresource == "" {
		return k
	}
	group, version, resource := digText(a, "resource", "group"), digText(a, "resource", "version"), digText(a, "resource", "resource")
	if kind, ok := w.Kind(group, version, resource); ok {
		k.group, k.version, k.kind = group, version, kind
	}
	return k
}

// objectKind is the kind of the objects in a request.
func objectKind(a map[string]any) resourceKind {
	return resourceKind{group: digText(a, "kind", "group"), version: digText(a, "kind", "version"), kind: digText(a, "kind", "kind")}
}

// typedObject is an object of the request with the type that the request says it
// has, and, unless it is a Namespace, the request's namespace.
func typedObject(a map[string]any, key string) map[string]any {
	object, ok := a[key].(map[string]any)
	if !ok {
		return nil
	}
	object = maps.Clone(object)
	if kind := digText(a, "kind", "kind"); kind != "" {
		object["kind"] = kind
		object["apiVersion"] = digText(a, "kind", "version")
		if group := digText(a, "kind", "group"); group != "" {
			object["apiVersion"] = group + "/" + digText(a, "kind", "version")
		}
	}
	namespace := digText(a, "namespace")
	if namespace == "" || object["kind"] == "Namespace" || metaText(object, "namespace") == namespace {
		return object
	}
	meta := maps.Clone(digMap(object, "metadata"))
	if meta == nil {
		meta = map[string]any{}
	}
	meta["namespace"] = namespace
	object["metadata"] = meta
	return object
}

// requestValue is what expressions see as request: every field that an
// AdmissionRequest always has, null where it is empty, and none of the others
// that are empty.
func requestValue(r *Request) map[string]any {
	v := make(map[string]any, len(r.Admission)+4)
	for key, empty := range map[string]any{
		"uid": "", "operation": "", "userInfo": map[string]any{}, "object": nil, "oldObject": nil, "options": nil,
		"kind": map[string]any{"group": "", "version": "", "kind": ""}, "resource": map[string]any{"group": "", "version": "", "resource": ""},
	} {
		v[key] = empty
	}
	for key, value := range r.Admission {
		if omitted(key) && (value == nil || value == "") {
			continue
		}
		if value == nil && v[key] != nil {
			continue
		}
		v[key] = value
	}
	if len(r.Roles) > 0 {
		v["roles"] = anyList(r.Roles)
	}
	if len(r.ClusterRoles) > 0 {
		v["clusterRoles"] = anyList(r.ClusterRoles)
	}
	return v
}

// omitted tells whether a field of an AdmissionRequest is left out when empty.
func omitted(key string) bool {
	switch key {
	case "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace", "dryRun":
		return true
	}
	return false
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// serviceAccount splits the name of a user who is a service account. Other users
// have neither part (deviation 6).
func serviceAccount(username string) (name, namespace string) {
	rest, ok := strings.CutPrefix(username, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok {
		return "", ""
	}
	return name, namespace
}
