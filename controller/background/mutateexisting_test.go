package background

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
)

// restarts marks the Secrets of a team when its ConfigMap changes.
const restarts = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: restarts}
spec:
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap], names: [settings]}}]}
    mutate:
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: Secret, namespace: "{{ request.object.metadata.namespace }}"}]
      patchStrategicMerge: {metadata: {annotations: {level: "{{ request.object.data.level }}"}}}
`

const (
	settingsMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: c1}, data: {level: high}}`
	firstSecret = `{apiVersion: v1, kind: Secret, metadata: {name: first, namespace: shop, uid: s1}}`
	lastSecret  = `{apiVersion: v1, kind: Secret, metadata: {name: last, namespace: shop, uid: s2}}`
	otherSecret = `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: bank, uid: s3}}`
)

// level is the annotation of a Secret.
func (b *bench) level(name string) any {
	b.t.Helper()
	for _, o := range b.cluster.objects {
		if o["kind"] == "Secret" && metaText(o, "name") == name {
			notes, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
			return notes["level"]
		}
	}
	return nil
}

// A target of any version is looked for in each that the cluster serves of the kind.
func TestMutateExistingAnyVersion(t *testing.T) {
	b := start(t, strings.Replace(restarts, "apiVersion: v1, kind: Secret,", "apiVersion: '*', kind: Secret,", 1), settingsMap, firstSecret, otherSecret)
	if b.doRequest(t.Context(), b.asked("CREATE", object(t, settingsMap), nil)[0]); len(b.requests) == 0 || b.level("first") != nil {
		t.Errorf("nobody serves it: %v", b.cluster.log)
	}
	b.now = b.now.Add(time.Minute)
	b.options.Kinds = func(group, version, kind string) []v1alpha1.KindReference {
		if group+"/"+version+"/"+kind != "*/*/Secret" {
			t.Errorf("asked for %s/%s/%s", group, version, kind)
		}
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: "Secret"}, {APIVersion: "example.com/v1", Kind: "Secret"}}
	}
	if b.doRequest(t.Context(), b.asked("CREATE", object(t, settingsMap), nil)[0]); len(b.requests) != 0 || b.level("first") != "high" || b.level("other") != nil {
		t.Errorf("%v: %+v", b.cluster.log, b.requests)
	}
}

// The targets are changed, and nothing else; nothing is written where nothing changes.
func TestMutateExisting(t *testing.T) {
	b := start(t, restarts, settingsMap, firstSecret, lastSecret, otherSecret)
	for range 2 {
		names := b.asked("CREATE", object(t, settingsMap), nil)
		if len(names) != 1 {
			t.Fatalf("the requests %v", names)
		}
		if again := b.doRequest(t.Context(), names[0]); again != 0 || len(b.requests) != 0 {
			t.Errorf("again after %v: %+v", again, b.requests)
		}
	}
	slices.Sort(b.cluster.log)
	if got := strings.Join(b.cluster.log, ", "); got != "update Secret shop/first, update Secret shop/last" {
		t.Errorf("wrote %s", got)
	}
	if b.level("first") != "high" || b.level("last") != "high" || b.level("other") != nil {
		t.Errorf("got %v, %v, %v", b.level("first"), b.level("last"), b.level("other"))
	}
}

// What is there when the policy comes is a trigger where the policy says so.
func TestMutateExistingOnPolicyUpdate(t *testing.T) {
	for text, want := range map[string]any{restarts: "high", strings.Replace(restarts, "Update: true", "Update: false", 1): nil} {
		b := start(t, text, settingsMap, firstSecret)
		b.options.Kinds = func(_, _, kind string) []v1alpha1.KindReference {
			return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
		}
		b.begin()
		for b.queue.Len() > 0 {
			b.next(t.Context())
		}
		if b.level("first") != want {
			t.Errorf("got %v, want %v", b.level("first"), want)
		}
	}
}

