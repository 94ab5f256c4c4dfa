package judge

import (
	"maps"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/schema"
)

// A Client makes requests of resources, as a user's kubectl would.
type Client struct {
	Schemas   *schema.Set
	Operation string // CREATE where empty, UPDATE, DELETE
	Namespace string // of resources that name none
	User      string
	Groups    []string
	// Guess takes kinds of Kubernetes' own groups that the release does not serve for
	// custom ones, as those of distributions and of other releases.
	Guess bool
	// Defaults fills in what an API server would; nil judges objects as they were written.
	Defaults *defaulting.Defaulter
}

// Same tells whether two documents are of one object.
func (c Client) Same(a, b manifest.Object) bool {
	return a.Kind() == b.Kind() && a.Meta("name") == b.Meta("name") && c.namespaceOf(a.Value) == c.namespaceOf(b.Value)
}

// Request is the AdmissionRequest of a resource, as NewRequest takes it; nil where
// there is an error. Old, which only an UPDATE needs, is the object as it was.
func (c Client) Request(o, old manifest.Object) (map[string]any, diag.List) {
	if c.Operation == "" {
		c.Operation = "CREATE"
	}
	resource, found := c.resource(o)
	if found.HasErrors() {
		return nil, found
	}
	request := c.frame(o, resource)
	switch c.Operation {
	case "DELETE":
		request["oldObject"] = c.placed(o.Value, resource)
	case "UPDATE":
		request["object"] = c.placed(o.Value, resource)
		if old.Value == nil {
			return nil, append(found, diag.Errorf(o.Pos, diag.BadRequest, "there is no %s as it was; an update needs the object before and after", o.Title()))
		}
		request["oldObject"] = c.placed(old.Value, resource)
	default:
		request["object"] = c.placed(o.Value, resource)
	}
	return request, found
}

// resource finds the resource of an object's kind, or guesses it, as the
// translation does.
func (c Client) resource(o manifest.Object) (schema.Resource, diag.List) {
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
	if known, ok := c.Schemas.ByKind(gvk); ok {
		return known, nil
	}
	if builtinGroup(gv.Group) && !c.Guess {
		return fail(diag.UnknownKind, "Kubernetes %s serves no kind %s in %s; %s", c.Schemas.Release(), o.Kind(), o.APIVersion(), c.instead(gvk))
	}
	guessed := c.Schemas.Resources(gv.Group, gv.Version, o.Kind())[0]
	guessed.Group, guessed.Version = gv.Group, gv.Version
	guessed.Namespaced = o.Meta("namespace") != "" || guessed.Namespaced && !clusterWord(o.Kind())
	return guessed, diag.List{diag.Warnf(o.Pos, diag.UnknownKind,
		"the definition of %s is not known; its resource is taken for %s; give the definition with --crds", gvk, guessed.Plural)}
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
func (c Client) instead(gvk schema.GVK) string {
	var others []string
	for _, other := range c.Schemas.Resources("*", "*", gvk.Kind) {
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
func (c Client) frame(o manifest.Object, resource schema.Resource) map[string]any {
	kind := map[string]any{"group": resource.Group, "version": resource.Version, "kind": resource.Kind}
	plural := map[string]any{"group": resource.Group, "version": resource.Version, "resource": resource.Plural}
	groups := make([]any, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = g
	}
	user := map[string]any{}
	if c.User != "" {
		user["username"] = c.User
	}
	if len(groups) > 0 {
		user["groups"] = groups
	}
	frame := map[string]any{
		"uid":  "00000000-0000-0000-0000-000000000000",
		"kind": kind, "resource": plural, "requestKind": kind, "requestResource": plural,
		"name": o.Meta("name"), "operation": c.Operation, "userInfo": user, "dryRun": false,
		"options": map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": c.options()},
	}
	switch {
	case resource.Group == "" && resource.Kind == "Namespace":
		frame["namespace"] = o.Meta("name")
	case resource.Namespaced:
		frame["namespace"] = c.namespaceOf(o.Value)
	}
	return frame
}

func (c Client) options() string {
	return c.Operation[:1] + strings.ToLower(c.Operation[1:]) + "Options"
}

func (c Client) namespaceOf(object map[string]any) string {
	if n := (manifest.Object{Value: object}).Meta("namespace"); n != "" {
		return n
	}
	return c.Namespace
}

// placed is the object in its namespace, which a request of a cluster-scoped kind
// has not, with a spec, where each object of its kind has one, and filled in.
func (c Client) placed(object map[string]any, resource schema.Resource) map[string]any {
	out := maps.Clone(object)
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "namespace")
	if resource.Namespaced {
		meta["namespace"] = c.namespaceOf(object)
	}
	out["metadata"] = meta
	if t := c.Schemas.Type(resource.GVK); t != nil && out["spec"] == nil {
		if spec := t.Fields["spec"]; spec != nil && spec.Required {
			out["spec"] = map[string]any{}
		}
	}
	return c.Defaults.Fill(out)
}
