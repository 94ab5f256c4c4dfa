package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

const source = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: limits
  labels: {team: a}
spec:
  validationFailureAction: Enforce
  rules:
    - name: limit
      match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
      context:
        - name: limits
          configMap: {name: limits, namespace: team}
      validate:
        message: The zone is one of those allowed.
        deny:
          conditions:
            any:
              - {key: "{{ request.object.metadata.labels.zone }}", operator: NotEquals, value: "{{ limits.data.zone }}"}
    - name: call
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
      context:
        - name: all
          apiCall: {urlPath: /api/v1/namespaces}
      validate:
        message: There are namespaces.
        deny:
          conditions:
            any:
              - {key: "{{ length(all.items) }}", operator: Equals, value: 0}
`

// now is when the status is read; long is long before that.
func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func long() metav1.Time { return metav1.NewTime(now().Add(-time.Hour)) }

// cluster is one with the source and what it was compiled to, all well.
func cluster(t *testing.T) Snapshot {
	t.Helper()
	return clusterWith(t, source)
}

// ofTwoObjects is the source with one more native rule, about another kind.
func ofTwoObjects() string {
	return strings.Replace(source, "    - name: call\n", `    - name: zone
      match: {any: [{resources: {kinds: [Secret], operations: [CREATE]}}]}
      validate:
        message: Secrets have a zone.
        pattern: {metadata: {labels: {zone: "?*"}}}
    - name: call
