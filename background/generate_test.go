package background

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
)

const settings = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: settings}
spec:
  rules:
  - name: defaults
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: "*"}}}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: defaults
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      data: {data: {creator: "{{ request.userInfo.username }}"}}
`

const shop = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u1, labels: {team: a}}}`

// An object is generated once the trigger is stored, with what is known of the user;
// then the request is gone.
func TestGenerate(t *testing.T) {
	b := start(t, settings)
	trigger := object(t, shop)
	names := b.asked("CREATE", trigger, nil)
	if len(names) != 1 || !slices.Equal(names, b.asked("CREATE", trigger, nil)) {
		t.Fatalf("the requests %v", names)
	}
	if again := b.doRequest(t.Context(), names[0]); again == 0 || len(b.cluster.log) > 0 {
		t.Fatalf("before the object is stored: again after %v, %v", again, b.cluster.log)
	}
	b.cluster.store(trigger)
	if again := b.doRequest(t.Context(), names[0]); again != 0 {
		t.Errorf("again after %v: %+v", again, b.requests[names[0]].Status)
	}
	made := b.stored("v1", "ConfigMap", "shop", "defaults")
	if made == nil || made["data"].(map[string]any)["creator"] != "alice" {
		t.Errorf("made %v", made)
	}
	if len(b.requests) != 0 || len(b.told) != 0 {
		t.Errorf("left: %v, told %v", b.requests, b.told)
	}
}

// What is refused in the end generates nothing.
func TestNeverStored(t *testing.T) {
	b := start(t, settings)
	names := b.asked("CREATE", object(t, shop), nil)
	b.now = b.now.Add(time.Minute)
	if again := b.doRequest(t.Context(), names[0]); again != 0 || len(b.requests) != 0 || len(b.cluster.log) != 0 {
		t.Errorf("again after %v: %v, %v", again, b.requests, b.cluster.log)
	}
}

// A failure is told once, tried again later and later, and told when it is mended.
func TestRetry(t *testing.T) {
	b := start(t, settings, shop)
	b.cluster.refuse["create ConfigMap"] = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "defaults", nil)
	name := b.asked("CREATE", object(t, shop), nil)[0]
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if again := b.doRequest(t.Context(), name); again != want {
			t.Errorf("again after %v, want %v", again, want)
		}
		if early := b.doRequest(t.Context(), name); early != want {
			t.Errorf("before its time: again after %v", early)
		}
		b.now = b.now.Add(want)
	}
	if s := b.requests[name].Status; s.RetryCount != 3 || s.State != v1alpha1.GeneratePending || len(b.told) != 1 || b.told[0].Reason != reasonForbidden {
		t.Errorf("status %+v, told %v", s, b.told)
	}
	delete(b.cluster.refuse, "create ConfigMap")
	if again := b.doRequest(t.Context(), name); again != 0 || b.stored("v1", "ConfigMap", "shop", "defaults") == nil {
		t.Errorf("again after %v: %v", again, b.cluster.log)
	}
	if len(b.told) != 2 || b.told[1].Warning {
		t.Errorf("told %v", b.told)
	}
}

// What is generated goes with its trigger.
func TestTriggerDeleted(t *testing.T) {
	b := start(t, settings, shop)
	b.doRequest(t.Context(), b.asked("CREATE", object(t, shop), nil)[0])
	name := b.asked("DELETE", nil, object(t, shop))[0]
	if again := b.doRequest(t.Context(), name); again == 0 || b.stored("v1", "ConfigMap", "shop", "defaults") == nil {
		t.Errorf("while the trigger is there: again after %v, %v", again, b.cluster.log)
	}
	delete(b.cluster.objects, b.cluster.keyOf(object(t, shop)))
	if again := b.doRequest(t.Context(), name); again != 0 || b.stored("v1", "ConfigMap", "shop", "defaults") != nil {
		t.Errorf("again after %v: %v", again, b.cluster.log)
	}
}
