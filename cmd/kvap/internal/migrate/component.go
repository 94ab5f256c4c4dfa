package migrate

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A Component is what some moves do to one policy, as files for a Git repository: a
// kustomize component that is added to the list when it is time.
type Component struct {
	// Part is the step, for instance enforce-1-native, and Policy the folder in it.
	Part, Policy string
	// Files are by name, in the order of their names.
	Files []File

	resources, patches []string // of the kustomization
}

// File is a file of a component.
type File struct {
	Name string
	Data []byte
}

// Components are the components that lead where the moves lead, in their order. What
// is recorded is not part of them: the record of a repository is its history.
func Components(w PolicyState, moves []*Move) ([]Component, error) {
	var out []Component
	for _, m := range moves {
		if m.Part != "" {
			if len(out) == 0 || out[len(out)-1].Part != m.Part {
				out = append(out, Component{Part: m.Part, Policy: folderOf(w.Ref)})
			}
			if err := out[len(out)-1].add(w, m); err != nil {
				return nil, err
			}
		}
		w = w.after(m)
	}
	for i, c := range out {
		list, err := yaml.Marshal(c.list())
		if err != nil {
			return nil, err
		}
		out[i].Files = append([]File{{"kustomization.yaml", list}}, c.Files...)
	}
	return out, nil
}

// folderOf is a folder's name for a policy that no other policy has.
func folderOf(ref v1alpha1.PolicyReference) string {
	parts := []string{strings.ToLower(ref.Kind)}
	if ref.Group != kyvernoGroup {
		parts = append(parts, strings.TrimSuffix(ref.Group, "."+kyvernoGroup))
	}
	if ref.Namespace != "" {
		parts = append(parts, ref.Namespace)
	}
	return strings.Join(append(parts, ref.Name), ".")
}

func (c *Component) add(w PolicyState, m *Move) error {
	of := m.Write
	if of == nil {
		of = m.Delete
	}
	name := "source"
	have := w.Source
	if of.GroupVersionKind().Group == v1alpha1.Group {
		name, have = "kvap", w.Carrier
	}
	var doc map[string]any
	switch {
	case m.Delete != nil:
		name += "-delete.yaml"
		doc = identity(of)
		doc["$patch"] = "delete"
		c.patches = append(c.patches, name)
	case have == nil:
		name += ".yaml"
		o := asMade(of)
		if name == "kvap.yaml" {
			annotate(o, wavesBefore(w.Source))
		}
		doc = o.Object
		c.resources = append(c.resources, name)
	default:
		name += "-patch.yaml"
		doc = identity(of)
		merge(doc, difference(asMade(have).Object, asMade(of).Object))
		c.patches = append(c.patches, name)
	}
	data, err := yaml.Marshal(doc)
	c.Files = append(c.Files, File{name, data})
	return err
}

// wavesBefore has Argo CD make a policy of kvap.dev a wave before the one in which Kyverno's is,
// and with which it would go; and on the way back take it away last.
func wavesBefore(source *unstructured.Unstructured) map[string]string {
	wave := 0
	if source != nil {
		wave, _ = strconv.Atoi(source.GetAnnotations()[syncWave]) // which is 0 where it says none
	}
	return map[string]string{syncWave: strconv.Itoa(wave - 1), "argocd.argoproj.io/sync-options": "PruneLast=true"}
}

// syncWave is when Argo CD makes an object, the smallest first.
const syncWave = "argocd.argoproj.io/sync-wave"

func (c Component) list() map[string]any {
	list := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
	if len(c.resources) > 0 {
		list["resources"] = c.resources
	}
	var patches []any
	for _, name := range c.patches {
		patches = append(patches, map[string]any{"path": name})
	}
	if patches != nil {
		list["patches"] = patches
	}
	return list
}

// identity is what names an object.
func identity(o *unstructured.Unstructured) map[string]any {
	meta := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		meta["namespace"] = o.GetNamespace()
	}
	return map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": meta}
}

// difference is a merge patch from one object to another.
func difference(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			out[key] = nil
		}
	}
	for key, want := range to {
		have, ok := from[key]
		a, isMap := have.(map[string]any)
		b, areMaps := want.(map[string]any)
		switch {
		case ok && reflect.DeepEqual(have, want):
		case isMap && areMaps:
			out[key] = difference(a, b)
		default:
			out[key] = want
		}
	}
	return out
}

// merge lays a map over another.
func merge(into, over map[string]any) {
	for key, value := range over {
		a, isMap := into[key].(map[string]any)
		b, areMaps := value.(map[string]any)
		if isMap && areMaps {
			merge(a, b)
			continue
		}
		into[key] = value
	}
}