`, 1)
}

func clusterWith(t *testing.T, source string) Snapshot {
	t.Helper()
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	c := Snapshot{Now: now(), Schemas: types, Params: map[string]ResolvedParams{}}
	c.Compile.Translate = translate.Options{
		Release: cel.Default, Schemas: types, Pack: translate.PackPolicy, Params: translate.ParamsConfigMap,
		Existing: translate.AllowExisting, Guard: translate.GuardNever,
	}
	f, found := policy.Parse("limits.yaml", []byte(source))
	if found.HasErrors() {
		t.Fatal(found)
	}
	c.Sources = []*Source{{Policy: f.Policies[0], Found: found, Group: "kyverno.io", Created: long().Time}}
	for _, o := range compile.Policies(compile.Input{Policies: f.Policies}, c.Compile).Objects {
		o.Policy.Generation, o.Policy.CreationTimestamp = 1, long()
		o.Policy.Status.ObservedGeneration = 1
		o.Policy.Status.TypeChecking = &admissionregistrationv1.TypeChecking{}
		c.Policies = append(c.Policies, o.Policy)
		for _, b := range o.Bindings {
			b.CreationTimestamp = long()
			if b.Spec.ParamRef != nil {
				c.Params[b.Name] = ResolvedParams{Found: []string{"team/limits"}}
			}
			c.Bindings = append(c.Bindings, b)
		}
	}
	if len(c.Policies) == 0 || len(c.Params) == 0 {
		t.Fatalf("the source gives %d policies with %d params", len(c.Policies), len(c.Params))
	}
	return c
}

// only is the status of the one policy of the cluster.
func only(t *testing.T, c Snapshot) report.PolicyStatus {
	t.Helper()
	s := Of(c)
	if len(s.Policies) != 1 {
		t.Fatalf("%d policies", len(s.Policies))
	}
	return s.Policies[0]
}

// translation is what a controller says that cannot reach its webhook.
func translation(generation int64) *v1alpha1.PolicyTranslation {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1}
	}
	return &v1alpha1.PolicyTranslation{
		Spec: v1alpha1.PolicyTranslationSpec{Source: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "limits"}},
		Status: v1alpha1.PolicyTranslationStatus{
			ObservedGeneration: 1, SourceGeneration: generation, Mode: v1alpha1.ModeEnforce,
			Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionCompiled, metav1.ConditionTrue, "Compiled"),
				condition(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, "Unreachable"),
			},
			Rules: []v1alpha1.RuleStatus{{Rule: "limit", Target: "native", CostPercent: 3}, {Rule: "call", Target: "webhook", Codes: []string{"KV203"}}},
		},
	}
}

// A row of the controller is told with what the objects show.
func TestTranslation(t *testing.T) {
	c := cluster(t)
	c.Translations = []*v1alpha1.PolicyTranslation{translation(1)}
	c.Sources = nil // has just gone
	p := only(t, c)
	if len(p.Rules) != 2 || p.Rules[0].Cost != "3%" || len(p.Rules[0].Objects) == 0 || p.Rules[0].Enforced != yes ||
		p.Rules[1].Target != report.Webhook || p.Rules[1].Enforced != no || p.Rules[1].Codes[0] != "KV203" || p.Group != "kyverno.io" {
		t.Errorf("got %+v", p)
	}
}

// A policy that deletes on a schedule is told, also beside one of its name that judges.
func TestCleanup(t *testing.T) {
	c := cluster(t)
	last := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	one := translation(1)
	one.Spec.Source.Kind = "ClusterCleanupPolicy"
	one.Status = v1alpha1.PolicyTranslationStatus{
		Mode: v1alpha1.ModeEnforce, Cleanup: &v1alpha1.CleanupStatus{LastExecutionTime: &last},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Forbidden", Message: "a permission is missing"}},
	}
	before := Of(c).Policies
	c.Translations = append(c.Translations, one)
	s := Of(c)
	if len(s.Policies) != len(before)+1 || !s.Findings() {
		t.Fatalf("got %+v", s.Policies)
	}
	for _, p := range s.Policies {
		if p.Kind == "ClusterCleanupPolicy" && (p.Condition("Ready") != "False" || !strings.Contains(p.Conditions[0].Message, "ran last at 2026-01-31T12:00:00Z")) {
			t.Errorf("got %+v", p)
		}
	}
}

// Each case changes one thing in a cluster where all is well.
func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Snapshot)
		want   string // the conditions that are not True, but for Ready
		mode   string
	}{
		{"well", func(*Snapshot) {}, "FallbackActive=Unknown/NotObserved", "enforce"},
		{"not deployed", func(c *Snapshot) { c.Policies, c.Bindings = nil, nil }, "FallbackActive=Unknown/NotObserved", "off"},
		{"no binding", func(c *Snapshot) { c.Bindings = nil }, "Enforced=False/Unbound FallbackActive=Unknown/NotObserved", "shadow"},
		{"not deleted with its policy", func(c *Snapshot) { c.Sources = nil }, "", "enforce"},
		{"no params", func(c *Snapshot) {
			for name := range c.Params {
				c.Params[name] = ResolvedParams{}
			}
		}, "ParamsResolved=False/ParamsNotFound FallbackActive=Unknown/NotObserved", "enforce"},
		{"unknown kind of params", func(c *Snapshot) {
			for name := range c.Params {
				c.Params[name] = ResolvedParams{Unserved: true}
			}
		}, "ParamsResolved=False/ParamKindUnserved Enforced=False/ParamKindUnserved FallbackActive=Unknown/NotObserved", "enforce"},
		{"params that may not be read", func(c *Snapshot) { c.Params = nil }, "FallbackActive=Unknown/NotObserved", "enforce"},
		{"not type-checked yet", func(c *Snapshot) { c.Policies[0].Generation++ }, "TypeChecked=Unknown/Pending FallbackActive=Unknown/NotObserved", "enforce"},
		{"just written", func(c *Snapshot) { c.Policies[0].CreationTimestamp = metav1.NewTime(c.Now) },
			"Enforced=Unknown/JustWritten FallbackActive=Unknown/NotObserved", "enforce"},
		{"an object has gone", func(c *Snapshot) {
			*c = clusterWith(t, ofTwoObjects())
			c.Policies = c.Policies[1:]
		}, "Synced=False/ObjectsMissing FallbackActive=Unknown/NotObserved", "enforce"},
		{"audits", func(c *Snapshot) {
			for _, b := range c.Bindings {
				b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
			}
		}, "FallbackActive=Unknown/NotObserved", "shadow"},
		{"as the controller says", func(c *Snapshot) {
			c.Translations = []*v1alpha1.PolicyTranslation{translation(1)}
			c.Sources[0].Generation = 1
		}, "FallbackActive=False/Unreachable", "enforce"},
		{"as the controller said of another version", func(c *Snapshot) {
			c.Translations = []*v1alpha1.PolicyTranslation{translation(1)}
			c.Sources[0].Generation = 2
		}, "Compiled=Unknown/NotObserved FallbackActive=Unknown/NotObserved", "enforce"},
		{"waits for a ConfigMap, as the controller says", func(c *Snapshot) {
			c.Policies, c.Bindings = nil, nil
			t := translation(1)
			t.Status.Conditions = append(t.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionParamsResolved, Status: metav1.ConditionFalse, Reason: "Missing", ObservedGeneration: 1})
			c.Translations, c.Sources[0].Generation = []*v1alpha1.PolicyTranslation{t}, 1
		}, "ParamsResolved=False/Missing FallbackActive=False/Unreachable", "enforce"},
		{"the controller has not seen it", func(c *Snapshot) { c.Policies, c.Bindings, c.Controller = nil, nil, true }, "FallbackActive=Unknown/NotObserved", "pending"},
		{"the controller has said nothing of it", func(c *Snapshot) {
			t := translation(0)
			t.Status = v1alpha1.PolicyTranslationStatus{}
			c.Policies, c.Bindings, c.Translations = nil, nil, []*v1alpha1.PolicyTranslation{t}
		}, "FallbackActive=Unknown/NotObserved", "pending"},
		{"off by a label", func(c *Snapshot) { c.Sources[0].Policy.Labels = map[string]string{v1alpha1.ModeKey: "off"} }, "FallbackActive=Unknown/NotObserved", "off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t)
			tt.change(&c)
			p := only(t, c)
			var got []string
			for _, c := range p.Conditions {
				if c.Status != yes && c.Type != v1alpha1.ConditionReady {
					got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
				}
			}
			if text := strings.Join(got, " "); text != tt.want || p.Mode != tt.mode {
				t.Errorf("got %q in mode %q, want %q in mode %q", text, p.Mode, tt.want, tt.mode)
			}
		})
	}
}

// A warning belongs to the rule whose expression it is about, and is told at the
// place of that in the source.
func TestWarnings(t *testing.T) {
	c := cluster(t)
	n := len(c.Policies[0].Spec.Validations)
	c.Policies[0].Status.TypeChecking.ExpressionWarnings = []admissionregistrationv1.ExpressionWarning{
		{FieldRef: fmt.Sprintf("spec.validations[%d].expression", n-1), Warning: "/v1, Kind=Pod: ERROR: <input>:1:1: undefined field 'x' in Pod1234567\n"},
	}
	p := only(t, c)
	w := p.Rules[0].Warnings
	if len(w) != 1 || w[0].File != "limits.yaml" || w[0].Path == "" || w[0].Known || w[0].Rule != "limit" || strings.Contains(w[0].Warning, "1234567") {
		t.Errorf("got %+v", w)
	}
	if got := p.Condition(v1alpha1.ConditionTypeChecked); got != no {
		t.Errorf("TypeChecked is %s", got)
	}
}

// A warning is a known false alarm only if all of it is one.
func TestFalseAlarms(t *testing.T) {
	for expression, want := range map[string]bool{
		"object.spec.containers.all(c, 'cpu' in c.resources.limits)": true,
		"object.spec.nope == 1": false,
		"object.spec.nope == 1 && object.spec.containers.all(c, has(c.resources.requests))": false,
	} {
		c := cluster(t)
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mine", Generation: 1}}
		p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			},
		}}}
		p.Status.ObservedGeneration = 1
		p.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{
			FieldRef: "spec.validations[0].expression", Warning: "/v1, Kind=Pod: ERROR: <input>:1:1: undefined field\n",
		}}}
		c.Policies = append(c.Policies, p)
		s := Of(c)
		if len(s.Unmanaged) != 1 || len(s.Unmanaged[0].Warnings) != 1 || s.Unmanaged[0].Warnings[0].Known != want {
			t.Errorf("%s: got %+v, want known %v", expression, s.Unmanaged, want)
		}
	}
}

// The order of the input does not show.
func TestOrder(t *testing.T) {
	c := cluster(t)
	var want, got strings.Builder
	if err := doc.WriteJSON(&want, Of(c)); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(c.Policies)
	slices.Reverse(c.Bindings)
	if err := doc.WriteJSON(&got, Of(c)); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got %s\nwant %s", &got, &want)
	}
}

func TestFilter(t *testing.T) {
	team, err := labels.Parse("team=b")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter Filter
		want   int
	}{
		{Filter{Names: []string{"limits"}, Namespace: "default"}, 1},
		{Filter{Names: []string{"other"}}, 0},
		{Filter{Labels: team}, 0},
	} {
		c := cluster(t)
		c.Filter = tt.filter
		if got := len(Of(c).Policies); got != tt.want {
			t.Errorf("%+v: %d policies, want %d", tt.filter, got, tt.want)
		}
	}
}

// An annotation that cannot be read makes the policy nobody's, and is told.
func TestUnreadableSourceMap(t *testing.T) {
	c := cluster(t)
	c.Policies[0].Annotations["kvap.dev/translation"] = "{"
	s := Of(c)
	if len(s.Unmanaged) != 1 || s.Unmanaged[0].Problems[0].Reason != "SourceMapUnreadable" {
		t.Errorf("got %+v", s.Unmanaged)
	}
}

// A policy on its way from Kyverno says where it stands, and what has not ended.
func TestStage(t *testing.T) {
	ref := v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}
	file, _ := policy.Parse("", []byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {a: b}}}]}\n"))
	m := &v1alpha1.Migration{Spec: v1alpha1.MigrationSpec{Source: ref}, Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageShadow}}
	gone := &v1alpha1.Migration{Spec: v1alpha1.MigrationSpec{Source: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "gone"}}}
	c := Snapshot{Sources: []*Source{{Policy: file.Policies[0], Group: "kyverno.io"}}, Migrations: []*v1alpha1.Migration{m, gone}}
	if got := Of(c).Policies; len(got) != 1 || got[0].Stage != "shadow" {
		t.Errorf("%+v", got)
	}
	m.Status.Doing = &v1alpha1.MigrationStep{Verb: "enforce"}
	if got := Of(c).Policies[0].Stage; got != "shadow, enforce begun" {
		t.Errorf("stage %q", got)
	}
}

// On its way, a policy is there in Kyverno's kind and in that of kvap.dev, under one
// name: what the controller says of one is not taken for the other's, and the native
// objects are those of the one that is judged natively.
func TestBothKinds(t *testing.T) {
	c := cluster(t)
	carrier := *c.Sources[0]
	carrier.Group = v1alpha1.Group
	off, enforced := translation(1), translation(1)
	off.Status = v1alpha1.PolicyTranslationStatus{SourceGeneration: 1, Mode: v1alpha1.ModeOff}
	enforced.Spec.Source.Group = v1alpha1.Group
	migration := &v1alpha1.Migration{Spec: v1alpha1.MigrationSpec{Source: off.Spec.Source}, Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced}}
	for name, sources := range map[string][]*Source{"theirs first": {c.Sources[0], &carrier}, "ours first": {&carrier, c.Sources[0]}} {
		c := c
		c.Sources, c.Migrations = sources, []*v1alpha1.Migration{migration}
		c.Translations = []*v1alpha1.PolicyTranslation{enforced, off}
		modes := map[string]string{}
		for _, p := range Of(c).Policies {
			modes[p.Group] = p.Mode + " " + p.Stage
			judged := slices.ContainsFunc(p.Rules, func(r report.RuleStatus) bool { return len(r.Objects) > 0 })
			if judged != (p.Group == v1alpha1.Group) {
				t.Errorf("%s: the native objects are those of %s: %v", name, p.Group, judged)
			}
		}
		if want := map[string]string{"kyverno.io": "off enforced", v1alpha1.Group: "enforce enforced"}; !maps.Equal(modes, want) {
			t.Errorf("%s: got %v", name, modes)
		}
	}
}

// Exceptions that are in force are those that the controller counts, or, where there is none,
// those that the caller does.
func TestExceptionsInForce(t *testing.T) {
	c := cluster(t)
	f, _ := policy.Parse("e.yaml", []byte(`apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: but, namespace: team}
