package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/vap"
)

// judgeOf is a judge by rules, at a version of what it says. One whose name begins with m
// mutates.
func judgeOf(name string, version int, rules ...string) *wantedPolicy {
	var t vap.Translation
	j := &wantedPolicy{policy: emptyLike(&nativePolicy{}), bindings: []client.Object{emptyLike(&nativeBinding{})}, rules: rules}
	if strings.HasPrefix(name, "m") {
		j.policy, j.bindings[0] = emptyLike(&mutatingPolicy{}), emptyLike(&mutatingBinding{})
	}
	for _, r := range rules {
		policy, rule, _ := strings.Cut(r, "/")
		t.Members = append(t.Members, vap.TranslatedMember{Policy: policy, Rule: rule})
	}
	for _, o := range []client.Object{j.policy, j.bindings[0]} {
		o.SetName(name)
		o.SetLabels(ownLabels(nil))
	}
	j.policy.SetAnnotations(map[string]string{vap.TranslationAnnotation: asJSON(t), "version": fmt.Sprint(version)})
	bind(j.bindings[0], name)
	return j
}

func wantedOf(js ...*wantedPolicy) map[string]*wantedPolicy {
	out := map[string]*wantedPolicy{}
	for _, j := range js {
		out[keyOf(j.policy)] = j
	}
	return out
}

// A model is a cluster in memory: what there is, and what the API servers have seen
// of it.
type model struct {
	live clusterState
	seen string
	kept map[string]bool
}

func newModel() *model {
	return &model{live: clusterState{map[string]client.Object{}, map[string]client.Object{}}}
}

// put does what the API server does with an object that the controller applies.
func (m *model) put(o client.Object) {
	o = o.DeepCopyObject().(client.Object)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply}})
	o.SetUID(types.UID(o.GetName()))
	if isBinding(o) {
		m.live.bindings[keyOf(o)] = o
		return
	}
	if have := m.live.policies[keyOf(o)]; have != nil {
		o.SetGeneration(have.GetGeneration() + 1)
	}
	m.live.policies[keyOf(o)] = o
}

func (m *model) drop(o client.Object) {
	if isBinding(o) {
		delete(m.live.bindings, keyOf(o))
		return
	}
	delete(m.live.policies, keyOf(o))
}

// judged are the rules that a policy with a binding judges by.
func (m *model) judged() map[string]bool {
	out := map[string]bool{}
	for _, b := range m.live.bindings {
		if p := m.live.policies[boundTo(b)]; p != nil {
			for _, r := range rulesOf(p) {
				out[r] = true
			}
		}
	}
	return out
}

// next does one thing of a plan, in the way of a handover, and tells whether there
// was any.
func (m *model) next(p handoverPlan) bool {
	switch {
	case len(p.write) > 0:
		m.put(p.write[0])
	case m.seen != stateOf(m.live.versions()):
		m.seen = stateOf(m.live.versions())
	case len(p.remove) > 0:
		m.drop(p.remove[0])
	case len(p.deferred) > 0:
		for _, o := range standIns(p.deferred, m.live) {
			m.put(o)
		}
	default:
		return false
	}
	return true
}

func (m *model) plan(wanted map[string]*wantedPolicy) handoverPlan {
	return planFor(wanted, m.live, nil, m.seen == stateOf(m.live.versions()), m.kept)
}

// From whatever there is to whatever is wanted, and whenever the process ends: what
// was judged before and is wanted after is judged at every moment, and in the end
// there is what is wanted and nothing else.
func TestPlansLoseNoRule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rules := []string{"p/a", "p/b", "q/c", "q/d"}
	random := func(version int) map[string]*wantedPolicy {
		out := map[string]*wantedPolicy{}
		for _, name := range []string{"x", "y", "m", "mx"} {
			some := slices.DeleteFunc(slices.Clone(rules), func(string) bool { return r.IntN(2) == 0 })
			if len(some) > 0 {
				one := judgeOf(name, version, some...)
				out[keyOf(one.policy)] = one
			}
		}
		return out
	}
	for trial := range 1000 {
		m := newModel()
		var was map[string]*wantedPolicy
		for version := range 3 {
			wanted := random(version)
			both := func(rule string) bool { return judges(was, rule) && judges(wanted, rule) }
			stop := r.IntN(20) // a process may end before it is done
			if version == 2 {
				stop = 1000
			}
			for range stop {
				if !m.next(m.plan(wanted)) {
					break
				}
				for _, rule := range rules {
					if both(rule) && m.completed(was) && !m.judged()[rule] {
						t.Fatalf("trial %d: nobody judges by %s", trial, rule)
					}
				}
			}
			if !m.has(wanted) {
				wanted = nil // what is there is neither
			}
			was = wanted
		}
		if was == nil {
			t.Fatalf("trial %d: not all that is wanted is there, or more", trial)
		}
	}
}

