package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
)

// values are mocked variables, of a file or inline.
type values struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Globals    map[string]any    `json:"globalValues"`
	Policies   []policyValues    `json:"policies"`
	Namespaces []namespaceValues `json:"namespaceSelector"`
	// Subresources say which kinds are those of subresources.
	Subresources []subresourceValues `json:"subresources"`
	// Cluster are Namespaces that rules look up.
	Cluster []map[string]any `json:"namespaces"`
	answers
}

type subresourceValues struct {
	Subresource apiResource `json:"subresource"`
	Parent      apiResource `json:"parentResource"`
}

// An apiResource is what the API server says of a resource, whose name has a slash
// where it is a subresource.
type apiResource struct {
	Group        string `json:"group"`
	Version      string `json:"version"`
	Kind         string `json:"kind"`
	Name         string `json:"name"`
	SingularName string `json:"singularName"`
	Namespaced   bool   `json:"namespaced"`
}

// subresource is what a kind is the subresource of, if the values say.
func (v *values) subresource(group, kind string) (parent apiResource, name string, ok bool) {
	if v == nil {
		return parent, "", false
	}
	for _, s := range v.Subresources {
		if _, name, isSub := strings.Cut(s.Subresource.Name, "/"); isSub && s.Subresource.Kind == kind && s.Subresource.Group == group {
			return s.Parent, name, true
		}
	}
	return parent, "", false
}

type policyValues struct {
	Name      string           `json:"name"`
	Resources []resourceValues `json:"resources"`
	Rules     []ruleValues     `json:"rules"`
}

type resourceValues struct {
	Name   string         `json:"name"`
	Values map[string]any `json:"values"`
}

type ruleValues struct {
	Name    string           `json:"name"`
	Values  map[string]any   `json:"values"`
	ForEach map[string][]any `json:"foreachValues"`
}

type namespaceValues struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// forResource are the values that hold for all rules of a policy on a resource.
func (v *values) forResource(policyName, resource string) map[string]any {
	out := map[string]any{}
	if v == nil {
		return out
	}
	maps.Copy(out, v.Globals)
	for _, p := range v.Policies {
		if p.Name != policyName {
			continue
		}
		for _, r := range p.Resources {
			if r.Name == resource {
				maps.Copy(out, r.Values)
			}
		}
	}
	return out
}

// forRule are the values of a rule, by the name that it is written with.
func (v *values) forRule(policyName, rule string) (out ruleValues) {
	if v == nil {
		return out
	}
	for _, p := range v.Policies {
		if p.Name != policyName {
			continue
		}
		for _, r := range p.Rules {
			if r.Name == rule || r.Name == "autogen-"+rule || r.Name == "autogen-cronjob-"+rule {
				return r
			}
		}
	}
	return out
}

// labels are those of a namespace, if the values say.
func (v *values) labels(namespace string) (map[string]string, bool) {
	if v == nil {
		return nil, false
	}
	for _, n := range v.Namespaces {
		if n.Name == namespace {
			return n.Labels, true
		}
	}
	for _, n := range v.Cluster {
		if u := (unstructured.Unstructured{Object: n}); u.GetName() == namespace {
			return u.GetLabels(), true
		}
	}
	return nil, false
}

// A userInfo is who acts, of a file.
type userInfo struct {
	APIVersion   string         `json:"apiVersion"`
	Kind         string         `json:"kind"`
	Metadata     map[string]any `json:"metadata"`
	Roles        []string       `json:"roles"`
	ClusterRoles []string       `json:"clusterRoles"`
	UserInfo     map[string]any `json:"userInfo"`
}

// A contextFile is a Context of the Kyverno command line.
type contextFile struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       judge.Context  `json:"spec"`
}

// readOne reads a file that holds one document of a form.
func readOne(pos diag.Pos, objects []manifest.Object, into any) diag.List {
	if len(objects) != 1 {
		return diag.List{diag.Errorf(pos, diag.BadSuite, "the file holds %d documents; it should be one", len(objects))}
	}
	return decode(objects[0], into, nil)
}

// splitPath splits the name of a mocked variable at its dots; quotes keep dots.
func splitPath(name string) []string {
	var out []string
	var part strings.Builder
	quoted := false
	for _, r := range name {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '.' && !quoted:
			out = append(out, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	return append(out, part.String())
}

// put sets a value deep inside a map, and copies every map on its way: others may
// share them.
func put(m map[string]any, at []string, value any) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	if len(at) == 1 {
		out[at[0]] = value
		return out
	}
	inner, _ := out[at[0]].(map[string]any)
	out[at[0]] = put(inner, at[1:], value)
	return out
}

// valueKey is a text that is the same for the same values.
func valueKey(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
