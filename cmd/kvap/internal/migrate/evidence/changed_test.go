package evidence

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

const stamps = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamps}
spec:
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    exclude: {any: [{resources: {names: [left]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {stamp: "is-{{ request.object.metadata.labels.team }}"}}}}
`

// What native policies make of the object of a request is held against what Kyverno's rules make
// of it, and named by its path where it is another.
func TestChanged(t *testing.T) {
	t.Parallel()
	schemas, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	f, found := policy.Parse("policy.yaml", []byte(stamps))
	if found.HasErrors() {
		t.Fatal(found)
	}
	options := translate.Options{
		Release: 36, Schemas: schemas, Pack: translate.PackPolicy, Params: translate.ParamsConfigMap,
		Existing: translate.AllowExisting, Guard: translate.GuardAuto, Mutations: true, Merging: apiserver.NewMerging(),
	}
	made := compile.Policies(compile.Input{Policies: f.Policies}, compile.Options{Translate: options, Emit: vap.EmitOptions{ExcludeNamespaces: []string{"left-out"}}})
	for name, tt := range map[string]struct {
		change func(expression string) string
		team   string
		in     string
		labels map[string]string // of the namespaces that the bindings select
		want   string
	}{
		"the same":             {nil, "a", "default", nil, "1 rule compared on 1 observation: 1 agree, 0 disagree"},
		"another value":        {func(s string) string { return strings.Replace(s, "'is-'", "'was-'", 1) }, "a", "default", nil, `"was-a" / "is-a" at /metadata/labels/stamp`},
		"another key":          {func(s string) string { return strings.Replace(s, "'stamp'", "'mark'", 1) }, "a", "default", nil, `empty / "is-a" at /metadata/labels/stamp`},
		"an error":             {func(s string) string { return strings.Replace(s, "'is-'", "dyn({}).none", 1) }, "a", "default", nil, "err / make an object of it"},
		"a namespace left out": {nil, "a", "left-out", nil, "0 rules compared on 0 observations: 0 agree, 0 disagree; no evidence for 1 rule: requests, not compared: the bindings leave out the namespace (1)"},
		"a namespace of unknown labels": {nil, "a", "default", map[string]string{"team": "a"},
			"0 rules compared on 0 observations: 0 agree, 0 disagree; no evidence for 1 rule: requests, not compared: the Namespace default, which the rule reads, was not given (1)"},
	} {
		var deployed judge.DeployedMutations
		for _, o := range made.Mutating {
			p := o.Policy.DeepCopy()
			if m := p.Spec.Mutations[0].ApplyConfiguration; tt.change != nil {
				m.Expression = tt.change(m.Expression)
			}
			deployed.Policies = append(deployed.Policies, p)
			for _, b := range o.Bindings {
				if b = b.DeepCopy(); tt.labels != nil {
					b.Spec.MatchResources.NamespaceSelector = &metav1.LabelSelector{MatchLabels: tt.labels}
				}
				deployed.Bindings = append(deployed.Bindings, b)
			}
		}
		judges, err := judge.New(made, nil, judge.ClusterState{Mutations: deployed})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{T: t, policy: f.Policies[0], options: options, judges: judges}
		l := New(judges, Options{})
		o := aConfigMap("one", "team", tt.team)
		o.SetNamespace(tt.in)
		b.judge(l, Requests, nil, o)
		if got := changedSummary(l.Comparison()); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func changedSummary(c report.Comparison) string {
	if len(c.Rules) != 1 || len(c.Rules[0].Disagreements) == 0 {
		out := c.Totals.String()
		for _, r := range c.Rules {
			out += strings.Join(append([]string{""}, r.Notes...), ": ")
		}
		return out
	}
	sides := c.Rules[0].Disagreements[0].Sides
	out := strings.TrimPrefix(sides[0].Says, "make it ") + " / " + strings.TrimPrefix(sides[1].Says, "make it ")
	if sides[1].Message != "" {
		out += " at " + sides[1].Message
	}
	return out
}
