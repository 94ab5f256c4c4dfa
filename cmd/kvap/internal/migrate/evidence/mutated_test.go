package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
)

const stamped = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamped}
spec:
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none, stamped: "yes"}}}}
`

// created is an event of a ConfigMap that was made, with what mutating webhooks were asked.
func created(labels string, calls ...string) []byte {
	var annotations []string
	for i, c := range calls {
		webhook, patch, mutated := strings.Cut(c, " ")
		at := fmt.Sprintf("webhook.admission.k8s.io/round_0_index_%d", i)
		annotations = append(annotations, fmt.Sprintf("%q: %q", "mutation."+at, fmt.Sprintf(`{"configuration":"c","webhook":%q,"mutated":%v}`, webhook, mutated)))
		if mutated {
			annotations = append(annotations, fmt.Sprintf("%q: %q", "patch."+at, fmt.Sprintf(`{"configuration":"c","webhook":%q,"patchType":"JSONPatch","patch":%s}`, webhook, patch)))
		}
	}
	return fmt.Appendf(nil, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"1","stage":"ResponseComplete","verb":"create",
"user":{"username":"alice","groups":["system:authenticated"]},"objectRef":{"resource":"configmaps","namespace":"default","name":"a","apiVersion":"v1"},
"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:00Z","annotations":{%s},
"requestObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","labels":%s}}}`, strings.Join(annotations, ","), labels)
}

// with is a line with a part of it replaced.
func with(line []byte, old, by string) []byte {
	return []byte(strings.Replace(string(line), old, by, 1))
}

// What Kyverno's webhook made of an object is held against what the rules make of it.
func TestMutated(t *testing.T) {
	const kyverno = "mutate.kyverno.svc-fail"
	both := kyverno + ` [{"op":"add","path":"/metadata/labels/team","value":"none"},{"op":"add","path":"/metadata/labels/stamped","value":"yes"}]`
	for name, c := range map[string]struct {
		line             []byte
		whole            bool
		agreed, violated int
		says             string // what a disagreement is about
		unclear          int
	}{
		"both change it":          {line: created(`{"a":"b"}`, both), agreed: 1, violated: 1},
		"and more, by others":     {line: created(`{"a":"b"}`, "other.acme.io "+`[{"op":"add","path":"/metadata/labels/x","value":"y"}]`, both), whole: true, agreed: 1, violated: 1},
		"both leave it":           {line: created(`{"team":"a","stamped":"yes"}`, kyverno), whole: true, agreed: 1},
		"another value":           {line: created(`{"a":"b"}`, strings.Replace(both, `"none"`, `"blue"`, 1)), says: `makes it "none"; made it "blue"`, violated: 1},
		"Kyverno leaves it":       {line: created(`{"team":"a"}`, kyverno), says: `makes it "yes"; made it empty`, violated: 1},
		"Kyverno changes it":      {line: created(`{"team":"a","stamped":"yes"}`, kyverno+` [{"op":"replace","path":"/metadata/labels/team","value":"b"}]`), whole: true, says: `leaves it "a"; made it "b"`},
		"by another policy":       {line: created(`{"team":"a","stamped":"yes"}`, kyverno+` [{"op":"replace","path":"/metadata/labels/team","value":"b"}]`), unclear: 1},
		"the log has no changes":  {line: []byte(strings.ReplaceAll(string(created(`{"a":"b"}`, both)), `"patch.webhook`, `"other.webhook`))},
		"Kyverno was not asked":   {line: created(`{"a":"b"}`, "other.acme.io")},
		"by a policy of its own":  {line: created(`{"a":"b"}`, kyverno+"-finegrained-other")},
		"Kyverno was passed over": {line: with(created(`{"a":"b"}`, kyverno), `"annotations":{`, `"annotations":{"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0":"`+kyverno+`",`), whole: true, unclear: 1},
		"Kyverno did not answer": {line: with(created(`{"a":"b"}`, kyverno), `"code":201`, `"code":500,"message":"Internal error occurred: failed calling webhook \"`+kyverno+`\": context deadline exceeded"`),
			whole: true, unclear: 1},
		"for what is no ConfigMap": {line: []byte(strings.ReplaceAll(string(created(`{"a":"b"}`, kyverno)), "ConfigMap", "Secret")), whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, stamped, nil)
			l := b.ledger()
			l.Whole = c.whole
			if err := l.Audit(t.Context(), c.line, "audit.log:1"); err != nil {
				t.Fatal(err)
			}
			row := l.Comparison().Rules[0]
			got := report.Evidence{}
			for _, e := range row.Evidence {
				got = e
			}
			says := ""
			for _, d := range row.Disagreements {
				says = d.Sides[0].Says + "; " + d.Sides[1].Says
			}
			if got.Agreed != c.agreed || got.Violated != c.violated || says != c.says || got.Unclear != c.unclear {
				t.Errorf("%+v, %q", got, says)
			}
			if got.Seen == 0 && !strings.Contains(strings.Join(row.Thin, ";"), "audit log of the level Request") {
				t.Errorf("thin: %v", row.Thin)
			}
		})
	}
}

// Kyverno has webhooks of their own for policies in CEL. What each has made of an object is held
// against what its policies make of it, and what another one has made is none of theirs.
func TestMutatedInCEL(t *testing.T) {
	b := newBench(t, stamped+`---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: counted}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'n': string(size(object.metadata.labels))}}}"}
`, nil)
	const counts = `mpol.validate.kyverno.svc-fail [{"op":"add","path":"/metadata/labels/n","value":"1"}]`
	const stamps = `mutate.kyverno.svc-fail [{"op":"add","path":"/metadata/labels/team","value":"none"},{"op":"add","path":"/metadata/labels/stamped","value":"yes"}]`
	l := b.ledger()
	l.Whole = true
	if err := l.Audit(t.Context(), created(`{"a":"b"}`, counts, stamps), "audit.log:1"); err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Comparison().Rules {
		if got := r.Total(); got.Agreed != 1 || got.Violated != 1 || len(r.Disagreements) > 0 {
			t.Errorf("%s: %+v", r.Policy, r)
		}
	}
}

