package background

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failedWith is what is told, and what the state says, of a failure.
func (b *bench) failedWith(name string) string {
	b.doRequest(b.t.Context(), name)
	if b.requests[name] == nil || len(b.told) == 0 {
		b.t.Fatalf("nothing failed: %v", b.cluster.log)
	}
	return b.requests[name].Status.Message + "\n" + b.told[0].Note
}

// What the API server says of an object that it refuses names the field, not what is
// in it.
func TestRefusedValue(t *testing.T) {
	for _, err := range []error{
		apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "defaults", field.ErrorList{field.Invalid(field.NewPath("data", "key"), "hunter2", "bad")}),
		apierrors.NewBadRequest("cannot read hunter2"),
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "defaults", nil),
	} {
		if apierrors.IsForbidden(err) {
			var status *apierrors.StatusError
			if !errors.As(err, &status) {
				t.Fatal(err)
			}
			status.ErrStatus.Message = `admission webhook "x" denied the request: hunter2`
		}
		b := start(t, settings, shop)
		b.cluster.refuse["create ConfigMap"] = err
		text := b.failedWith(b.asked("CREATE", object(t, shop), nil)[0])
		if strings.Contains(text, "hunter2") || apierrors.IsInvalid(err) && !strings.Contains(text, "data[key]") && !strings.Contains(text, "data.key") {
			t.Errorf("%v is told as %s", err, text)
		}
		if apierrors.IsForbidden(err) && (!strings.Contains(text, excludeIt) || strings.Contains(text, grantIt) || b.told[0].Reason != reasonFailed) {
			t.Errorf("a policy denies it, and no permission is missing: %s %s", b.told[0].Reason, text)
		}
	}
}

// What variables come to is not told, but which they are.
func TestHiddenValue(t *testing.T) {
	text := strings.Replace(settings, `"{{ request.userInfo.username }}"`, `"{{ to_boolean(request.object.metadata.annotations.password) }}"`, 1)
	trigger := object(t, strings.Replace(shop, "uid: u1", "uid: u1, annotations: {password: hunter2}", 1))
	b := start(t, text)
	b.cluster.store(trigger)
	got := b.failedWith(b.asked("CREATE", trigger, nil)[0])
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "annotations.password") {
		t.Error(got)
	}
}

// A permission that is missing is told in full.
func TestPermissionTold(t *testing.T) {
	b := start(t, settings)
	j := job{rule: b.rule(ruleID{"kyverno.io/ClusterPolicy//settings", "defaults"})}
	const why = `secrets "s" is forbidden: User "kvap" cannot get resource "secrets" in API group "" in the namespace "default"`
	if got := j.hideText(`the source cannot be read: ` + why + ` of "hunter2"`); !strings.Contains(got, why) || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
