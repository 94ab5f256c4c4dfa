package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/audit"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
	"github.com/kvap/kvap/verify"
)

const teams = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  validationFailureAction: Enforce
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE, UPDATE]}}]}
    validate:
      message: a ConfigMap names its team
      pattern: {metadata: {labels: {team: "?*"}}}
`

// asking has the cluster asked by the rule, which so has no native form.
var asking = strings.Replace(teams, "    validate:", `    context: [{name: there, apiCall: {urlPath: /api/v1/configmaps, jmesPath: "items[].metadata.name"}}]
    preconditions: {all: [{key: "{{ request.object.metadata.name }}", operator: AnyIn, value: "{{ there }}"}]}
    validate:`, 1)

// A bench is a policy with what it is compiled to, and what a test puts before it.
type bench struct {
	*testing.T
	policy   *policy.Policy
	options  translate.Options
	deployed judge.Deployed
	judges   *judge.Judges
}

// newBench compiles a policy. Broken, where not nil, changes the native objects.
func newBench(t *testing.T, text string, broken func(*bench)) *bench {
	t.Helper()
	schemas, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	f, found := policy.Parse("policy.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	b := &bench{T: t, policy: f.Policies[0], options: translate.Options{
		Release: cel.Default, Schemas: schemas, Pack: translate.PackPolicy, Params: translate.ParamsConfigMap,
		Existing: translate.AllowExisting, Guard: translate.GuardAuto,
	}}
	in := compile.Input{Policies: f.Policies}
	made := compile.Policies(in, compile.Options{Translate: b.options, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}}})
	for _, o := range made.Objects {
		b.deployed.Policies = append(b.deployed.Policies, o.Policy)
		b.deployed.Bindings = append(b.deployed.Bindings, o.Bindings...)
	}
	if broken != nil {
		broken(b)
	}
	if b.judges, err = judge.New(made, nil, judge.ClusterState{Deployed: b.deployed}); err != nil {
		t.Fatal(err)
	}
	return b
}

// flip is a mutant: what the translation holds to be empty counts as there.
func flip(b *bench) {
	spec := &b.deployed.Policies[0].Spec
	for i, c := range spec.MatchConditions {
		spec.MatchConditions[i].Expression = strings.NewReplacer("== ''", "!= ''", "!= ''", "== ''").Replace(c.Expression)
	}
}

func (b *bench) ledger() *Ledger {
	var natives []Native
	for _, p := range b.deployed.Policies {
		natives = append(natives, Native{Policy: p})
	}
	return New(b.judges, Options{Natives: natives})
}

// aConfigMap is an object with labels; without any where there are none.
func aConfigMap(name string, labels ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetName(name)
	o.SetNamespace("default")
	if len(labels) > 0 {
		o.SetLabels(map[string]string{labels[0]: labels[1]})
	}
	return o
}

func (b *bench) request(o *unstructured.Unstructured) *judge.Request {
	b.Helper()
	client := judge.Client{Schemas: b.options.Schemas, User: "alice"}
	data, found := client.Request(manifest.Object{Value: o.Object}, manifest.Object{})
	if found.HasErrors() {
		b.Fatal(found)
	}
	r, err := judge.NewRequest(data)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *bench) judge(l *Ledger, s Source, register Register, objects ...*unstructured.Unstructured) {
	b.Helper()
	l.Judge(b.Context(), func(yield func(Item) bool) {
		for _, o := range objects {
			item := Item{Source: s, Subject: o.GetName(), Request: func() (*judge.Request, error) { return b.request(o), nil }}
			if register != nil {
				item.Reported = register.Of(o)
			}
			if !yield(item) {
				return
			}
		}
	}, func(i Item, err error) { b.Errorf("%s: %v", i.Subject, err) })
}

// kyvernoReports is a report of one object.
func kyvernoReports(o *unstructured.Unstructured, result string, seconds int) map[string]any {
	text := fmt.Sprintf(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"name":"x","namespace":%q},
"scope":{"apiVersion":"v1","kind":"ConfigMap","name":%q,"namespace":%[1]q},
"results":[{"source":"kyverno","policy":"teams","rule":"team","result":%[3]q,"message":"a ConfigMap names its team","timestamp":{"seconds":%d,"nanos":0}},
{"source":"kvap","policy":"teams","rule":"team","result":"pass"}]}`, o.GetNamespace(), o.GetName(), result, seconds)
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return made.Object
}

