//go:build e2e

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// enoughServed is how many scenarios the controller is given at the least.
const enoughServed = 33

// knownFailures are scenarios that do not pass, and why.
func knownFailures() map[string]string {
	return map[string]string{
		"mutate/external-secret-operator/add-external-secret-prefix": "fields that the real definition of the kind has defaults for",
	}
}

// Every chainsaw test of policies that generate, clean up and change objects, and that
// can be replayed, passes with `kvap-controller` in place of Kyverno.
func TestReplayController(t *testing.T) {
	t.Parallel()
	scenarios, reasons := loadServed(t)
	s := newServed(t, nil)
	for i, one := range scenarios {
		t.Run(one.name, func(t *testing.T) {
			s.replayServed(t, one, fmt.Sprintf("served-%d", i))
		})
	}
	tellReasons(t, len(scenarios), reasons)
	if *only == "" && len(scenarios) < enoughServed {
		t.Errorf("only %d scenarios", len(scenarios))
	}
}

// loadServed reads the scenarios for the controller, and why others cannot be replayed.
func loadServed(t *testing.T) (scenarios []scenario, reasons map[string][]string) {
	t.Helper()
	if _, err := os.Stat(*corpus); err != nil {
		t.Skip("the corpus of public policies is not at hand")
	}
	reasons = map[string][]string{}
	for _, kind := range []string{"generate", "cleanup", "mutate"} {
		some, others := scenariosIn(t, filepath.Join(*corpus, kind), func(s scenario) (string, error) {
			if failing := knownFailures()[s.name]; failing != "" {
				return failing, nil
			}
			return s.notServed()
		})
		scenarios = append(scenarios, some...)
		for why, names := range others {
			reasons[why] = append(reasons[why], names...)
		}
	}
	return scenarios, reasons
}

// notServed says what keeps a scenario from being replayed on a control plane that has
// no nodes and no network.
func (s scenario) notServed() (string, error) {
	for i, step := range s.steps {
		if step.verb == presence { // that a kind is there is seen to anyway
			step.objects = slices.DeleteFunc(step.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
			s.steps[i] = step
		}
		for _, o := range step.objects {
			data, err := json.Marshal(o.Object)
			switch {
			case err != nil:
				return "", err
			case isPolicy(o) && (bytes.Contains(data, []byte(`"imageRegistry":`)) || bytes.Contains(data, []byte(`"verifyImages":`))):
				return "a policy that asks an image registry", nil
			case step.verb != presence && step.verb != absence:
			case computes(o.Object):
				return "an expression of chainsaw", nil
			case step.verb == presence && o.Object["status"] != nil && slices.Contains([]string{"Pod", "Deployment", "Node"}, o.GetKind()):
				return "an assertion about what runs", nil
			}
		}
	}
	return "", nil
}

// replayServed does what a scenario says, in a namespace of its own.
func (s *served) replayServed(t *testing.T, one scenario, namespace string) {
	t.Helper()
	r := &servedRun{run: &run{server: s.server, name: one.name, namespace: namespace}}
	defer r.cleanUp(t)
	r.made = append(r.made, object("v1", "Namespace", "", namespace))
	if err := s.judged.Create(t.Context(), r.made[0]); err != nil {
		t.Fatal(err)
	}
	for _, step := range one.steps { // kinds are there before the policies about them
		for _, o := range step.objects {
			r.place(t, o)
		}
	}
	for _, step := range one.steps {
		if !r.do(t, step) {
			return // what follows builds on it
		}
	}
}

// A servedRun is a scenario on its way.
type servedRun struct {
	*run
	policies []*unstructured.Unstructured
}

// do does a step, and tells whether it went as it should.
func (r *servedRun) do(t *testing.T, s step) bool {
	t.Helper()
	for _, o := range s.objects {
		var why string
		switch s.verb {
		case presence, absence:
			why = r.await(t, s.verb, o)
		default:
			if isPolicy(o) {
				annotate(o, "kvap.dev/mode", "enforce")
			}
			if err := r.send(t, s.verb, o.DeepCopy()); (err != nil) != s.refused {
				why = fmt.Sprintf("got %v, want refused %v", err, s.refused)
			}
		}
		if why == "" && o.GetKind() == "Namespace" && s.verb == apply && !s.refused {
			why = r.addAccount(t, o.GetName())
		}
		if why == "" && isPolicy(o) && s.verb != deletion && !s.refused {
			r.policies = append(r.policies, o)
			why = r.awaitServed(t, o)
		}
		if why != "" {
			t.Errorf("%s: %s %s/%s: %s", s.at, o.GetKind(), o.GetNamespace(), o.GetName(), why)
			return false
		}
	}
	return true
}

// addAccount makes what a controller that the control plane has not makes in each
// namespace.
func (r *servedRun) addAccount(t *testing.T, namespace string) string {
	t.Helper()
	err := r.judged.Create(t.Context(), object("v1", "ServiceAccount", namespace, "default"))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err.Error()
	}
	return ""
}

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// patience is how long an assertion may take to come true: a machine that is busy
// takes long, and a schedule may be of a minute.
const patience = 90 * time.Second

