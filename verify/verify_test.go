package verify

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

const typical = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: typical}
spec:
  validationFailureAction: Enforce
  rules:
  - name: limits
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{resources: {namespaces: [kube-system]}}]}
    preconditions:
      all:
      - {key: "{{ request.operation || 'BACKGROUND' }}", operator: NotEquals, value: DELETE}
    validate:
      message: Containers need a limit of memory.
      pattern:
        spec:
          containers:
          - (image): "!busybox:*"
            resources: {limits: {memory: "<=1Gi"}}
`

func seeded(s Setting, seed uint64) Setting {
	s.Seed = seed
	return s
}

func parsed(t testing.TB, source string) *policy.Policy {
	t.Helper()
	file, found := policy.Parse("policy.yaml", []byte(source))
	if found.HasErrors() || len(file.Policies) != 1 {
		t.Fatalf("%d policies, %v", len(file.Policies), found)
	}
	return file.Policies[0]
}

func TestPolicyGivesEvidence(t *testing.T) {
	got, err := Policy(context.Background(), parsed(t, typical), Options{Setting: seeded(theLab().setting, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Disagree() || got.Requests != defaultRequests || len(got.Rules) != 3 {
		t.Fatalf("disagree %v, %d requests, %d rules", got.Disagree(), got.Requests, len(got.Rules))
	}
	for _, r := range got.Rules {
		if !r.Native || r.Matched == 0 || r.BothWays < r.Predicates-1 {
			t.Errorf("%+v", r)
		}
		for _, s := range []interp.Status{interp.Pass, interp.Fail, interp.Skip, interp.None} {
			if r.Verdicts[s] < 20 {
				t.Errorf("%s: %d requests with the status %s", r.Rule, r.Verdicts[s], s)
			}
		}
	}
}

// A policy in CEL is searched as others are: about what its constraints name, and, where that
// is pods, about their controllers; by what its expressions look at and compare with.
func TestValidatingPolicyGivesEvidence(t *testing.T) {
	const header = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: expressed}\nspec:\n"
	for name, one := range map[string]struct {
		spec  string
		rules int
	}{
		"pods and their controllers": {`
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  variables: [{name: all, expression: object.spec.containers}]
  validations: [{expression: "variables.all.all(c, has(c.image) && c.image.startsWith(\"ghcr.io/\"))", message: wrong}]
`, 3},
		"a kind that nobody knows": {`
  matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: ["*"], operations: [CREATE], resources: [widgets]}]}
  validations: [{expression: "object.?spec.?size.orValue(0) <= 12345", message: wrong}]
`, 1},
		"a subresource, and a label": {`
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments/scale, deployments]}]}
  validations: [{expression: "object.spec.?replicas.orValue(1) > 2", message: wrong}]
