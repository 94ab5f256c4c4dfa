package migrate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A theatre is a cluster in which Kyverno and the controller take up what is written
// some time later, and tell of it later still.
type theatre struct {
	t       *testing.T
	rand    *rand.Rand
	world   PolicyState // as it is read
	kyverno *unstructured.Unstructured
	source  *unstructured.Unstructured // as the controller judges by it
	carrier *unstructured.Unstructured
	mode    string // that the record gave the source then
	rules   []string

	versions int // that were given to what rivals have written
}

// pass has some of the others do their part.
func (th *theatre) pass() {
	w := &th.world
	if th.rand.IntN(3) == 0 {
		th.kyverno = w.Source
	}
	if th.rand.IntN(3) == 0 {
		th.source, th.carrier, th.mode = w.Source, w.Carrier, w.recordedMode()
	}
	if th.rand.IntN(3) == 0 { // the controller tells of what it has taken up
		w.SourceStatus, w.CarrierStatus = seenOf(th.source, th.mode), seenOf(th.carrier, "")
	}
	w.Kyverno = Judging{Yes: th.kyverno != nil && th.kyverno == w.Source && !isOff(w.Source)}
	th.judged()
}

// judged fails where nobody judges by a rule.
func (th *theatre) judged() {
	for _, rule := range th.rules {
		switch {
		case th.kyverno != nil && th.kyverno.Object["spec"].(map[string]any)["admission"] != false && has(th.kyverno, rule):
		case th.source != nil && modeOf(th.source) == v1alpha1.ModeEnforce && has(th.source, rule) && !slices.Contains(th.world.Staying, rule):
		case th.carrier != nil && modeOf(th.carrier) == v1alpha1.ModeEnforce && has(th.carrier, rule):
		default:
			th.t.Fatalf("nobody judges by the rule %s", rule)
		}
	}
}

func has(o *unstructured.Unstructured, rule string) bool {
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
	return slices.ContainsFunc(rules, func(r any) bool { return r.(map[string]any)["name"] == rule })
}

// run makes moves until the goal is reached, or the process is killed.
func (th *theatre) run(g Goal, moves int) bool {
	th.t.Helper()
	for range moves {
		th.pass()
		move, err := g.Next(th.world)
		if err != nil {
			th.t.Fatalf("%s: %v", g.Verb, err)
		}
		if move == nil {
			return true
		}
		if move.IsWait() {
			continue
		}
		th.make(move)
		th.judged()
	}
	return false
}

// make carries a move out, as an API server would.
func (th *theatre) make(m *Move) {
	if m.Write != nil {
		m.Write = m.Write.DeepCopy()
		m.Write.SetGeneration(1) // who changes the carrier is not in this play
	}
	seen, other, kyverno := th.world.SourceStatus, th.world.CarrierStatus, th.world.Kyverno
	before := th.world.Source
	th.world = th.world.after(m)
	th.downstream(before)
	th.world.SourceStatus, th.world.CarrierStatus = seen, other
	if m.Record != nil {
		th.world.Kyverno = kyverno
	}
}

// downstream fails where Kyverno would delete what a rule has generated, as it does when a
// rule that keeps its objects in step goes, or the policy with it: by the last version that
// it was told of.
func (th *theatre) downstream(before *unstructured.Unstructured) {
	if before == nil || th.world.closed() { // who carries nothing out deletes nothing
		return
	}
	rules, _, _ := unstructured.NestedSlice(before.Object, "spec", "rules")
	for _, one := range rules {
		rule := one.(map[string]any)
		generate, ok := rule["generate"].(map[string]any)
		if !ok || generate["synchronize"] != true || generate["orphanDownstreamOnPolicyDelete"] == true {
			continue
		}
		if name := rule["name"].(string); th.world.Source == nil || !has(th.world.Source, name) {
			th.t.Fatalf("Kyverno deletes what the rule %s has generated", name)
		}
	}
}