// eventually asks until there is nothing to say against it.
func eventually(ask func() string) string {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if why := ask(); why == "" || time.Now().After(deadline) {
			return why
		}
	}
}

// await waits until an object like the one that is asserted is there, or none.
func (r *servedRun) await(t *testing.T, v verb, o *unstructured.Unstructured) string {
	t.Helper()
	return eventually(func() string {
		if v == absence && r.pending(t) > 0 {
			return "work is left to be done"
		}
		why := "there is none"
		for _, have := range r.candidates(t, o) {
			if why = differs(o.Object, have.Object, ""); why == "" {
				r.made = append(r.made, have) // to be removed, whoever has made it
				break
			}
		}
		switch {
		case v == presence:
			return why
		case why == "":
			return "there is one"
		}
		return ""
	})
}

// candidates are the objects that an assertion may be about.
func (r *servedRun) candidates(t *testing.T, o *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	if o.GetName() != "" {
		have := object(o.GetAPIVersion(), o.GetKind(), "", "")
		err := r.judged.Get(t.Context(), client.ObjectKeyFromObject(o), have)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return []*unstructured.Unstructured{have}
	}
	var out []*unstructured.Unstructured
	for _, one := range r.list(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace()) {
		out = append(out, &one)
	}
	return out
}

func (r *servedRun) list(t *testing.T, apiVersion, kind, namespace string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := r.judged.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// pending is how much work requests have started that is not done.
func (r *servedRun) pending(t *testing.T) int {
	t.Helper()
	return len(r.list(t, "kvap.dev/v1alpha1", "GenerateRequest", ""))
}

// translationOf is what kvap says of a policy; nil where it says nothing.
func (r *servedRun) translationOf(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, one := range r.list(t, "kvap.dev/v1alpha1", "PolicyTranslation", "") {
		source, _, _ := unstructured.NestedStringMap(one.Object, "spec", "source")
		if source["kind"] == o.GetKind() && source["name"] == o.GetName() && source["namespace"] == o.GetNamespace() {
			return &one
		}
	}
	return nil
}

// awaitServed waits until requests about a policy's kinds come to the webhook.
func (r *servedRun) awaitServed(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	have := object(o.GetAPIVersion(), o.GetKind(), "", "")
	if err := r.judged.Get(t.Context(), client.ObjectKeyFromObject(o), have); err != nil {
		t.Fatal(err)
	}
	why := eventually(func() string {
		translation := r.translationOf(t, o)
		if translation == nil {
			return "kvap says nothing of it"
		}
		observed, _, _ := unstructured.NestedInt64(translation.Object, "status", "sourceGeneration")
		conditions, _, _ := unstructured.NestedSlice(translation.Object, "status", "conditions")
		missing := func(item any) bool { // a rule has its place before the cluster serves its kind
			condition, _ := item.(map[string]any)
			message, _ := condition["message"].(string)
			return strings.Contains(message, "the cluster serves no kind")
		}
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			if (condition["type"] == "FallbackActive" || condition["type"] == "Ready") && condition["status"] == "True" && observed >= have.GetGeneration() && !slices.ContainsFunc(conditions, missing) {
				return ""
			}
		}
		return fmt.Sprintf("it is not served: %v", conditions)
	})
	if why == "" {
		if err := r.plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return why
}

// cleanUp removes all that the run has made, the policies first, and waits until kvap
// has forgotten them.
func (r *servedRun) cleanUp(t *testing.T) {
	t.Helper()
	for _, o := range r.policies {
		if err := r.judged.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	for _, o := range r.policies {
		if why := eventually(func() string {
			if r.translationOf(t, o) == nil {
				return ""
			}
			return "kvap does not forget it"
		}); why != "" {
			t.Errorf("%s: %s", o.GetName(), why)
		}
	}
	r.run.cleanUp(t)
}
