package scan

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Rules that read what a controller writes into an object, or hand the object on as it is, are
// known by their text.
func TestReadsWhole(t *testing.T) {
	const text = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, generation: 3, resourceVersion: "7"}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: The object is fine., deny: {conditions: {any: [{key: "KEY", operator: Equals, value: x}]}}}
status: {ready: true}
`
	for key, want := range map[string]bool{
		"{{ request.object.spec.nodeName }}":              false,
		"{{ request.object.metadata.labels.owner }}":      false,
		"{{ request.object.status.phase }}":               true,
		"{{ request.object.metadata.resourceVersion }}":   true,
		"{{ to_string(request.object) }}":                 true,
		"{{ request.object | keys(@) | join('', @) }}":    true,
		"{{request.object}}":                              true,
		"{{ request.object.metadata.annotations.other }}": false,
	} {
		p := policiesOf(t, strings.Replace(text, "KEY", key, 1))
		if got := readsWhole(p.Compiled.Rules); got != want {
			t.Errorf("%s: reads the whole is %t", key, got)
		}
	}
}

// The same policy of another version says the same.
func TestFingerprint(t *testing.T) {
	one := policiesOf(t, scanned)
	other := policiesOf(t, scanned+"status: {ready: true}\n")
	edited := policiesOf(t, strings.Replace(scanned, "It has an owner.", "It has one.", 1))
	if one.fingerprint(one.Compiled.Rules) != other.fingerprint(other.Compiled.Rules) {
		t.Error("a status makes another policy")
	}
	if one.fingerprint(one.Compiled.Rules) == edited.fingerprint(edited.Compiled.Rules) {
		t.Error("an edited policy is the same")
	}
}

// Of an object little is kept: its names and a few numbers. An informer that lists anew has all of it
// twice for a while.
func TestTraceIsSmall(t *testing.T) {
	const n, most = 20000, 300
	var before, after runtime.MemStats
	kept := make([]any, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		var err error
		kept[i], err = traceOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%d", i%100), Name: fmt.Sprintf("some-object-%d", i), UID: types.UID(fmt.Sprintf("%036d", i)),
			ResourceVersion: fmt.Sprint(i), Labels: map[string]string{"app": fmt.Sprint(i)}, ManagedFields: make([]metav1.ManagedFieldsEntry, 3),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / n; each > most {
		t.Errorf("%d bytes are kept of an object, want at most %d", each, most)
	}
	runtime.KeepAlive(kept)
}