// An object that changes under the work is looked at again, and keeps what it has got.
func TestMutateExistingConflict(t *testing.T) {
	b := start(t, restarts, settingsMap, firstSecret)
	b.cluster.meanwhile = func() {
		changed := maps.Clone(b.stored("v1", "Secret", "shop", "first"))
		changed["type"] = "Opaque"
		b.cluster.store(changed)
	}
	names := b.asked("CREATE", object(t, settingsMap), nil)
	if again := b.doRequest(t.Context(), names[0]); again != 0 {
		t.Errorf("again after %v: %+v", again, b.requests[names[0]].Status)
	}
	if got := b.stored("v1", "Secret", "shop", "first"); got["type"] != "Opaque" || b.level("first") != "high" {
		t.Errorf("got %v", got)
	}
}

// A failure costs no other target; what is done is not done again.
func TestMutateExistingFails(t *testing.T) {
	b := start(t, strings.Replace(restarts, `namespace: "{{ request.object.metadata.namespace }}"`, "namespace: shop, name: '*t'", 1),
		settingsMap, firstSecret, lastSecret)
	b.cluster.refuse["update Secret"] = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
	names := b.asked("CREATE", object(t, settingsMap), nil)
	if again := b.doRequest(t.Context(), names[0]); again == 0 {
		t.Fatal("it is not tried again")
	}
	status := b.requests[names[0]].Status
	if status.State != v1alpha1.GeneratePending || !strings.Contains(status.Message, "Secret shop/first") || !strings.Contains(status.Message, "aggregate-to-controller") {
		t.Errorf("got %+v", status)
	}
	if len(b.told) != 1 || b.told[0].Reason != reasonForbidden {
		t.Errorf("told %+v", b.told)
	}
	clear(b.cluster.refuse)
	b.requests[names[0]].Status.Resources = []v1alpha1.ObjectReference{referenceOf(b.stored("v1", "Secret", "shop", "first"))}
	b.now = b.now.Add(time.Hour)
	b.doRequest(t.Context(), names[0])
	if got := strings.Join(b.cluster.log, ", "); got != "update Secret shop/last" {
		t.Errorf("wrote %s", got)
	}
}

// A policy of a namespace changes nothing outside of it, and no patch makes another
// object of one.
func TestMutateExistingStays(t *testing.T) {
	role := `{apiVersion: v1, kind: Secret, metadata: {name: everywhere, uid: r1}}`
	own := strings.NewReplacer("kind: ClusterPolicy", "kind: Policy", "{name: restarts}", "{name: restarts, namespace: shop}",
		`namespace: "{{ request.object.metadata.namespace }}"`, "namespace: bank").Replace(restarts)
	b := start(t, own, settingsMap, firstSecret, otherSecret, role)
	b.doRequest(t.Context(), b.asked("CREATE", object(t, settingsMap), nil)[0])
	if got := strings.Join(b.cluster.log, ", "); got != "update Secret shop/first" {
		t.Errorf("wrote %s", got)
	}
	b = start(t, strings.Replace(restarts, "{annotations: {level: \"{{ request.object.data.level }}\"}}", "{namespace: bank}", 1), settingsMap, firstSecret)
	names := b.asked("CREATE", object(t, settingsMap), nil)
	b.doRequest(t.Context(), names[0])
	if r := b.requests[names[0]]; len(b.cluster.log) > 0 || r == nil || !strings.Contains(r.Status.Message, "another object") {
		t.Errorf("wrote %v, %+v", b.cluster.log, r)
	}
}

// The program does not answer itself without end: each time it waits longer.
func TestMutateExistingAnswersItself(t *testing.T) {
	b := start(t, restarts, settingsMap, firstSecret)
	b.options.User = "alice"
	waited := 0
	for i := range 6 {
		changed := object(t, settingsMap)
		changed["data"] = map[string]any{"level": strings.Repeat("!", i+1)}
		b.cluster.store(changed)
		name := b.asked("CREATE", changed, nil)[0]
		if again := b.doRequest(t.Context(), name); again > 0 {
			waited++
		}
		for try := 0; b.requests[name] != nil && try < 100; try++ {
			b.now = b.now.Add(time.Second)
			b.doRequest(t.Context(), name)
		}
	}
	if waited < 2 || b.level("first") != "!!!!!!" {
		t.Errorf("waited %d times, got %v", waited, b.level("first"))
	}
}