func judges(js map[string]*wantedPolicy, rule string) bool {
	for _, j := range js {
		if slices.Contains(j.rules, rule) {
			return true
		}
	}
	return false
}

// completed tells that a handover to these judges came to its end.
func (m *model) completed(js map[string]*wantedPolicy) bool { return js != nil }

// has tells that there is what is wanted and nothing else.
func (m *model) has(wanted map[string]*wantedPolicy) bool {
	p := m.plan(wanted)
	return len(p.write)+len(p.deferred)+len(p.remove) == 0 && !p.blocked && len(m.live.policies) == len(wanted) && len(m.live.bindings) == len(wanted)
}

// What is as wanted leads to no write, and what others wrote into it stays.
func TestNothingToDo(t *testing.T) {
	m := newModel()
	wanted := wantedOf(judgeOf("x", 1, "p/a"))
	for m.next(m.plan(wanted)) {
	}
	m.live.policies["x"].GetAnnotations()["example.com/of-somebody"] = "else"
	m.live.policies["x"].GetLabels()["team"] = "a"
	if p := m.plan(wanted); len(p.write)+len(p.remove)+len(p.deferred) > 0 {
		t.Errorf("%+v", p)
	}
}

// An object of somebody else is neither written nor removed, whatever its labels say.
func TestForeignObjects(t *testing.T) {
	m := newModel()
	theirs := judgeOf("x", 1, "p/a")
	m.live.policies["x"] = theirs.policy // nobody has applied it
	p := m.plan(wantedOf(judgeOf("x", 2, "p/a"), judgeOf("y", 1, "p/b")))
	if p.foreign["x"] == nil || len(p.foreign) > 1 {
		t.Errorf("foreign are %v", slices.Collect(maps.Keys(p.foreign)))
	}
	for _, o := range slices.Concat(p.write, p.remove) {
		if o.GetName() == "x" {
			t.Errorf("%T x is touched", o)
		}
	}
	if p := m.plan(nil); len(p.remove) > 0 {
		t.Errorf("%v would be removed", p.remove)
	}
}

// A policy that is called as the controller's own objects are is not made, and harms
// nobody: else canary and policy would be written in turn, for ever, and nothing else.
func TestReservedNames(t *testing.T) {
	m := newModel()
	wanted := wantedOf(judgeOf(canaryName, 1, "p/a"), judgeOf("y"+standInSuffix, 1, "p/b"), judgeOf("y", 1, "p/c"))
	p := m.plan(wanted)
	if len(p.foreign) != 2 || len(p.write) == 0 {
		t.Errorf("foreign are %v", slices.Collect(maps.Keys(p.foreign)))
	}
	for _, o := range p.write {
		if b, ok := o.(*nativeBinding); o.GetName() != "y" && (!ok || b.Spec.PolicyName != "y") {
			t.Errorf("%T %s is written", o, o.GetName())
		}
	}
}

// A rule that the webhook is to judge from now on, and does not yet, keeps its judge,
// in an object that changes for the sake of others as well; once it does, that goes.
func TestKeptUntilServed(t *testing.T) {
	for name, wanted := range map[string]map[string]*wantedPolicy{
		"nothing else is judged": nil, "the object has other rules": wantedOf(judgeOf("x", 2, "q/b")), "another has": wantedOf(judgeOf("y", 1, "q/b")),
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			for m.next(m.plan(wantedOf(judgeOf("x", 1, "p/a", "q/b")))) {
			}
			m.kept = map[string]bool{"p/a": true}
			for m.next(m.plan(wanted)) {
				if !m.judged()["p/a"] {
					t.Fatal("nobody judges by the rule")
				}
			}
			if !m.judged()["p/a"] || len(wanted) > 0 && !m.judged()["q/b"] {
				t.Errorf("judged are %v", m.judged())
			}
			m.kept = nil
			for m.next(m.plan(wanted)) {
			}
			if !m.has(wanted) {
				t.Error("not all that is wanted is there, or more")
			}
		})
	}
}