// An API server fills in before it asks webhooks, and the log does not have that: tolerations of a
// Pod are known, and of what else a webhook has changed, nothing is.
func TestMutatedPod(t *testing.T) {
	const role = `{"key":"acme.io/role","operator":"Exists"}`
	for name, c := range map[string]struct {
		tolerations, patch string
		want               report.Evidence
	}{
		"tolerations are filled in": {"", `[{"op":"add","path":"/spec/tolerations/2","value":` + role + `}]`, report.Evidence{Seen: 1, Agreed: 1, Violated: 1}},
		"and others are there":      {`,"tolerations":[{"key":"acme.io/zone","operator":"Exists"}]`, `[{"op":"add","path":"/spec/tolerations/3","value":` + role + `}]`, report.Evidence{Seen: 1, Agreed: 1, Violated: 1}},
		"one of them is there": {`,"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists"}]`, `[{"op":"add","path":"/spec/tolerations/2","value":` + role + `}]`,
			report.Evidence{Seen: 1, Agreed: 1, Violated: 1}},
		"all is tolerated":       {`,"tolerations":[{"operator":"Exists"}]`, `[{"op":"add","path":"/spec/tolerations/1","value":` + role + `}]`, report.Evidence{Seen: 1, Agreed: 1, Violated: 1}},
		"nothing is filled in":   {"", `[{"op":"add","path":"/spec/tolerations","value":[` + role + `]}]`, report.Evidence{Seen: 1, Agreed: 1, Violated: 1}},
		"it is another one":      {"", `[{"op":"add","path":"/spec/tolerations/2","value":{"key":"acme.io/other"}}]`, report.Evidence{Seen: 1, Disagreed: 1, Violated: 1}},
		"a token's volume is so": {"", `[{"op":"add","path":"/spec/volumes/1","value":{"name":"v"}}]`, report.Evidence{Unclear: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: tolerant}
spec:
  autogen: {podControllers: {controllers: []}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        has(object.spec.tolerations)
          ? [JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "acme.io/role", operator: "Exists"}}]
          : [JSONPatch{op: "add", path: "/spec/tolerations", value: [Object.spec.tolerations{key: "acme.io/role", operator: "Exists"}]}]
`, nil)
			line := strings.NewReplacer("configmaps", "pods", "ConfigMap", "Pod", `"labels":null}`, `"labels":null},"spec":{"containers":[{"name":"a","image":"a"}]`+c.tolerations+`}`).
				Replace(string(created("null", "mpol.validate.kyverno.svc-fail "+c.patch)))
			l := b.ledger()
			l.Whole = true
			if err := l.Audit(t.Context(), []byte(line), "audit.log:1"); err != nil {
				t.Fatal(err)
			}
			r := l.Comparison().Rules[0]
			if got := r.Total(); got != c.want {
				t.Errorf("%+v: %+v", got, r)
			}
		})
	}
}

// Of a Secret, no value is told.
func TestMutatedSecret(t *testing.T) {
	b := newBench(t, strings.ReplaceAll(stamped, "ConfigMap", "Secret"), nil)
	l := b.ledger()
	line := strings.ReplaceAll(strings.ReplaceAll(string(created(`{"a":"b"}`, `mutate.kyverno.svc-fail [{"op":"add","path":"/metadata/labels/stamped","value":"topsecret"}]`)),
		"ConfigMap", "Secret"), "configmaps", "secrets")
	if err := l.Audit(t.Context(), []byte(line), "audit.log:1"); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(l.Comparison().Rules[0].Disagreements); !strings.Contains(said, "a value") || strings.Contains(said, "topsecret") {
		t.Error(said)
	}
}

// What a rule in CEL makes of an object cannot be told where it reads the Namespace, which the log
// does not have.
func TestMutatedByNamespace(t *testing.T) {
	b := newBench(t, `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: owned}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'owner': namespaceObject.metadata.?annotations[?'owner'].orValue('none')}}}"}
`, nil)
	l := b.ledger()
	l.Whole = true
	if err := l.Audit(t.Context(), created(`{"a":"b"}`, `mpol.validate.kyverno.svc-fail [{"op":"add","path":"/metadata/labels/owner","value":"me"}]`), "audit.log:1"); err != nil {
		t.Fatal(err)
	}
	if r := l.Comparison().Rules[0]; r.Total().Unclear != 1 || len(r.Disagreements) > 0 {
		t.Errorf("%+v", r)
	}
}

// What either judge cannot tell is no agreement.
func TestUnknownIsUnclear(t *testing.T) {
	b := newBench(t, teams, nil)
	for _, o := range []judge.Opinion{
		{Native: apiserver.Unknown, Status: interp.Unknown},
		{Native: apiserver.Unknown, Status: interp.Error},
		{Native: apiserver.NoMatch, Status: interp.Unknown},
	} {
		l := b.ledger()
		o.Rule, o.Compared, o.Message = l.rows[0].form, true, "the Namespace was not given"
		l.noteOpinion(0, judged{Item: Item{Source: Audit}}, o)
		if got := l.Comparison().Rules[0].Total(); got.Unclear != 1 || got.Agreed != 0 {
			t.Errorf("%s %s: %+v", o.Native, o.Status, got)
		}
	}
}
