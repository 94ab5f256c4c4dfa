package background

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if len(b.applied) != 1 || b.applied[0].Changes || b.applied[0].Rule != "defaults" || b.applied[0].Trigger.Name != "shop" || len(b.applied[0].Objects) != 1 || b.applied[0].Objects[0].Name != "defaults" {
		t.Errorf("applied %+v", b.applied)
	}
}

// What is refused in the end generates nothing.
func TestNeverStored(t *testing.T) {
	b := start(t, settings)
	names := b.asked("CREATE", object(t, shop), nil)
	for range 2 { // as long as a request may take it may still be stored
		if again := b.doRequest(t.Context(), names[0]); again == 0 || len(b.requests) != 1 {
			t.Fatalf("again after %v: %v", again, b.requests)
		}
		b.now = b.now.Add(time.Minute)
	}
	if again := b.doRequest(t.Context(), names[0]); again != 0 || len(b.requests) != 0 || len(b.cluster.log) != 0 {
		t.Errorf("again after %v: %v, %v", again, b.requests, b.cluster.log)
	}
}

// What the clocks of others say neither drops work nor keeps it.
func TestClocks(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		b := start(t, settings)
		name := b.asked("CREATE", object(t, shop), nil)[0]
		b.requests[name].CreationTimestamp.Time = b.now.Add(ahead)
		if again := b.doRequest(t.Context(), name); again == 0 || len(b.requests) != 1 {
			t.Errorf("%v ahead: again after %v: %v", ahead, again, b.requests)
		}
		next := metav1.NewTime(b.now.Add(24 * time.Hour))
		b.requests[name].Status.NextRetry = &next
		if again := b.doRequest(t.Context(), name); again > longestWait {
			t.Errorf("%v ahead: again after %v", ahead, again)
		}
		b.requests[name].Status.NextRetry, b.now = nil, b.now.Add(2*time.Minute)
		if again := b.doRequest(t.Context(), name); again != 0 || len(b.requests)+len(b.known) != 0 {
			t.Errorf("%v ahead: again after %v: %v", ahead, again, b.requests)
		}
	}
}

// An update that changes nothing triggers as any other does, and is not waited for: there
// is nothing to be stored. Who writes what, and when, is no change.
func TestUpdateOfNothing(t *testing.T) {
	b := start(t, settings, shop)
	old := b.stored("v1", "Namespace", "", "shop")
	same := object(t, shop)
	meta := same["metadata"].(map[string]any)
	meta["resourceVersion"], meta["managedFields"] = metaText(old, "resourceVersion"), []any{map[string]any{"manager": "me"}}
	names := b.asked("UPDATE", same, old)
	if len(names) != 1 {
		t.Fatalf("%v", names)
	}
	if again := b.doRequest(t.Context(), names[0]); again != 0 || b.stored("v1", "ConfigMap", "shop", "defaults") == nil {
		t.Errorf("again after %v: %v", again, b.cluster.log)
	}
}

// An update is waited for as long as it may take: what comes to less would leave what
// the rule made for an object that is a trigger no longer.
func TestSlowUpdate(t *testing.T) {
	b := start(t, settings)
	trigger := object(t, shop)
	b.cluster.store(trigger)
	b.doRequest(t.Context(), b.asked("CREATE", trigger, nil)[0])
	old := b.stored("v1", "Namespace", "", "shop")
	changed := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u1}}`)
	name := b.asked("UPDATE", changed, old)[0]
	for range 2 {
		if again := b.doRequest(t.Context(), name); again == 0 {
			t.Fatal("the work is over before the object is stored")
		}
		b.now = b.now.Add(30 * time.Second)
	}
	b.cluster.store(changed)
	if again := b.doRequest(t.Context(), name); again != 0 || b.stored("v1", "ConfigMap", "shop", "defaults") != nil {
		t.Errorf("again after %v: %v", again, b.cluster.log)
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

// A trigger that is on its way out is none: while finalizers hold it, what went with
// its deletion is not made again, whoever changes it or misses its objects. A rule that
// is not kept in step, or generates on deletion, goes on.
func TestTriggerEnding(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		stays  bool
	}{
		"in step":        {settings, false},
		"not in step":    {strings.Replace(settings, "synchronize: true", "synchronize: false", 1), true},
		"lists deletion": {strings.Replace(settings, "kinds: [Namespace]", "kinds: [Namespace], operations: [CREATE, UPDATE, DELETE]", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.policy == settings != !c.stays {
				t.Fatal("the policy has another form")
			}
			b := start(t, c.policy, shop)
			old := object(t, shop)
			ending := object(t, shop)
			meta := ending["metadata"].(map[string]any)
			meta["deletionTimestamp"], meta["finalizers"] = "2026-01-01T00:00:00Z", []any{"acme.io/hold"}
			b.cluster.store(ending)
			for _, name := range b.asked("UPDATE", ending, old) {
				b.doRequest(t.Context(), name)
			}
			if made := b.stored("v1", "ConfigMap", "shop", "defaults"); (made != nil) != c.stays {
				t.Errorf("%v", b.cluster.log)
			}
		})
	}
}

// Where somebody else writes an object at the same time, it is looked at again at once,
// and nobody hears of it.
func TestWrittenAtOnce(t *testing.T) {
	b := start(t, settings, shop)
	b.doRequest(t.Context(), b.asked("CREATE", object(t, shop), nil)[0])
	other := maps.Clone(b.stored("v1", "ConfigMap", "shop", "defaults"))
	other["data"] = map[string]any{"by": "somebody"}
	b.cluster.store(other)
	b.cluster.meanwhile = func() { b.cluster.store(b.stored("v1", "ConfigMap", "shop", "defaults")) }
	b.doRequest(t.Context(), b.asked("CREATE", object(t, shop), nil)[0])
	if data := b.stored("v1", "ConfigMap", "shop", "defaults")["data"].(map[string]any); data["by"] != nil || len(b.told) > 0 || len(b.requests) > 0 {
		t.Errorf("%v: %v, %v", b.cluster.log, data, b.told)
	}
}
