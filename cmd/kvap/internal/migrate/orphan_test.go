package migrate

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

const twoGenerate = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: goes
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: "{{request.object.metadata.name}}", synchronize: true, orphanDownstreamOnPolicyDelete: false, data: {data: {a: b}}}
  - name: stays
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: Secret, name: s, namespace: "{{request.object.metadata.name}}", synchronize: true, data: {type: Opaque}}
  - name: asked
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: Secret, name: a, namespace: "{{request.object.metadata.name}}", synchronize: true, orphanDownstreamOnPolicyDelete: true, data: {type: Opaque}}
`

// orphans are the rules of a policy whose objects stay without it.
func orphans(o *unstructured.Unstructured) (out []string) {
	eachGenerate(o.Object["spec"], func(name string, generate map[string]any) {
		if generate[orphanField] == true {
			out = append(out, name)
		}
	})
	return out
}

// What a rule that leaves Kyverno has generated is kept from going with it; a rule that
// stays there is as users wrote it, and so is every rule of kvap's policy and of the record.
func TestWhatWasGeneratedStays(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayReplace, v1alpha1.WayRemove} {
		th := newTheatre(t, 5, way)
		th.world.Source = &unstructured.Unstructured{Object: object(t, twoGenerate)}
		th.kyverno, th.rules, th.world.Staying = th.world.Source, []string{"goes", "stays", "asked"}, nil
		if way == v1alpha1.WayReplace {
			th.world.Staying = []string{"stays"}
		}
		before := Digest(th.world.Source.Object)
		goal := Goal{Verb: Enforce, Way: way, Accept: "a test"}
		wrote := ""
		for i := 0; i < 500 && (th.world.Record == nil || th.world.Record.Status.Stage != v1alpha1.StageEnforced); i++ {
			th.run(goal, 1)
			if o := th.world.Source; o != nil && len(orphaned(o)) > 0 {
				wrote = strings.Join(orphans(o), " ")
				if Digest(o.Object) != before {
					t.Errorf("%s: it counts as another policy, so that what was compared speaks for it no more", way)
				}
			}
		}
		want := map[v1alpha1.MigrationWay]string{v1alpha1.WayReplace: "goes asked", v1alpha1.WayRemove: "goes stays asked"}[way]
		if wrote != want {
			t.Errorf("%s: objects of %q stay, want of %q", way, wrote, want)
		}
		original, err := restored(th.world.Record.Status.Original)
		if err != nil {
			t.Fatal(err)
		}
		for what, o := range map[string]*unstructured.Unstructured{"the record": original, "kvap's policy": th.world.Carrier} {
			if got := strings.Join(orphans(o), " "); got != "asked" || len(orphaned(o)) > 0 {
				t.Errorf("%s: in %s objects of %q stay", way, what, got)
			}
		}
		if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
			t.Fatalf("%s: there is no way back", way)
		}
		if got := strings.Join(orphans(th.world.Source), " "); got != "asked" || len(th.world.Source.GetAnnotations()) > 0 {
			t.Errorf("%s: after rollback, objects of %q stay; %v", way, got, th.world.Source.GetAnnotations())
		}
	}
}

// A definition that drops the field is seen, and Kyverno's policy is not deleted.
func TestDefinitionThatDropsTheField(t *testing.T) {
	th := newTheatre(t, 5, v1alpha1.WayRemove)
	goal := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}
	for len(orphaned(th.world.Source)) == 0 {
		th.run(goal, 1)
	}
	th.world.Source = th.world.Source.DeepCopy()
	eachGenerate(th.world.Source.Object["spec"], func(_ string, generate map[string]any) { delete(generate, orphanField) })
	if move, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), "Kyverno would delete what the rule made has generated") {
		t.Errorf("move %v, error %v", move, err)
	}
	if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
		t.Error("there is no way back")
	}
}

// Kyverno 1.20 takes nothing along, for it carries no such policy out: nothing has to be
// written into one that cannot be changed.
func TestNothingGoesWithAPolicyThatIsGivenUp(t *testing.T) {
	for _, givenUp := range []bool{false, true} {
		th := newTheatre(t, 5, v1alpha1.WayRemove)
		w := th.world
		w.Closed, w.GivenUp = "denied by the guard", givenUp
		_, err := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}.Moves(w)
		if refused := err != nil && strings.Contains(err.Error(), "blockLegacyPolicyAPIs"); refused == givenUp {
			t.Errorf("given up %v: %v", givenUp, err)
		}
	}
}

// Where a repository has the step and nobody has a record, the record that is begun then
// has the policy as users wrote it.
func TestRecordOfWhatARepositoryWrote(t *testing.T) {
	th := newTheatre(t, 5, v1alpha1.WayRemove)
	before := Digest(th.world.Source.Object)
	o := th.world.Source.DeepCopy()
	eachGenerate(o.Object["spec"], func(_ string, generate map[string]any) { generate[orphanField] = true })
	annotate(o, map[string]string{v1alpha1.OrphanedKey: `["made"]`})
	th.world.Source, th.kyverno = o, o
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, 500) || !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
		t.Fatal("there is no end")
	}
	th.isBack(before)
}

// A plan says of which rules what they generated is taken over.
func TestPlanSaysWhatIsTakenOver(t *testing.T) {
	f, _ := policy.Parse("p.yaml", []byte(twoGenerate))
	plan := MakePlan(compile.Policies(compile.Input{Policies: f.Policies}, compile.Options{}), nil, nil)
	var got []string
	for _, r := range plan.Policies[0].Rules {
		if slices.ContainsFunc(r.Codes, func(c report.PlannedCode) bool { return c.Code == diag.TakenOver }) {
			got = append(got, r.Rule)
		}
	}
	if strings.Join(got, " ") != "goes stays" {
		t.Errorf("taken over: %v", got)
	}
}
