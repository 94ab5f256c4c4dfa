package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/court"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/schema"
)

// An actor is who acts on resources.
type actor struct {
	name                        string
	groups, roles, clusterRoles []string
}

// A resourceRequest makes requests of resources, as a client would.
type resourceRequest struct {
	schemas   *schema.Set
	operation string
	namespace string // of resources that name none
	actor     actor
}

// resourceInputs are the resources as requests.
func (f evalFlags) resourceInputs(stdin io.Reader, e *evaluation) ([]input, error) {
	resources, sources, found, err := readManifests("--resource", f.resources, stdin)
	if err != nil {
		return nil, err
	}
	e.sources, e.found = append(e.sources, sources...), append(e.found, found...)
	old, sources, found, err := readManifests("--old", f.old, stdin)
	if err != nil {
		return nil, err
	}
	e.sources, e.found = append(e.sources, sources...), append(e.found, found...)
	r := resourceRequest{
		schemas: e.schemas, operation: f.operation, namespace: f.namespace,
		actor: actor{f.user, f.groups, f.roles, f.clusterRoles},
	}
	switch {
	case r.operation == "" && len(f.old) > 0:
		r.operation = "UPDATE"
	case r.operation == "":
		r.operation = "CREATE"
	}
	var out []input
	for _, o := range resources {
		before := manifest.Object{}
		if i := slices.IndexFunc(old, func(old manifest.Object) bool { return r.same(o, old) }); i >= 0 {
			before = old[i]
		}
		out = append(out, input{pos: o.Pos, read: func() (string, *court.Request, diag.List) {
			request, ds := r.make(o, before)
			return o.Title(), request, ds
		}})
	}
	return out, nil
}

// same tells whether two documents are of one object.
func (r resourceRequest) same(a, b manifest.Object) bool {
	namespace := func(o manifest.Object) string {
		if n := o.Meta("namespace"); n != "" {
			return n
		}
		return r.namespace
	}
	return a.Kind() == b.Kind() && a.Meta("name") == b.Meta("name") && namespace(a) == namespace(b)
}

// make is the request of a resource; nil where there is an error.
func (r resourceRequest) make(o, old manifest.Object) (*court.Request, diag.List) {
	resource, found := r.resource(o)
	if found.HasErrors() {
		return nil, found
	}
	object := r.placed(o.Value, resource)
	admission := r.frame(o, resource)
	switch {
	case r.operation == "DELETE":
		admission["oldObject"] = object
	case r.operation == "UPDATE" && old.Value == nil:
		return nil, append(found, diag.Errorf(o.Pos, diag.BadRequest, "%s is not among the resources of --old; an update needs the object as it was", o.Title()))
	case r.operation == "UPDATE":
		admission["object"], admission["oldObject"] = object, r.placed(old.Value, resource)
	default:
		admission["object"] = object
	}
	request, err := court.NewRequest(admission)
	if err != nil {
		return nil, append(found, diag.Errorf(o.Pos, diag.BadRequest, "%s: %v", o.Title(), err))
	}
	request.Roles, request.ClusterRoles = r.actor.roles, r.actor.clusterRoles
	return request, found
}

