//go:build e2e

package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

func enforcing() controller.Options { return controller.Options{Mode: v1alpha1.ModeEnforce} }

// awaitNone waits until the controller has no native policies left.
func (c *cluster) awaitNone(t *testing.T) {
	t.Helper()
	testcluster.Soon(t, "no native policy is left", func() bool { return len(c.ours(t)) == 0 })
}

// What was deleted while nobody was there is removed by who comes next.
func TestDeletedWhileDown(t *testing.T) {
	stop := shared.control(t, enforcing())
	shared.apply(t, requires("gone", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "gone")
	stop()
	p := &unstructured.Unstructured{}
	p.SetAPIVersion("kyverno.io/v1")
	p.SetKind("ClusterPolicy")
	p.SetName("gone")
	shared.remove(t, p)
	if len(shared.ours(t)) == 0 {
		t.Fatal("there is nothing to remove")
	}
	shared.control(t, enforcing())
	shared.awaitNone(t)
	testcluster.Soon(t, "the status is gone", func() bool { return shared.translation(t, "gone.clusterpolicies.kyverno.io").Name == "" })
}

// What somebody else edits, adds or deletes is restored, down to the last field.
func TestRestored(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, requires("kept", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "kept")
	name := shared.ours(t)[0]
	key := client.ObjectKey{Name: name}
	native := func() *admissionregistrationv1.ValidatingAdmissionPolicy {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := shared.Get(t.Context(), key, p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return p
	}
	want := native().Spec
	for what, edit := range map[string]func(p *admissionregistrationv1.ValidatingAdmissionPolicy){
		"an expression": func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "true" },
		"one more condition": func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"the label": func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			delete(p.Labels, "app.kubernetes.io/managed-by")
		},
	} {
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the server writes its status
			p := native()
			edit(p)
			return shared.Update(t.Context(), p, client.FieldOwner("somebody"))
		}); err != nil {
			t.Fatal(err)
		}
		testcluster.Soon(t, "restored: "+what, func() bool {
			got := native()
			return asJSON(got.Spec) == asJSON(want) && got.Labels["app.kubernetes.io/managed-by"] == controller.Manager
		})
	}
	shared.remove(t, native())
	testcluster.Soon(t, "made again", func() bool { return asJSON(native().Spec) == asJSON(want) })
	var bindings admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	if err := shared.List(t.Context(), &bindings); err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Spec.PolicyName == name {
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				if err := shared.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
					return err
				}
				b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Audit"}
				return shared.Update(t.Context(), b, client.FieldOwner("somebody"))
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	testcluster.Soon(t, "the binding denies again", func() bool { return apierrors.IsInvalid(shared.tryCreate(t.Context(), nil)) })
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// An object of somebody else, under a name that a policy would have, stays as it is. The
// policy takes another name, and the first again when that is free.
func TestForeign(t *testing.T) {
	shared.clear(t)
	foreign := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "kvap-configmaps-deny", Labels: map[string]string{"app.kubernetes.io/managed-by": controller.Manager}},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
		},
	}
	if err := shared.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, foreign) })
	shared.control(t, enforcing())
	shared.apply(t, requires("late", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "late")
	if err := shared.tryCreate(t.Context(), nil); !apierrors.IsInvalid(err) {
		t.Errorf("without the label: %v", err)
	}
	got := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(foreign), got); err != nil || asJSON(got.Spec) != asJSON(foreign.Spec) {
		t.Errorf("the object has changed: %v\n%s", err, asJSON(got.Spec))
	}
	shared.remove(t, foreign)
	testcluster.Soon(t, "the policy has the name", func() bool { return slices.Equal(shared.ours(t), []string{foreign.Name}) })
	shared.awaitReady(t, "ClusterPolicy", "", "late")
}

func (c *cluster) hasEvent(t *testing.T, about, reason string) bool {
	t.Helper()
	var events corev1.EventList
	if err := c.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.Name == about && e.Reason == reason })
}