const kyvernoDenial = "admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource ConfigMap/default/bad was blocked due to the following policies \n\nteams:\n  team: 'validation error: a ConfigMap names its team'\n"

// logged is what an API server writes of a request that both sides were asked about.
func (b *bench) logged(o *unstructured.Unstructured, denial string) []byte {
	b.Helper()
	opinions, err := b.judges.Judge(b.Context(), b.request(o))
	if err != nil {
		b.Fatal(err)
	}
	annotations := map[string]string{"authorization.k8s.io/decision": "allow"}
	if opinions[0].Native == apiserver.Deny {
		annotations[audit.FailureKey] = fmt.Sprintf(`[{"message":"m","policy":%q,"binding":"b","expressionIndex":0,"validationActions":["Audit"]}]`, b.deployed.Policies[0].Name)
	}
	status := map[string]any{"code": 201}
	if denial != "" {
		status = map[string]any{"code": 400, "message": denial}
	}
	data, err := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete", "verb": "create",
		"user":                     map[string]any{"username": "alice"},
		"objectRef":                map[string]any{"apiVersion": "v1", "resource": "configmaps", "namespace": o.GetNamespace(), "name": o.GetName()},
		"requestReceivedTimestamp": "2030-01-02T03:04:05.000000Z", "responseStatus": status, "annotations": annotations,
	})
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// ways are the sources, each alone.
func ways(b *bench) map[Source]func(*Ledger) {
	good, bad := aConfigMap("good", "team", "a"), aConfigMap("bad")
	return map[Source]func(*Ledger){
		Objects:  func(l *Ledger) { b.judge(l, Objects, nil, good, bad) },
		Requests: func(l *Ledger) { b.judge(l, Requests, nil, good, bad) },
		Reports: func(l *Ledger) {
			r := Register{}
			r.Add(kyvernoReports(good, "pass", 100))
			r.Add(kyvernoReports(bad, "fail", 100))
			b.judge(l, Objects, r, good, bad)
			delete(l.rows[0].tallies, Objects) // the reports alone
		},
		Audit: func(l *Ledger) {
			for _, text := range [][]byte{b.logged(good, ""), b.logged(bad, kyvernoDenial)} {
				if err := l.Audit(b.Context(), text, "audit.log:1"); err != nil {
					b.Error(err)
				}
			}
		},
		Search: func(l *Ledger) {
			found, err := verify.Policy(b.Context(), b.policy, verify.Options{
				Setting: verify.Setting{Translate: b.options, Seed: 1, Deployed: b.deployed}, Requests: 300,
			})
			if err != nil {
				b.Fatal(err)
			}
			l.Search(found)
		},
	}
}

// TestMutantIsFoundByEachSource: a translation that was broken is found by each
// source of evidence alone, and the whole one by none.
func TestMutantIsFoundByEachSource(t *testing.T) {
	for _, tt := range []struct {
		name   string
		broken func(*bench)
	}{{"whole", nil}, {"mutant", flip}} {
		b := newBench(t, teams, tt.broken)
		for source, fill := range ways(b) {
			t.Run(tt.name+"/"+string(source), func(t *testing.T) {
				b.T = t
				l := b.ledger()
				fill(l)
				c := l.Comparison()
				r := c.Rules[0]
				if len(r.Evidence) != 1 || r.Evidence[0].Source != string(source) || r.Evidence[0].Seen == 0 {
					t.Fatalf("evidence is %+v; want only %s", r.Evidence, source)
				}
				if broken := tt.broken != nil; broken != (c.Totals.Disagreed == 1) {
					t.Errorf("the mutant is there: %v; found: %+v", broken, c.Totals)
				}
				for _, d := range r.Disagreements {
					if len(d.Sides) != 2 || d.Subject == "" || d.Source != string(source) {
						t.Errorf("a disagreement without two sides or a subject: %+v", d)
					}
				}
			})
		}
	}
}