// resource finds the resource of an object's kind, or guesses it, as the
// translation does.
func (r resourceRequest) resource(o manifest.Object) (schema.Resource, diag.List) {
	fail := func(code diag.Code, format string, args ...any) (schema.Resource, diag.List) {
		return schema.Resource{}, diag.List{diag.Errorf(o.Pos, code, format, args...)}
	}
	gv, err := apischema.ParseGroupVersion(o.APIVersion())
	switch {
	case o.Kind() == "":
		return fail(diag.BadRequest, "the resource has no kind; add apiVersion and kind")
	case err != nil:
		return fail(diag.BadRequest, "the resource's apiVersion %q is no group/version", o.APIVersion())
	case gv.Version == "":
		return fail(diag.BadRequest, "the resource has no apiVersion; add it beside kind: %s", o.Kind())
	case o.Value["metadata"] != nil && !isMap(o.Value["metadata"]):
		return fail(diag.BadRequest, "metadata of the %s is no object", o.Kind())
	}
	gvk := schema.GVK{Group: gv.Group, Version: gv.Version, Kind: o.Kind()}
	if known, ok := r.schemas.ByKind(gvk); ok {
		return known, nil
	}
	if builtinGroup(gv.Group) {
		return fail(diag.UnknownKind, "Kubernetes %s serves no kind %s in %s; %s", r.schemas.Release(), o.Kind(), o.APIVersion(), r.instead(gvk))
	}
	guessed := r.schemas.Resources(gv.Group, gv.Version, o.Kind())[0]
	guessed.Group, guessed.Version = gv.Group, gv.Version
	guessed.Namespaced = o.Meta("namespace") != "" || guessed.Namespaced && !clusterWord(o.Kind())
	return guessed, diag.List{diag.Notef(o.Pos, diag.UnknownKind,
		"the definition of %s is not known; its resource is taken for %s; --crds settles it", gvk, guessed.Plural)}
}

// clusterWord tells of a kind whose name says that it lives in no namespace.
func clusterWord(kind string) bool {
	return strings.HasPrefix(kind, "Cluster") && kind != "Cluster"
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// builtinGroup tells that nobody but Kubernetes itself defines kinds in a group.
func builtinGroup(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return true
	}
	return false
}

// instead is a next step for a kind that is not served.
func (r resourceRequest) instead(gvk schema.GVK) string {
	var others []string
	for _, other := range r.schemas.Resources("*", "*", gvk.Kind) {
		if !other.Guessed {
			others = append(others, other.APIVersion())
		}
	}
	if len(others) == 0 {
		return "correct apiVersion and kind"
	}
	return "it is served in " + strings.Join(others, " and ")
}

// frame is the request without objects.
func (r resourceRequest) frame(o manifest.Object, resource schema.Resource) map[string]any {
	kind := map[string]any{"group": resource.Group, "version": resource.Version, "kind": resource.Kind}
	plural := map[string]any{"group": resource.Group, "version": resource.Version, "resource": resource.Plural}
	groups := make([]any, len(r.actor.groups))
	for i, g := range r.actor.groups {
		groups[i] = g
	}
	user := map[string]any{"username": r.actor.name}
	if len(groups) > 0 {
		user["groups"] = groups
	}
	frame := map[string]any{
		"uid":  "00000000-0000-0000-0000-000000000000",
		"kind": kind, "resource": plural, "requestKind": kind, "requestResource": plural,
		"name": o.Meta("name"), "operation": r.operation, "userInfo": user, "dryRun": false,
		"options": map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": r.options()},
	}
	switch {
	case resource.Group == "" && resource.Kind == "Namespace":
		frame["namespace"] = o.Meta("name")
	case resource.Namespaced:
		frame["namespace"] = r.namespaceOf(o.Value)
	}
	return frame
}

func (r resourceRequest) options() string {
	return r.operation[:1] + strings.ToLower(r.operation[1:]) + "Options"
}

func (r resourceRequest) namespaceOf(object map[string]any) string {
	if n := (manifest.Object{Value: object}).Meta("namespace"); n != "" {
		return n
	}
	return r.namespace
}

// placed is the object in its namespace, which a request of a cluster-scoped kind
// has not.
func (r resourceRequest) placed(object map[string]any, resource schema.Resource) map[string]any {
	out := maps.Clone(object)
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "namespace")
	if resource.Namespaced {
		meta["namespace"] = r.namespaceOf(object)
	}
	out["metadata"] = meta
	return out
}

// title names a request that has no id.
func title(r map[string]any) string {
	kind, _ := r["kind"].(map[string]any)
	words := []string{fmt.Sprint(kind["kind"])}
	for _, key := range []string{"namespace", "name"} {
		if s, _ := r[key].(string); s != "" {
			words = append(words, s)
		}
	}
	return strings.Join(words, "/")
}
