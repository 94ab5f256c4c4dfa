package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
)

func mutating(mutate string) string {
	return "  - name: changes\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    mutate: " + mutate + "\n"
}

// A rule that adds to what is there each time may act twice while both sides enforce it:
// the plan says so with a code, and enforce wants a reason, whatever a comparison says.
func TestActsTwice(t *testing.T) {
	for mutate, want := range map[string]bool{
		`{patchStrategicMerge: {metadata: {labels: {a: b, +(c): "{{ request.object.metadata.labels.c }}-x"}}}}`:                                                              false,
		`{patchStrategicMerge: {metadata: {labels: {a: "{{ request.namespace }}"}}}}`:                                                                                        false,
		`{patchStrategicMerge: {metadata: {labels: {a: "{{ request.object.metadata.labels.a }}-x"}}}}`:                                                                       true,
		`{patchesJson6902: '[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'}`:                                                                                   false,
		`{patchesJson6902: '[{"op": "replace", "path": "/spec/containers/0/image", "value": "b"}]'}`:                                                                         false,
		`{patchesJson6902: '[{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b"}}]'}`:                                                                         true,
		`{patchesJson6902: '[{"op": "add", "path": "/spec/containers/0", "value": {"name": "b"}}]'}`:                                                                         true,
		`{patchesJson6902: '[{"op": "remove", "path": "/spec/containers/1"}]'}`:                                                                                              true,
		`{patchesJson6902: '[{"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/b"}]'}`:                                                                  true,
		`{foreach: [{list: "request.object.spec.containers", patchStrategicMerge: {spec: {containers: [{(name): "{{ element.name }}", image: "x/{{ element.image }}"}]}}}]}`: true,
	} {
		text := aPolicy("p", "Enforce", mutating(mutate))
		p := plan(t, text)
		told := slices.ContainsFunc(p.Policies[0].Rules[0].Codes, func(c report.PlannedCode) bool {
			return c.Code == diag.ActsTwice
		})
		source := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &source.Object); err != nil {
			t.Fatal(err)
		}
		w := PolicyState{Now: time.Unix(1000, 0), Source: source, Ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}}
		w.Record = NewRecord("p", w.Ref)
		w.Record.Status.Comparison = &v1alpha1.Comparison{Clean: true, Digest: w.comparedDigest()}
		w.Record.Status.Comparison.At.Time = w.Now
		err := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, MaxAge: time.Hour}.refuseEnforce(w)
		refused := err != nil && strings.Contains(err.Error(), "changes again what it has changed")
		if told != want || refused != want {
			t.Errorf("%s: the plan says so: %v, enforce refuses: %v (%v); want %v", mutate, told, refused, err, want)
		}
		accepted := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, MaxAge: time.Hour, Accept: "it does no harm"}
		if err := accepted.refuseEnforce(w); err != nil {
			t.Errorf("%s: %v", mutate, err)
		}
		if why := accepted.reason(w); (why != "") != want {
			t.Errorf("%s: the record has the reason %q", mutate, why)
		}
	}
}