// TestWhatIsNotKnownIsNoAgreement has, for each way in which one side's answer is not
// known, a case that counts neither for nor against.
func TestWhatIsNotKnownIsNoAgreement(t *testing.T) {
	bad := aConfigMap("bad")
	report := func(seconds int, result string) func(*bench, *Ledger) {
		return func(b *bench, l *Ledger) {
			o := bad.DeepCopy()
			o.Object["metadata"].(map[string]any)["creationTimestamp"] = "2001-01-01T00:00:00Z"
			r := Register{}
			r.Add(kyvernoReports(o, result, seconds))
			b.judge(l, Objects, r, o)
			delete(l.rows[0].tallies, Objects)
		}
	}
	log := func(change func(map[string]any)) func(*bench, *Ledger) {
		return func(b *bench, l *Ledger) {
			var e map[string]any
			if err := json.Unmarshal(b.logged(bad, kyvernoDenial), &e); err != nil {
				b.Fatal(err)
			}
			change(e)
			text, _ := json.Marshal(e)
			if err := l.Audit(b.Context(), text, "a:1"); err != nil {
				b.Error(err)
			}
		}
	}
	found := func(status string, change func(map[string]any)) func(*bench, *Ledger) {
		return log(func(e map[string]any) {
			e["responseStatus"] = map[string]any{"code": 201}
			e["annotations"] = map[string]string{"validate-ignore.webhook.kvap.dev/violations": fmt.Sprintf(`[{"policy":"teams","rule":"team","status":%q,"message":"m"}]`, status)}
			change(e)
		})
	}
	for _, tt := range []struct {
		name, policy string
		fill         func(*bench, *Ledger)
		why          string
	}{
		{"an old report", teams, report(100, "pass"), "the report is older than the object"},
		{"a report of a request", strings.Replace(teams, "rules:", "background: false\n  rules:", 1), report(2_000_000_000, "pass"), "background: false"},
		{"an audited rule", strings.Replace(teams, "Enforce", "Audit", 1), log(func(e map[string]any) {
			e["responseStatus"] = map[string]any{"code": 201}
		}), "Kyverno only audits the rule"},
		{"another violation hides it", teams, log(func(e map[string]any) {
			e["annotations"] = map[string]string{audit.FailureKey: `[{"policy":"other","expressionIndex":0}]`}
		}), "it is of another rule"},
		{"refused by somebody else", teams, log(func(e map[string]any) {
			e["responseStatus"] = map[string]any{"code": 403, "message": "exceeded quota"}
		}), "refused by somebody else"},
		{"another webhook of Kyverno", teams, log(func(e map[string]any) {
			e["responseStatus"] = map[string]any{"code": 400, "message": strings.NewReplacer("svc-fail", "svc-ignore", "teams:", "others:").Replace(kyvernoDenial)}
		}), "another of its webhooks"},
		{"a webhook did not answer", teams, log(func(e map[string]any) {
			e["responseStatus"] = map[string]any{"code": 201}
			e["annotations"].(map[string]any)["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"] = "validate.kyverno.svc-ignore"
		}), "Kyverno's webhook did not answer"},
		{"before Kyverno had the policy", teams, func(b *bench, l *Ledger) {
			l.Times = map[string]Times{"teams": {Kyverno: time.Date(2030, 1, 2, 3, 4, 6, 0, time.UTC)}}
			log(func(e map[string]any) { e["responseStatus"] = map[string]any{"code": 201} })(b, l)
		}, "Kyverno did not have the policy"},
		{"after Kyverno gave it up", teams, func(b *bench, l *Ledger) {
			l.Times = map[string]Times{"teams": {Never: "Kyverno 1.20.0 carries out no policy of kyverno.io"}}
			log(func(e map[string]any) { e["responseStatus"] = map[string]any{"code": 201} })(b, l)
		}, "Kyverno 1.20.0 carries out no policy"},
		{"kvap's webhook could not ask", asking, found("error", func(map[string]any) {}), "could not judge a rule that asks"},
		{"kvap's webhook did not answer", asking, func(b *bench, l *Ledger) {
			l.webhook = true
			log(func(e map[string]any) {
				e["annotations"] = map[string]string{"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "validate-ignore.webhook.kvap.dev"}
			})(b, l)
		}, "kvap's webhook did not answer"},
		{"a rule that asks", asking, found("fail", func(map[string]any) {}), "at its own moment"},
		{"denied by a webhook for policies in CEL", inCEL, log(func(map[string]any) {}), "another of its webhooks"},
		{"before kvap's webhook judged", teams, func(b *bench, l *Ledger) {
			l.natives, l.webhook = nil, true // the rule has no native form
			l.rows[0].form.Rule.Target, l.rows[0].form.Places = translate.Webhook, nil
			l.Times = map[string]Times{"teams": {Webhook: time.Date(2030, 1, 2, 3, 4, 6, 0, time.UTC)}}
			log(func(map[string]any) {})(b, l)
		}, "kvap's webhook did not judge"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.policy, nil)
			l := b.ledger()
			tt.fill(b, l)
			c := l.Comparison()
			total := c.Rules[0].Total()
			if total.Seen != 0 || total.Unclear != 1 || !slices.ContainsFunc(c.Rules[0].Notes, func(n string) bool { return strings.Contains(n, tt.why) }) {
				t.Errorf("%+v, notes %q; want one that is unclear: %s", total, c.Rules[0].Notes, tt.why)
			}
		})
	}
}