`, 1},
	} {
		got, err := Policy(context.Background(), parsed(t, header+strings.TrimPrefix(one.spec, "\n")), Options{Setting: seeded(theLab().setting, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if got.Disagree() || len(got.Rules) != one.rules {
			t.Errorf("%s: disagree %v, %d rules", name, got.Disagree(), len(got.Rules))
		}
		for _, r := range got.Rules {
			if !r.Native || r.Verdicts[interp.Pass] < 20 || r.Verdicts[interp.Fail]+r.Verdicts[interp.Error] < 20 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// The same seed gives the same run, another seed another.
// TestGroupsThatConditionsName: requests have the groups and users that conditions name.
func TestGroupsThatConditionsName(t *testing.T) {
	p := parsed(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: exempt}
spec:
  validationFailureAction: Enforce
  rules:
  - name: exempt
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    preconditions:
      all:
      - {key: "{{ request.userInfo.groups }}", operator: AllNotIn, value: [platform-admins]}
      - {key: "{{ request.userInfo.username }}", operator: NotEquals, value: release-robot}
    validate: {deny: {}}
`)
	got, err := Policy(t.Context(), p, Options{Setting: seeded(theLab().setting, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Rules[0]; got.Disagree() || r.BothWays != r.Predicates {
		t.Errorf("disagree %v, %d of %d predicates both ways: %v", got.Disagree(), r.BothWays, r.Predicates, r.Unseen)
	}
}

func TestSeed(t *testing.T) {
	run := func(seed uint64) string {
		e, err := Policy(context.Background(), parsed(t, typical), Options{Setting: seeded(theLab().setting, seed), Requests: 300})
		if err != nil {
			t.Fatal(err)
		}
		e.Elapsed, e.Policy = 0, nil
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if d := textdiff.Values(run(7), run(7)); d != "" {
		t.Errorf("two runs with one seed differ:\n%s", d)
	}
	if run(7) == run(8) {
		t.Error("two seeds give the same run")
	}
}

// Every request is one that an API server could hand to admission.
func TestRequestsAreValid(t *testing.T) {
	for _, source := range []string{typical, strings.ReplaceAll(typical, "kinds: [Pod]", "kinds: [Deployment, Service, Namespace, ClusterRole, Gadget, Widget, Pod/exec, Deployment/scale]")} {
		p := parsed(t, source)
		g := newGenerator(about(p, nil), theLab().setting.Translate.Schemas)
		kinds := map[string]bool{}
		for seed := range uint64(400) {
			r := g.request(choose(seed))
			kinds[r.Kind.Kind] = true
			for _, object := range []map[string]any{r.Object, r.OldObject} {
				if object != nil && r.Operation != "CONNECT" && !g.fits(object, r.Kind) {
					t.Errorf("the object is not as its schema wants it: %s", r)
				}
				if spec, ok := object["spec"].(map[string]any); ok && r.Kind.Kind == "Pod" && len(spec["containers"].([]any)) == 0 {
					t.Errorf("no API server takes a Pod without containers: %s", r)
				}
			}
			if has := r.Object != nil; has == (r.Operation == "DELETE") {
				t.Errorf("object %v: %s", has, r)
			}
			if has := r.OldObject != nil; has != (r.Operation == "DELETE" || r.Operation == "UPDATE") {
				t.Errorf("old object %v: %s", has, r)
			}
		}
		if len(kinds) < 3 {
			t.Errorf("requests are about %v only", kinds)
		}
	}
}

// A counterexample shows nothing that does not matter.
func TestShrinks(t *testing.T) {
	setting := theLab().setting
	setting.Alter = replaceIn("'1Gi'", "'2Gi'")
	got, err := Policy(context.Background(), parsed(t, typical), Options{Setting: seeded(setting, 3), Requests: 20000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Rules {
		c := r.Counterexample
		if c == nil {
			t.Fatalf("%s: nothing was found", r.Rule)
		}
		if c.Native == apiserver.Deny || c.Status != interp.Fail {
			t.Errorf("%s: native %s, interpreter %s", r.Rule, c.Native, c.Status)
		}
		if text := c.Request.String(); len(text) > 1100 || c.Request.Operation != "CREATE" || c.Request.OldObject != nil {
			t.Errorf("%s: %s", r.Rule, text)
		}
	}
}

// replaceIn replaces a text in all expressions.
func replaceIn(old, text string) func([]vap.Objects) {
	return func(objects []vap.Objects) {
		for _, o := range objects {
			for i := range o.Policy.Spec.Validations {
				v := &o.Policy.Spec.Validations[i]
				v.Expression = strings.ReplaceAll(v.Expression, old, text)
			}
			for i := range o.Policy.Spec.Variables {
				v := &o.Policy.Spec.Variables[i]
				v.Expression = strings.ReplaceAll(v.Expression, old, text)
			}
			for i := range o.Policy.Spec.MatchConditions {
				c := &o.Policy.Spec.MatchConditions[i]
				c.Expression = strings.ReplaceAll(c.Expression, old, text)
			}
		}
	}
}

// BenchmarkPolicy is the search in one policy; requests a second is what counts.
func BenchmarkPolicy(b *testing.B) {
	setting := theLab().setting
	p := parsed(b, typical)
	e, err := NewJudges(p, setting)
	if err != nil {
		b.Fatal(err)
	}
	s := newSearch(e, Options{Setting: seeded(setting, 1)})
	b.ReportAllocs()
	begin := time.Now()
	for b.Loop() {
		if err := s.try(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "requests/s")
}

// Rules whose names are cut to the same are searched apart: the broken one of the
// two is the one that is told of.
func TestCutNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	source := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:" + `
  - name: ` + long + `1
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {=(hostNetwork): false}}}
  - name: ` + long + `2
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {=(hostPID): false}}}
`
	setting := theLab().setting
	setting.Alter = replaceIn("hostPID", "hostIPC")
	got := search1(t, source, Options{Setting: seeded(setting, 1), Requests: 4000})
	if len(got.Rules) != 6 {
		t.Fatalf("%d rules", len(got.Rules))
	}
	for i, r := range got.Rules {
		second := i == 1 || i >= 4 // as written, and its expansions
		if found := r.Counterexample != nil; found != second || r.Matched == 0 {
			t.Errorf("rule %d, %s: found %v, matched %d", i, r.Rule, found, r.Matched)
		}
	}
}

// A wildcard for the kind in front of a subresource is tried with kinds that have it.
func TestWildcardSubresource(t *testing.T) {
	g := newGenerator(about(parsed(t, strings.ReplaceAll(typical, "kinds: [Pod]", "kinds: [apps/v1/*/scale]")), nil), theLab().setting.Translate.Schemas)
	tried := map[string]bool{}
	for seed := range uint64(200) {
		if r := g.request(choose(seed)); r.Subresource == "scale" {
			tried[r.Group+"/"+r.Resource+" "+r.Operation+" "+r.Kind.Kind] = true
		}
	}
	for _, want := range []string{"apps/deployments UPDATE Scale", "apps/replicasets UPDATE Scale", "apps/statefulsets UPDATE Scale"} {
		if !tried[want] {
			t.Errorf("no request for %s; there are %v", want, tried)
		}
	}
}