const twoRules = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
  - name: made
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: "{{request.object.metadata.name}}", synchronize: true, data: {data: {a: b}}}
`

func newTheatre(t *testing.T, seed uint64, way v1alpha1.MigrationWay) *theatre {
	source := &unstructured.Unstructured{Object: object(t, twoRules)}
	ref := v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	th := &theatre{t: t, rand: rand.New(rand.NewPCG(seed, 1)), kyverno: source, rules: []string{"labelled", "made"}}
	th.world = PolicyState{Now: now, Name: "p", Ref: ref, Source: source}
	if way == v1alpha1.WayReplace {
		th.world.Staying = []string{"made"}
	}
	return th
}

// However often a process is killed, at every moment somebody judges by each rule, the
// record says what was begun, and the same verb or rollback leads to an end.
func TestKilledAtAnyMove(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace, v1alpha1.WayRemove} {
		for seed := range uint64(300) {
			th := newTheatre(t, seed, way)
			before := Digest(th.world.Source.Object)
			goals := []Goal{{Verb: Shadow}, {Verb: Enforce, Way: way, Accept: "tested elsewhere"}}
			if way != v1alpha1.WayReplace {
				goals = append(goals, Goal{Verb: Adopt})
			}
			for _, goal := range goals[:1+th.rand.IntN(len(goals))] {
				if killed := th.rand.IntN(30); !th.run(goal, killed) && th.rand.IntN(2) == 0 {
					break // and go back from there
				}
				if !th.run(goal, 500) {
					t.Fatalf("%s %d: %s does not end", way, seed, goal.Verb)
				}
				if d := th.world.Record.Status; d.Doing != nil || d.Stage != goal.stage() {
					t.Fatalf("%s %d: after %s the record has %+v", way, seed, goal.Verb, d)
				}
			}
			back := Goal{Verb: Rollback, To: v1alpha1.StageNone}
			if th.run(back, th.rand.IntN(20)); !th.run(back, 500) {
				t.Fatalf("%s %d: rollback does not end", way, seed)
			}
			th.isBack(before)
		}
	}
}

// isBack fails where something is not as it was before.
func (th *theatre) isBack(digest string) {
	w := th.world
	switch {
	case w.Source == nil || w.Carrier != nil:
		th.t.Fatal("Kyverno's policy is gone, or kvap's is not")
	case Digest(w.Source.Object) != digest || w.Source.Object["spec"].(map[string]any)["admission"] == false:
		th.t.Fatalf("Kyverno's policy is another: %v", w.Source.Object["spec"])
	case strings.Contains(string(asJSON(th.t, w.Source)), "orphan"):
		th.t.Fatalf("Kyverno would leave what it generates: %v", w.Source.Object["spec"])
	case len(w.Source.GetAnnotations()) > 0:
		th.t.Fatalf("annotations are left: %v", w.Source.GetAnnotations())
	case w.Record != nil && (w.Record.Status.Doing != nil || w.Record.Status.Stage != v1alpha1.StageNone):
		th.t.Fatalf("the record has %+v", w.Record.Status)
	}
}

// A rule that only Kyverno carries out is never taken from it, whatever was asked for.
func TestStayingRulesStay(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayRemove} {
		th := newTheatre(t, 1, v1alpha1.WayReplace)
		if _, err := (Goal{Verb: Enforce, Way: way, Accept: "a test"}).Next(th.world); err == nil {
			t.Errorf("%s: the rule made would be judged by nobody, and that is not refused", way)
		}
	}
}

// What was deleted meanwhile is in the record.
func TestRollbackOfWhatWasDeleted(t *testing.T) {
	th := newTheatre(t, 7, v1alpha1.WayAdmission)
	digest := Digest(th.world.Source.Object)
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, 500) {
		t.Fatal("enforce does not end")
	}
	th.world.Source, th.kyverno, th.source, th.rules = nil, nil, nil, nil
	if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
		t.Fatal("rollback does not end")
	}
	th.isBack(digest)
}

// Enforce wants a comparison that speaks for the policy.
func TestEnforceWantsEvidence(t *testing.T) {
	th := newTheatre(t, 1, v1alpha1.WayAdmission)
	goal := Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, MaxAge: 24 * time.Hour}
	if _, err := goal.Next(th.world); err == nil {
		t.Error("it was enforced without a comparison")
	}
	th.world.Record = NewRecord("p", th.world.Ref)
	th.world.Record.Status.Comparison = &v1alpha1.Comparison{At: metav1.NewTime(th.world.Now), Digest: th.world.digest(), Clean: true}
	if move, err := goal.Next(th.world); err != nil || move == nil {
		t.Errorf("move %v, error %v", move, err)
	}
	th.world.Unread = "exceptions may not be read"
	if _, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), th.world.Unread) {
		t.Errorf("it was enforced with something that is not known: %v", err)
	}
	th.world.Unread = ""
	if !th.run(goal, 500) {
		t.Error("enforce does not end")
	}
	if why := th.world.Record.Status.Steps[0].Why; why != "" {
		t.Errorf("the record has the reason %q, and none was needed", why)
	}
}

// Where only an audit log can speak for a rule, enforce says so.
func TestEnforceOfWhatCannotBeCompared(t *testing.T) {
	th := newTheatre(t, 1, v1alpha1.WayRemove)
	goal := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, MaxAge: 24 * time.Hour}
	if _, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), "kvap migrate compare p") || strings.Contains(err.Error(), "--audit-log") {
		t.Errorf("a generate rule: %v", err)
	}
	rules, _, _ := unstructured.NestedSlice(th.world.Source.Object, "spec", "rules")
	rule := rules[1].(map[string]any)
	delete(rule, "generate")
	rule["mutate"] = map[string]any{"patchStrategicMerge": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}
	th.world.Source = th.world.Source.DeepCopy()
	if err := unstructured.SetNestedSlice(th.world.Source.Object, rules, "spec", "rules"); err != nil {
		t.Fatal(err)
	}
	if _, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), "--audit-log") {
		t.Errorf("a mutate rule: %v", err)
	}
}

func asJSON(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
