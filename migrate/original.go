package migrate

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// lastApplied is what kubectl apply compares with. It counts as a part of the object
// as users wrote it: without it, kubectl could not take fields away.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// asMade is a policy without what the API server wrote into it, so that it can be
// made again.
func asMade(policy *unstructured.Unstructured) *unstructured.Unstructured {
	o := policy.DeepCopy()
	for _, key := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", key)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

// recorded records a policy as it is.
func recorded(policy *unstructured.Unstructured) *v1alpha1.LastGood {
	made := asMade(policy)
	data, err := json.Marshal(made.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	return &v1alpha1.LastGood{Digest: Digest(made.Object), Policy: string(data)}
}

// keepOriginal records a policy as it is, but for what a migration has written into it:
// of that, what was there before counts.
func keepOriginal(policy *unstructured.Unstructured, before *v1alpha1.LastGood) *v1alpha1.LastGood {
	o := unorphaned(policy).DeepCopy()
	annotate(o, map[string]string{v1alpha1.HistoryKey: "", v1alpha1.KyvernoKey: ""})
	if was, err := restored(before); err == nil {
		annotate(o, map[string]string{v1alpha1.ModeKey: modeOf(was)})
	}
	return recorded(o)
}

// switchedOn is a policy in which admission is as it was when it was recorded.
func switchedOn(policy *unstructured.Unstructured, before *v1alpha1.LastGood) *unstructured.Unstructured {
	o := policy.DeepCopy()
	if was, err := restored(before); err == nil {
		restoreAdmission(o, was)
	}
	return o
}

// restored is the policy that was recorded.
func restored(kept *v1alpha1.LastGood) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if kept == nil {
		return nil, fmt.Errorf("the record has no policy to go back to")
	}
	if err := json.Unmarshal([]byte(kept.Policy), &o.Object); err != nil {
		return nil, fmt.Errorf("the policy that was recorded cannot be read: %w", err)
	}
	return o, nil
}

// specAsWritten is the spec of a policy as it was before Kyverno was switched off in
// it. That admission is on is left away, for some definitions have it as a default.
func specAsWritten(policy map[string]any) any {
	spec, ok := policy["spec"].(map[string]any)
	if !ok {
		return policy["spec"]
	}
	spec = runtime.DeepCopyJSON(spec)
	annotations, _, _ := unstructured.NestedStringMap(policy, "metadata", "annotations")
	switchOn(spec, annotations[v1alpha1.KyvernoKey] == v1alpha1.KyvernoOff)
	unorphan(spec, orphaned(&unstructured.Unstructured{Object: policy}))
	return spec
}

// switchOn takes out of a spec that admission is on; where it was switched off for
// Kyverno's sake, that too.
func switchOn(spec map[string]any, wasOff bool) {
	if spec["admission"] == true || wasOff {
		delete(spec, "admission")
	}
	evaluation, _ := spec["evaluation"].(map[string]any)
	if admission, _ := evaluation["admission"].(map[string]any); admission["enabled"] == true || wasOff {
		delete(evaluation, "admission")
	}
	if evaluation != nil && len(evaluation) == 0 {
		delete(spec, "evaluation")
	}
}

// annotate sets annotations of an object; an empty value removes one.
func annotate(o *unstructured.Unstructured, values map[string]string) {
	have := maps.Clone(o.GetAnnotations())
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range values {
		if value == "" {
			delete(have, key)
		} else {
			have[key] = value
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
		return
	}
	o.SetAnnotations(have)
}
