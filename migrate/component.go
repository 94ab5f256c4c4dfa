package migrate

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
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

	resources []string // of the kustomization
	patches   []map[string]string
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
		list := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
		if len(c.resources) > 0 {
			list["resources"] = c.resources
		}
		if len(c.patches) > 0 {
			list["patches"] = c.patches
		}
		data, err := yaml.Marshal(list)
		if err != nil {
			return nil, err
		}
		out[i].Files = append([]File{{"kustomization.yaml", data}}, c.Files...)
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
	of := cmp.Or(m.Write, m.Delete)
	name := "source"
	have := w.Source
	if of.GroupVersionKind().Group == v1alpha1.Group {
		name, have = "kvap", w.Carrier
	}
	var data []byte
	var err error
	switch {
	case m.Delete != nil:
		name += "-delete.yaml"
		meta := map[string]any{"name": of.GetName()}
		if of.GetNamespace() != "" {
			meta["namespace"] = of.GetNamespace()
		}
		data, err = yaml.Marshal(map[string]any{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "metadata": meta, "$patch": "delete"})
		c.patches = append(c.patches, map[string]string{"path": name})
	case have == nil:
		name += ".yaml"
		o := asMade(of)
		if name == "kvap.yaml" {
			annotate(o, wavesBefore(w.Source))
		}
		data, err = yaml.Marshal(o.Object)
		c.resources = append(c.resources, name)
	default:
		name += "-patch.yaml"
		data, err = patchOf(asMade(have), asMade(of))
		c.patches = append(c.patches, map[string]string{"path": name})
	}
	c.Files = append(c.Files, File{name, data})
	return err
}

// patchOf is a merge patch from one version of an object to another, which names the object.
func patchOf(from, to *unstructured.Unstructured) ([]byte, error) {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		unstructured.RemoveNestedField(from.Object, path...) // so that it is in the patch
	}
	before, err := json.Marshal(from.Object)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to.Object)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(patch)
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
