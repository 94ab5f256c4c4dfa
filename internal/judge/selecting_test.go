package judge_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

const stampsAll = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamps}
spec:
  rules:
  - name: all
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {stamped: "yes"}}}}
`

// stampsSome is stampsAll with a rule that leaves out namespaces by their labels.
const stampsSome = stampsAll + `
  - name: some
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    exclude: {any: [{resources: {namespaceSelector: {matchLabels: {team: a}}}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {owned: "yes"}}}}
`

// changing compiles a policy that mutates natively.
func changing(t *testing.T, text string) compile.Result {
	t.Helper()
	f, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	out := compile.Policies(compile.Input{Policies: f.Policies}, compile.Options{
		Translate: translate.Options{Release: cel.Latest, Schemas: schemas(t), Mutations: true},
	})
	if len(out.Mutating) == 0 {
		t.Fatal(out.Diagnostics)
	}
	return out
}

// boundTo is what was made of a policy, in namespaces of a team alone.
func boundTo(r compile.Result, team string) (out judge.DeployedMutations) {
	for _, o := range r.Mutating {
		out.Policies = append(out.Policies, o.Policy)
		for _, b := range o.Bindings {
			b = b.DeepCopy()
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}, ObjectSelector: &metav1.LabelSelector{},
			}
			out.Bindings = append(out.Bindings, b)
		}
	}
	return out
}

// TestMutationsOfUnknownNamespaces: what labels of a namespace decide that nobody knows is unknown
// of policies that mutate too, by their rules or by what is deployed.
func TestMutationsOfUnknownNamespaces(t *testing.T) {
	all, some := changing(t, stampsAll), changing(t, stampsSome)
	none, given := map[string]string(nil), map[string]string{"team": "a"}
	for name, tt := range map[string]struct {
		of     compile.Result
		state  judge.ClusterState
		labels map[string]string
		want   string // of the rules: native, interpreter
	}{
		"a rule":                    {some, judge.ClusterState{}, none, "unknown unknown, unknown unknown"},
		"a rule, and labels":        {some, judge.ClusterState{}, given, "allow pass, nomatch none"},
		"a rule, and no others":     {some, judge.ClusterState{AllNamespaces: true}, none, "allow pass, allow pass"},
		"a binding":                 {all, judge.ClusterState{Mutations: boundTo(all, "a")}, none, "unknown unknown"},
		"a binding, and labels":     {all, judge.ClusterState{Mutations: boundTo(all, "a")}, given, "allow pass"},
		"a binding to another team": {all, judge.ClusterState{Mutations: boundTo(all, "b")}, given, "differ: nomatch pass"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := judge.New(tt.of, nil, tt.state)
			if err != nil {
				t.Fatal(err)
			}
			r := request(t, judge.Client{User: "me"}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
			r.NamespaceLabels = tt.labels
			opinions, err := j.Judge(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			j.Mutate(t.Context(), r, opinions)
			var got []string
			for _, o := range opinions {
				one := fmt.Sprintf("%s %s", o.Native, o.Status)
				if !o.Agree() {
					one = "differ: " + one
				}
				got = append(got, one)
				if unknown := o.Native == apiserver.Unknown; unknown != (o.Lacks != nil) || unknown && o.Violated() {
					t.Errorf("%s: lacks %v, violated %v", o.Rule.Name, o.Lacks, o.Violated())
				}
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if _, told := j.Changes(t.Context(), r)["stamps"]; told == strings.Contains(tt.want, "unknown") {
				t.Errorf("what is made of the object is told: %v", told)
			}
		})
	}
}

// TestMutatorOfUnknownNamespaces: a Mutator knows as little of them.
func TestMutatorOfUnknownNamespaces(t *testing.T) {
	deployed := boundTo(changing(t, stampsAll), "a")
	for name, tt := range map[string]struct {
		state  judge.ClusterState
		labels map[string]string
		want   apiserver.Outcome
	}{
		"unknown":   {judge.ClusterState{}, nil, apiserver.Unknown},
		"labels":    {judge.ClusterState{}, map[string]string{"team": "a"}, apiserver.Allow},
		"others":    {judge.ClusterState{}, map[string]string{}, apiserver.NoMatch},
		"no others": {judge.ClusterState{AllNamespaces: true}, nil, apiserver.NoMatch},
	} {
		m, err := deployed.Mutator(tt.state)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, judge.Client{User: "me"}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		r.NamespaceLabels = tt.labels
		_, verdicts, err := m.Mutate(t.Context(), r)
		if err != nil || len(verdicts) != 1 || verdicts[0].Outcome != tt.want || (tt.want == apiserver.Unknown) != (verdicts[0].Message != "") {
			t.Errorf("%s: got %+v (%v), want %s", name, verdicts, err, tt.want)
		}
	}
}

// TestMutationsOnDelete: nothing is changed of an object that goes away, so that there is nothing in
// which a rule could err: neither judge says anything, and no deletion is refused. What Kyverno's
// engine says is beside it.
func TestMutationsOnDelete(t *testing.T) {
	j, err := judge.New(changing(t, stampsAll), nil, judge.ClusterState{})
	if err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[string]string{"CREATE": "allow pass pass", "UPDATE": "allow pass pass", "DELETE": "nomatch none error"} {
		object := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
		r := request(t, judge.Client{User: "me", Operation: operation}, object+"\n---\n"+object)
		opinions, err := j.Judge(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		j.Mutate(t.Context(), r, opinions)
		for _, o := range opinions {
			if got := fmt.Sprintf("%s %s %s", o.Native, o.Status, o.Kyverno); got != want || o.Violated() || !o.Agree() {
				t.Errorf("%s: got %s (%s), violated %v, agree %v; want %s", operation, got, o.Message, o.Violated(), o.Agree(), want)
			}
		}
	}
}
