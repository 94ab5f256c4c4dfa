//go:build e2e

package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// policies are those of a scenario as they are at a time, by kind and name.
type policies map[string]*unstructured.Unstructured

func key(o *unstructured.Unstructured) string {
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

// do does a step to one of the policies.
func (p policies) do(v verb, o *unstructured.Unstructured) error {
	switch v {
	case apply:
		p[key(o)] = o.DeepCopy()
	case deletion:
		delete(p, key(o))
	case patch:
		have := p[key(o)]
		if have == nil {
			return fmt.Errorf("there is no %s", key(o))
		}
		have = have.DeepCopy()
		merge(have.Object, o.Object)
		p[key(o)] = have
	}
	return nil
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		have, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(have, inner)
		default:
			into[k] = v
		}
	}
}

// compiled is what the policies are translated to. why names the rules that have no
// native form.
func (p policies) compiled(types *schema.Set) (objects []client.Object, why string, err error) {
	var in compile.Input
	for _, name := range slices.Sorted(maps.Keys(p)) {
		data, err := json.Marshal(p[name].Object)
		if err != nil {
			return nil, "", err
		}
		f, found := policy.Parse(name, data)
		in.Policies, in.Exceptions = append(in.Policies, f.Policies...), append(in.Exceptions, f.Exceptions...)
		in.Found = append(in.Found, found...)
	}
	done := compile.Policies(in, compile.Options{Translate: translate.Options{
		Release: cel.Default, Schemas: types, Pack: translate.PackMatch, Params: translate.ParamsConfigMap,
		Existing: translate.AllowExisting, Guard: translate.GuardAuto,
	}})
	var left []string
	for _, r := range done.Rules {
		if r.Target != translate.Native {
			left = append(left, fmt.Sprintf("%s (%v)", r.Name(), r.Codes))
		}
	}
	if len(left) > 0 || len(done.Rules) == 0 {
		return nil, "rules without a native form: " + strings.Join(left, ", "), nil
	}
	for _, o := range done.Objects {
		for _, one := range o.All() {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
			if err != nil {
				return nil, "", err
			}
			delete(fields, "status")
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
	return objects, "", nil
}

// notNative says which rules keep a scenario from being replayed, at any of its steps.
func (s scenario) notNative(types *schema.Set) (string, error) {
	p := policies{}
	for _, step := range s.steps {
		changed := false
		for _, o := range step.objects {
			if !isPolicy(o) {
				continue
			}
			if step.refused {
				return "a policy that is to be refused", nil
			}
			if err := p.do(step.verb, o); err != nil {
				return err.Error(), nil
			}
			changed = true
		}
		if !changed || len(p) == 0 {
			continue
		}
		if _, why, err := p.compiled(types); why != "" || err != nil {
			return why, err
		}
	}
	if len(p) == 0 {
		return "there is no policy", nil
	}
	return "", nil
}