// A policy that stops parsing keeps its last good version in force, also for the next
// process; and the one that parses again takes its place.
func TestLastGood(t *testing.T) {
	stop := shared.control(t, enforcing())
	shared.apply(t, requires("broken", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "broken")
	shared.apply(t, strings.Replace(requires("broken", "owner", "Enforce"), "pattern:", "patern:", 1))
	invalid := func() bool {
		return shared.condition(t, "broken.clusterpolicies.kyverno.io", v1alpha1.ConditionCompiled).Reason == "Invalid"
	}
	testcluster.Soon(t, "the policy says that it is invalid", invalid)
	if err := shared.tryCreate(t.Context(), nil); !apierrors.IsInvalid(err) {
		t.Errorf("after the bad change: %v", err)
	}
	stop()
	// Another policy has the objects written again by the next process.
	shared.control(t, enforcing())
	shared.apply(t, requires("other", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "other")
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a"}); !apierrors.IsInvalid(err) {
		t.Errorf("in the next process: %v", err)
	}
	shared.apply(t, requires("broken", "cost", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "broken")
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a", "cost": "b"}); err != nil {
		t.Errorf("after the good change: %v", err)
	}
}

// Modes: by the policy, by the default, and none at all.
func TestModes(t *testing.T) {
	shared.control(t, controller.Options{Mode: v1alpha1.ModeShadow})
	with := func(mode string) string {
		return strings.Replace(requires("modal", "owner", "Enforce"), "{name: modal}", "{name: modal, annotations: {kvap.dev/mode: \""+mode+"\"}}", 1)
	}
	name := "modal.clusterpolicies.kyverno.io"
	shared.apply(t, requires("modal", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "modal")
	if got := shared.translation(t, name).Status; got.Mode != "shadow" || got.Action != "Audit" {
		t.Errorf("in shadow: %+v", got)
	}
	if err := shared.tryCreate(t.Context(), nil); err != nil {
		t.Errorf("in shadow: %v", err)
	}
	shared.apply(t, with("enforce"))
	testcluster.Soon(t, "the policy is enforced", func() bool { return apierrors.IsInvalid(shared.tryCreate(t.Context(), nil)) })
	shared.apply(t, with("off"))
	testcluster.Soon(t, "the policy is left alone", func() bool {
		return shared.translation(t, name).Status.Mode == "off" && shared.tryCreate(t.Context(), nil) == nil
	})
	shared.awaitNone(t)
	shared.apply(t, with("enfroce"))
	testcluster.Soon(t, "the mode is told to be none", func() bool {
		return shared.condition(t, name, v1alpha1.ConditionCompiled).Reason == "BadMode"
	})
}

// kvap's own definitions go and come back while the controller runs: it goes on.
func TestOwnDefinitionsComeAndGo(t *testing.T) {
	options, passes := enforcing(), atomic.Int64{}
	options.Step = func(s controller.Step) {
		if s == controller.StepRead {
			passes.Add(1)
		}
	}
	shared.control(t, options)
	shared.apply(t, lookup)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed-teams", Namespace: "default"}, Data: map[string]string{"team": "red"}}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, cm) })
	shared.awaitReady(t, "ClusterPolicy", "", "lookup")
	for _, name := range []string{"params.kvap.dev", "policytranslations.kvap.dev"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		shared.remove(t, crd)
		testcluster.Soon(t, "the definition is gone", func() bool {
			return apierrors.IsNotFound(shared.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		})
	}
	before := passes.Load()
	testcluster.Soon(t, "passes have found them gone", func() bool { return passes.Load() > before+3 })
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.plane.InstallCRDs(t.Context(), definitions...); err != nil {
		t.Fatal(err)
	}
	shared.awaitReady(t, "ClusterPolicy", "", "lookup")
	testcluster.Soon(t, "red is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "red"}) == nil })
	cm.Data["team"] = "blue"
	if err := shared.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "blue is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "blue"}) == nil })
	shared.apply(t, requires("after", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "after")
}

// Kinds of policies come and go while the controller runs. Who takes a kind away has not
// decided that its policies are not wanted: what is enforced stays so, in the next process
// too, and says why it is there, until somebody decides.
func TestDefinitionsComeAndGo(t *testing.T) {
	stop := shared.control(t, enforcing())
	const translation = "local.default.policies.kyverno.io"
	var s *stream
	for range 2 {
		if err := shared.plane.InstallCRDs(t.Context(), standIns("policies.kyverno.io")...); err != nil {
			t.Fatal(err)
		}
		shared.apply(t, strings.Replace(strings.Replace(requires("local", "owner", "Enforce"), "ClusterPolicy", "Policy", 1), "{name: local}", "{name: local, namespace: default}", 1))
		shared.awaitReady(t, "Policy", "default", "local")
		if err := shared.tryCreate(t.Context(), nil); !apierrors.IsInvalid(err) {
			t.Errorf("with the policy: %v", err)
		}
		if s == nil {
			s = shared.ask(t)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "policies.kyverno.io"}}
		shared.remove(t, crd)
		testcluster.Soon(t, "the definition is gone", func() bool {
			return apierrors.IsNotFound(shared.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		})
		uninstalled := func() bool {
			return shared.condition(t, translation, v1alpha1.ConditionCompiled).Reason == "SourceUninstalled" &&
				shared.condition(t, translation, v1alpha1.ConditionReady).Status == metav1.ConditionFalse
		}
		testcluster.Soon(t, "the policy says what has become of it", uninstalled)
		testcluster.Soon(t, "an event says so", func() bool { return shared.hasEvent(t, "local", "SourceUninstalled") })
		stop()
		stop = shared.control(t, enforcing())
		time.Sleep(5 * time.Second) // it would be removed by then
		if !uninstalled() || len(shared.ours(t)) == 0 {
			t.Fatal("the next process has forgotten it")
		}
		for _, name := range shared.ours(t) { // the garbage collector would follow its owners
			p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err := shared.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil || len(p.OwnerReferences) > 0 {
				t.Errorf("%s: %v, owners %v", name, err, p.OwnerReferences)
			}
		}
	}
	stop()
	if err := shared.plane.InstallCRDs(t.Context(), standIns("policies.kyverno.io")...); err != nil {
		t.Fatal(err)
	}
	shared.control(t, enforcing())
	time.Sleep(5 * time.Second) // as above: that the kind is there again decides nothing
	s.end(t)
	if len(shared.ours(t)) == 0 {
		t.Error("it went when its kind came back")
	}
	shared.remove(t, &v1alpha1.PolicyTranslation{ObjectMeta: metav1.ObjectMeta{Name: translation}})
	shared.awaitNone(t)
}
