package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// maxSteps is how many steps a record keeps.
const maxSteps = 100

// NewRecord is the record of a policy to which nothing was done. name is that of its
// PolicyTranslation too.
func NewRecord(name string, source v1alpha1.PolicyReference) *v1alpha1.Migration {
	return &v1alpha1.Migration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Migration"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MigrationSpec{Source: source},
		Status:     v1alpha1.MigrationStatus{Stage: v1alpha1.StageNone},
	}
}

// Digest tells one version of a policy from others by its spec, without what a
// migration writes into that, and by the annotation that says for which controllers of
// pods its rules are.
func Digest(policy map[string]any) string {
	spec := specAsWritten(policy)
	if pods := (&unstructured.Unstructured{Object: policy}).GetAnnotations()[autogenKey]; pods != "" {
		return digestOf(map[string]any{"spec": spec, "autogen": pods})
	}
	return digestOf(spec)
}

// autogenKey is the annotation of a policy that says for which controllers of pods its
// rules about pods are.
const autogenKey = "pod-policies.kyverno.io/autogen-controllers"

// ComparedDigest is what a comparison is about: a version of a policy, and of what else
// decides what it says: its exceptions, and the objects that its rules read.
func ComparedDigest(policy map[string]any, around []map[string]any) string {
	if len(around) == 0 {
		return Digest(policy)
	}
	all := []any{Digest(policy)}
	for _, one := range around {
		o := unstructured.Unstructured{Object: maps.Clone(one)}
		id := []string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}
		for _, key := range []string{"metadata", "status"} {
			delete(o.Object, key)
		}
		all = append(all, id, o.Object)
	}
	return digestOf(all)
}

func digestOf(what any) string {
	data, err := json.Marshal(what)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// NoComparison is why a policy is not to be enforced: there is no comparison that
// speaks for it.
type NoComparison struct{ why string }

// Error says why.
func (e *NoComparison) Error() string { return e.why }

// Speaks tells whether a comparison speaks for a policy of the digest: it is about
// that, no older than maxAge, and clean. The error is a NoComparison.
func Speaks(c *v1alpha1.Comparison, digest string, now time.Time, maxAge time.Duration) error {
	no := func(format string, args ...any) error { return &NoComparison{fmt.Sprintf(format, args...)} }
	if c == nil {
		return no("it was never compared")
	}
	age := now.Sub(c.At.Time)
	switch {
	case c.Digest != digest:
		return no("it, an exception of it or an object that it reads has changed since it was compared at %s", c.At.UTC().Format(time.RFC3339))
	case age > maxAge:
		return no("its comparison is of %s, which is more than %s ago", c.At.UTC().Format(time.RFC3339), maxAge)
	case age < -time.Hour:
		return no("its comparison is of %s, which is in the future", c.At.UTC().Format(time.RFC3339))
	case !c.Clean:
		return no("the last comparison was not clean: %s", c.Message)
	}
	return nil
}

// Note adds a step to a record. The oldest goes where there are too many.
func Note(m *v1alpha1.Migration, step v1alpha1.MigrationStep) {
	m.Status.Steps = append(m.Status.Steps, step)
	if over := len(m.Status.Steps) - maxSteps; over > 0 {
		m.Status.Steps = slices.Delete(m.Status.Steps, 0, over)
	}
}

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

// keepOriginal records a policy as it is, but for what a migration has written into it:
// of that, what was there before counts.
func keepOriginal(policy *unstructured.Unstructured, before *v1alpha1.LastGood) *v1alpha1.LastGood {
	o := asMade(unorphaned(policy))
	annotate(o, map[string]string{v1alpha1.HistoryKey: "", v1alpha1.KyvernoKey: ""})
	if was, err := restored(before); err == nil {
		if isOff(policy) {
			restoreAdmission(o, was)
		}
		annotate(o, map[string]string{v1alpha1.ModeKey: modeOf(was)})
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	return &v1alpha1.LastGood{Digest: Digest(o.Object), Policy: string(data)}
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