spec:
  exceptions: [{policyName: limits, ruleNames: [limit]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
`))
	c.Exceptions = f.Exceptions
	if got := only(t, c).Exceptions; len(got) != 1 || got[0].Name != "but" || got[0].Namespace != "team" || got[0].Rules[0] != "limit" {
		t.Errorf("without a controller: %+v", got)
	}
	c.Translations = []*v1alpha1.PolicyTranslation{translation(0)}
	at := metav1.NewTime(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	c.Translations[0].Status.Exceptions = []v1alpha1.ActiveException{{Namespace: "other", Name: "one", Expires: &at}}
	if got := only(t, c).Exceptions; len(got) != 1 || got[0].Name != "one" || got[0].Expires != "2100-01-01T00:00:00Z" {
		t.Errorf("with a controller: %+v", got)
	}
}

// What the controller says of a policy that was edited is not known of it as it is.
func TestEditedPolicy(t *testing.T) {
	c := cluster(t)
	c.Translations = []*v1alpha1.PolicyTranslation{translation(0)}
	c.Translations[0].Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionFallbackActive, Status: metav1.ConditionTrue, Reason: "NotNeeded"},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Edited", Message: "the policy was edited"},
	}
	if p := only(t, c); p.Condition(v1alpha1.ConditionReady) != unknown || p.Conditions[0].Reason != "Edited" {
		t.Errorf("%+v", p.Conditions)
	}
}
