package translate_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/vap/apiserver"
)

// Rules that run twice are proven to make the same, or left to the webhook.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	merge := func(patch string) string { return "    mutate: {patchStrategicMerge: " + patch + "}" }
	patch := func(text string) string { return "    mutate:\n      patchesJson6902: |-\n        " + text }
	loop := func(entry string) string { return "    mutate:\n      foreach:\n      - " + entry }
	for name, tt := range map[string]struct {
		bodies []string
		want   bool
	}{
		"labels":                        {[]string{merge(`{metadata: {labels: {a: b}}}`)}, true},
		"an addition":                   {[]string{merge(`{metadata: {labels: {+(a): b}}, spec: {+(securityContext): {runAsUser: 7}}}`)}, true},
		"what goes":                     {[]string{merge(`{metadata: {annotations: {note: null}}}`)}, true},
		"what containers lack":          {[]string{merge(`{spec: {containers: [{(name): "*", +(imagePullPolicy): Always, securityContext: {+(privileged): false}}]}}`)}, true},
		"some containers":               {[]string{merge(`{spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}`)}, true},
		"an atomic list":                {[]string{merge(`{spec: {tolerations: [{key: k, operator: Exists}]}}`)}, true},
		"a container of its own":        {[]string{merge(`{spec: {containers: [{name: side, image: s}]}}`)}, true},
		"env":                           {[]string{merge(`{spec: {containers: [{(name): "*", env: [{name: C, value: z}]}]}}`)}, true},
		"a condition on itself":         {[]string{merge(`{metadata: {labels: {(app): b, app2: c}}, spec: {(hostNetwork): true}}`)}, true},
		"a precondition on it":          {[]string{"    preconditions: {all: [{key: \"{{ request.object.spec.terminationGracePeriodSeconds || `0` }}\", operator: GreaterThan, value: 50}]}\n" + merge(`{spec: {terminationGracePeriodSeconds: 50}}`)}, true},
		"who asks":                      {[]string{merge(`{metadata: {annotations: {by: "{{ request.userInfo.username }}"}}}`)}, true},
		"another label":                 {[]string{merge(`{metadata: {labels: {a: "is-{{ request.object.metadata.labels.app }}"}}}`)}, true},
		"the label itself":              {[]string{merge(`{metadata: {labels: {app: "is-{{ request.object.metadata.labels.app }}"}}}`)}, false},
		"a key of a JSON patch":         {[]string{patch(`- {op: add, path: /spec/nodeSelector/zone, value: z}`)}, true},
		"the end of a list":             {[]string{patch(`- {op: add, path: /spec/tolerations/-, value: {key: k, operator: Exists}}`)}, false},
		"a prefix":                      {[]string{loop("list: request.object.spec.containers\n        patchStrategicMerge: {spec: {containers: [{name: \"{{ element.name }}\", image: \"reg/{{ element.image }}\"}]}}")}, false},
		"a field of each element":       {[]string{loop("list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/tty\", value: true}")}, true},
		"an element of each":            {[]string{loop("list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/env/-\", value: {name: I, value: x}}")}, false},
		"keys of a loop":                {[]string{loop("list: request.object.spec.containers\n        patchStrategicMerge: {metadata: {annotations: {\"c/{{ element.name }}\": v}}}")}, true},
		"a key that is asked and goes":  {[]string{"    preconditions: {all: [{key: \"{{ request.object.metadata.annotations.note }}\", operator: Equals, value: nn}]}\n" + merge(`{metadata: {annotations: {note: null}}}`)}, false},
		"two rules":                     {[]string{merge(`{metadata: {labels: {a: b}}}`), merge(`{metadata: {annotations: {+(c): d}}}`)}, true},
		"one behind the other":          {[]string{merge(`{metadata: {labels: {(app): b, x: z}}}`), merge(`{metadata: {labels: {app: b}}}`)}, false},
		"by its place, and another one": {[]string{patch(`- {op: add, path: /spec/containers/0/tty, value: true}`), merge(`{spec: {containers: [{name: side, image: s}]}}`)}, false},
		"by its place, and a label":     {[]string{patch(`- {op: add, path: /spec/containers/0/tty, value: true}`), merge(`{metadata: {labels: {a: b}}}`)}, true},
		"an addition that goes":         {[]string{merge(`{metadata: {labels: {+(x): b}}}`), merge(`{metadata: {labels: {x: null}}}`)}, false},
	} {
		var rules strings.Builder
		for i, body := range tt.bodies {
			rules.WriteString(strings.Replace(mutateRule(body), "name: r", "name: r"+string(rune('0'+i)), 1))
		}
		p := translateText(t, mutateHead+rules.String(), setting{release: 36, mutations: true})
		if len(p.result.Mutating) == 0 {
			t.Errorf("%s: %s: %v", name, p.targets(), p.result.Diagnostics)
			continue
		}
		got := true
		for _, o := range p.result.Mutating {
			got = got && o.Draft.Repeatable
		}
		if got != tt.want {
			t.Errorf("%s: repeatable is %v", name, got)
		}
		once := translateText(t, mutateHead+rules.String(), setting{release: 36, mutations: true, repeatable: true})
		if native := len(once.result.Mutating) > 0; native != tt.want {
			t.Errorf("%s: %s", name, once.targets())
		}
		if !got {
			continue
		}
		for note, request := range mutateRequests() {
			twiceMutate(t, name+", "+note, p.result, request)
		}
	}
}

// twiceMutate lets the native form of policies change an object again that it has changed.
func twiceMutate(t *testing.T, note string, r compile.Result, request string) {
	t.Helper()
	changeTwice(t, note, r, mutator(t, r), reviewOf(t, request))
}

// changeTwice is twiceMutate with native objects that are compiled already.
func changeTwice(t *testing.T, note string, r compile.Result, m *apiserver.Mutator, review *admissionv1.AdmissionRequest) {
	t.Helper()
	once, verdicts, err := m.Mutate(t.Context(), review, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Outcome == apiserver.Error {
			return // the request is refused
		}
	}
	text, err := json.Marshal(once)
	if err != nil {
		t.Fatal(err)
	}
	review.Object = runtime.RawExtension{Raw: text}
	twice, verdicts, err := m.Mutate(t.Context(), review, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Outcome == apiserver.Error {
			t.Errorf("%s: the second time it errs: %s", note, v.Message)
		}
	}
	if d := textdiff.Values(once, twice); d != "" {
		t.Errorf("%s (-once +twice):\n%s\n%s", note, d, mutatingText(t, r))
	}
}

// Kinds that API servers come to know while they run are left to a webhook that there is.
func TestLateKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"v1/ConfigMap": "native KV328", "later.io/v1/Widget": "webhook KV223", "*": "webhook KV223"} {
		rule := strings.Replace(mutateRule("    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"), "[Pod]", "['"+kind+"']", 1)
		if got := translateText(t, mutateHead+rule, setting{release: 36, mutations: true, repeatable: true}).targets(); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if got := translateText(t, mutateHead+rule, setting{release: 36, mutations: true}).targets(); !strings.HasPrefix(got, "native") {
			t.Errorf("%s without a webhook: %s", kind, got)
		}
	}
}