// inCEL is a ValidatingPolicy.
const inCEL = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: teams}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", message: a ConfigMap names its team}]
`

// TestErrorThatAdmits: what kvap's webhook cannot judge, it admits where the policy says so.
func TestErrorThatAdmits(t *testing.T) {
	for want, text := range map[string]string{
		"disagree": teams,
		"agree":    strings.Replace(teams, "rules:", "failurePolicy: Ignore\n  rules:", 1),
	} {
		b := newBench(t, text, nil)
		l := b.ledger()
		l.natives, l.webhook = nil, true
		l.rows[0].form.Rule.Target, l.rows[0].form.Places = translate.Webhook, nil
		line := []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","responseStatus":{"code":201},
"objectRef":{"apiVersion":"v1","resource":"configmaps","namespace":"default","name":"a"},
"annotations":{"validate-fail.webhook.kvap.dev/violations":"[{\"policy\":\"teams\",\"rule\":\"team\",\"status\":\"error\",\"message\":\"m\"}]"}}`)
		if err := l.Audit(t.Context(), line, "a:1"); err != nil {
			t.Fatal(err)
		}
		got := l.Comparison().Rules[0].Total()
		if agree := got.Disagreed == 0; got.Seen != 1 || agree != (want == "agree") {
			t.Errorf("%+v; want it to %s", got, want)
		}
	}
}

// TestPoliciesInCEL: those that are about other objects than the one of a request are told of,
// too.
func TestPoliciesInCEL(t *testing.T) {
	const head = "apiVersion: policies.kyverno.io/v1\nmetadata: {name: p}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}\n"
	for want, text := range map[string]string{
		"the rule makes other objects": "kind: GeneratingPolicy\n" + head +
			"  generate: [{expression: \"generator.apply('default', [])\"}]\n",
		"the rule changes objects that are there": "kind: MutatingPolicy\n" + head + `  evaluation: {mutateExisting: {enabled: true}}
  targetMatchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}
`,
	} {
		c := newBench(t, text, nil).ledger().Comparison()
		if len(c.Rules) != 1 || !strings.Contains(strings.Join(c.Rules[0].Thin, "; "), want) {
			t.Errorf("%+v; want %s", c.Rules, want)
		}
	}
}

// TestThin says what the evidence lacks.
func TestThin(t *testing.T) {
	good, bad := aConfigMap("good", "team", "a"), aConfigMap("bad")
	for _, tt := range []struct {
		name string
		fill func(*bench, *Ledger)
		want string
	}{
		{"nothing", func(*bench, *Ledger) {}, "no source said anything"},
		{"never violated", func(b *bench, l *Ledger) { b.judge(l, Objects, nil, good) }, "nothing has violated it"},
		{"always violated", func(b *bench, l *Ledger) { b.judge(l, Objects, nil, bad) }, "everything that was seen violates it"},
		{"made up", func(b *bench, l *Ledger) { ways(b)[Search](l) }, "only requests that were made up"},
		{"violated by what was made up", func(b *bench, l *Ledger) { b.judge(l, Objects, nil, good); ways(b)[Search](l) }, "no real request or object has violated it"},
		{"enough", func(b *bench, l *Ledger) { b.judge(l, Objects, nil, good, bad) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, teams, nil)
			l := b.ledger()
			tt.fill(b, l)
			if got := strings.Join(l.Comparison().Rules[0].Thin, "; "); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("thin: %q; want %q", got, tt.want)
			}
		})
	}
}

// TestForget: a second look at the objects does not count them twice, and an object on
// which the judges disagreed is not forgotten with them.
func TestForget(t *testing.T) {
	good, bad := aConfigMap("good", "team", "a"), aConfigMap("bad")
	b := newBench(t, teams, flip)
	l := b.ledger()
	b.judge(l, Objects, nil, good, bad)
	l.Forget()
	b.judge(l, Objects, nil, good)
	got := l.Comparison().Rules[0]
	if total := got.Total(); total.Seen != 2 || total.Disagreed != 2 {
		t.Errorf("%+v; want the good object of now, and the bad one of before", total)
	}
	if !slices.ContainsFunc(got.Disagreements, func(d report.Disagreement) bool { return d.Subject == "bad" }) {
		t.Errorf("the bad object is forgotten: %+v", got.Disagreements)
	}
}

// TestListedViolations: an API server that notes one violation of a request may name
// the other rules of the object in its message; of rules that it does not name nothing is
// known.
func TestListedViolations(t *testing.T) {
	two := strings.Replace(teams, "  - name: team\n", "  - name: owner\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    validate: {message: m, pattern: {metadata: {labels: {owner: \"?*\"}}}}\n  - name: team\n", 1)
	b := newBench(t, two, nil)
	index := slices.IndexFunc(b.judges.Rules, func(f *compile.Form) bool { return f.Name == "team" })
	for message, want := range map[string]report.Evidence{
		"no owner (all violated: owner, team)": {Source: string(Audit), Seen: 1, Agreed: 1, Violated: 1},
		"no owner":                             {Source: string(Audit), Unclear: 1},
	} {
		l := b.ledger()
		line, err := json.Marshal(map[string]any{
			"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "create",
			"objectRef":      map[string]any{"apiVersion": "v1", "resource": "configmaps", "namespace": "default", "name": "bad"},
			"responseStatus": map[string]any{"code": 400, "message": kyvernoDenial},
			"annotations":    map[string]string{audit.FailureKey: fmt.Sprintf(`[{"message":%q,"policy":"teams","expressionIndex":0}]`, message)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Audit(b.Context(), line, "a:1"); err != nil {
			t.Fatal(err)
		}
		got := l.Comparison().Rules[index].Evidence
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v; want %+v", message, got, want)
		}
	}
}

// TestFormsOfOneObject: what an object about Pods and their controllers finds of a Deployment
// is found by the form of the rule that is about Deployments, and by no other.
func TestFormsOfOneObject(t *testing.T) {
	b := newBench(t, strings.Replace(teams, "kinds: [ConfigMap]", "kinds: [Pod]", 1), nil)
	if n := len(b.deployed.Policies); n != 1 {
		t.Fatalf("%d objects", n)
	}
	l := b.ledger()
	line, err := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "create",
		"objectRef":      map[string]any{"apiGroup": "apps", "apiVersion": "v1", "resource": "deployments", "namespace": "default", "name": "bad"},
		"responseStatus": map[string]any{"code": 400, "message": strings.Replace(kyvernoDenial, "team:", "autogen-team:", 1)},
		"annotations":    map[string]string{audit.FailureKey: `[{"message":"m","policy":"teams","expressionIndex":0}]`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Audit(b.Context(), line, "a:1"); err != nil {
		t.Fatal(err)
	}
	for i, f := range b.judges.Rules {
		want := report.Evidence{Source: string(Audit)}
		if f.Name == "autogen-team" {
			want.Seen, want.Agreed, want.Violated = 1, 1, 1
		}
		if got := l.Comparison().Rules[i].Evidence; !slices.Equal(got, []report.Evidence{want}) {
			t.Errorf("%s: %+v; want %+v", f.Name, got, want)
		}
	}
}
