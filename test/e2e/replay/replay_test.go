//go:build e2e

package replay

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

var (
	corpus = flag.String("corpus", "../../../../shared/corpus", "the folder of public policies")
	only   = flag.String("only", "", "only the scenarios whose name matches this expression")
)

// enough is how many scenarios are replayed at the least, where the corpus is there.
const enough = 80

// Every chainsaw test that can be replayed passes with kvap in place of Kyverno. Like the
// other test it has a control plane of its own, and waits for it most of the time.
func TestReplay(t *testing.T) {
	t.Parallel()
	scenarios, reasons := load(t)
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop()
	s := newServer(t, plane)
	for i, one := range scenarios {
		t.Run(one.name, func(t *testing.T) { s.replay(t, one, fmt.Sprintf("replay-%d", i)) })
	}
	tellReasons(t, len(scenarios), reasons)
	if *only == "" && len(scenarios) < enough {
		t.Errorf("only %d scenarios", len(scenarios))
	}
}

func tellReasons(t *testing.T, replayed int, reasons map[string][]string) {
	t.Helper()
	t.Logf("%d scenarios were replayed; not replayed:", replayed)
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%d: %s: %s", len(reasons[reason]), reason, strings.Join(reasons[reason], ", "))
	}
}

// load reads the scenarios, and why others cannot be replayed.
func load(t *testing.T) (scenarios []scenario, reasons map[string][]string) {
	t.Helper()
	if _, err := os.Stat(*corpus); err != nil {
		t.Skip("the corpus of public policies is not at hand")
	}
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	return scenariosIn(t, *corpus, func(s scenario) (string, error) {
		if why := s.asserts(); why != "" {
			return why, nil
		}
		return s.notNative(types)
	})
}

// scenariosIn reads the scenarios of a folder, and for the others why they cannot be
// replayed: by themselves, or as cannot has it.
func scenariosIn(t *testing.T, folder string, cannot func(scenario) (string, error)) (scenarios []scenario, reasons map[string][]string) {
	t.Helper()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	reasons = map[string][]string{}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "chainsaw-test.yaml" {
			return err
		}
		s, why, err := read(*corpus, filepath.Dir(path))
		if err == nil && why == "" {
			why, err = cannot(s)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case !wanted.MatchString(s.name):
		case why != "":
			reasons[why] = append(reasons[why], s.name)
		default:
			scenarios = append(scenarios, s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return scenarios, reasons
}

// A server is a control plane whose first API server judges. What is removed is
// removed through another one, which does not.
type server struct {
	plane            *controlplane.ControlPlane
	judged, unjudged client.Client
	types            *schema.Set
}

func newServer(t *testing.T, plane *controlplane.ControlPlane) *server {
	t.Helper()
	s := &server{plane: plane}
	config := plane.Config(controlplane.Admin)
	config.WarningHandler = rest.NoWarnings{}
	second := rest.CopyConfig(config)
	var err error
	if second.Host, err = plane.Another(t.Context(), "--disable-admission-plugins=ValidatingAdmissionPolicy"); err != nil {
		t.Fatal(err)
	}
	if s.judged, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if s.unjudged, err = client.New(second, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if s.types, err = schema.Builtin(cel.Default.String()); err != nil {
		t.Fatal(err)
	}
	if err := testcluster.KeepParams(t.Context(), s.unjudged); err != nil {
		t.Fatal(err)
	}
	return s
}

// replay does what a scenario says, in a namespace of its own.
func (s *server) replay(t *testing.T, one scenario, namespace string) {
	t.Helper()
	r := &run{server: s, name: one.name, namespace: namespace, policies: policies{}}
	defer r.cleanUp(t)
	r.made = append(r.made, object("v1", "Namespace", "", namespace))
	if err := s.unjudged.Create(t.Context(), object("v1", "Namespace", "", namespace)); err != nil {
		t.Fatal(err)
	}
	if !isPolicy(one.steps[0].objects[0]) { // or else the policies of the last run are gone in time
		if err := s.plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range one.steps {
		if !r.do(t, step) {
			return // what follows builds on it
		}
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}

// A run is a scenario on its way.
type run struct {
	*server
	name      string // of the scenario
	namespace string
	policies  policies
	enforced  []client.Object
	made      []*unstructured.Unstructured
}

// do does a step, and tells whether it went as it should.
func (r *run) do(t *testing.T, s step) bool {
	t.Helper()
	changed := false
	for _, o := range s.objects {
		if isPolicy(o) {
			if o = o.DeepCopy(); o.GetNamespace() == "" && (o.GetKind() == "Policy" || o.GetKind() == "NamespacedValidatingPolicy") {
				o.SetNamespace(r.namespace)
			}
			if err := r.policies.do(s.verb, o); err != nil {
				t.Errorf("%s: %v", s.at, err)
				return false
			}
			changed = true
			continue
		}
		err := r.send(t, s.verb, o.DeepCopy())
		if err == nil && s.refused {
			good, err := admitted(filepath.Join(*corpus, r.name), o)
			if err != nil {
				t.Fatal(err)
			}
			why := "Kyverno's recorded verdict lets it pass as well"
			if !good {
				why = mistaken()[r.name+" "+o.GetName()]
			}
			if why != "" {
				t.Logf("%s: %s %s is to be refused, but %s", s.at, o.GetKind(), o.GetName(), why)
				continue
			}
		}
		if (err != nil) != s.refused {
			t.Errorf("%s: %s %s: got %v, want refused %v", s.at, o.GetKind(), o.GetName(), err, s.refused)
			return false
		}
		if err != nil && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Logf("%s: %s %s is refused, but by nobody's policy: %v", s.at, o.GetKind(), o.GetName(), err)
		}
	}
	if changed {
		r.enforce(t)
	}
	return true
}

// enforce puts what the policies are translated to in place of what was before.
func (r *run) enforce(t *testing.T) {
	t.Helper()
	objects, why, err := r.policies.compiled(r.types)
	if why != "" || err != nil {
		t.Fatal(why, err)
	}
	r.unenforce(t)
	r.enforced = objects
	for _, o := range objects {
		if err := r.unjudged.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *run) unenforce(t *testing.T) {
	t.Helper()
	for _, o := range slices.Backward(r.enforced) {
		if err := r.unjudged.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	r.enforced = nil
}

// send makes a request, as chainsaw does: to apply is to create, or to patch.
func (r *run) send(t *testing.T, v verb, o *unstructured.Unstructured) error {
	t.Helper()
	r.place(t, o)
	have := o.DeepCopy()
	err := r.judged.Get(t.Context(), client.ObjectKeyFromObject(o), have)
	switch {
	case v == absence && apierrors.IsNotFound(err):
		return nil
	case v == absence && err == nil:
		return fmt.Errorf("it is there")
	case v == deletion && err == nil:
		return r.judged.Delete(t.Context(), o)
	case apierrors.IsNotFound(err) && v == apply:
		if err = r.judged.Create(t.Context(), o); err == nil {
			r.made = append(r.made, o)
		}
		return err
	case err != nil:
		return err
	}
	wanted := have.DeepCopy()
	merge(wanted.Object, o.Object)
	return r.judged.Patch(t.Context(), wanted, client.MergeFrom(have))
}

// place has the server know the kind of an object, and gives one without a namespace
// that of the run.
func (r *run) place(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	namespaced, err := r.judged.IsObjectNamespaced(o)
	if meta.IsNoMatchError(err) {
		gvk := o.GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		crd := controlplane.StandIn(gvk, resource.Resource, o.GetNamespace() != "" || !strings.HasPrefix(gvk.Kind, "Cluster"))
		if err := r.plane.InstallCRDs(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		namespaced, err = r.judged.IsObjectNamespaced(o)
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case namespaced && o.GetNamespace() == "":
		o.SetNamespace(r.namespace)
	case o.GetKind() == "Namespace":
		r.awaitEnd(t, o)
	}
}

// awaitEnd waits for a namespace that is going away.
func (r *run) awaitEnd(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		have := o.DeepCopy()
		err := r.unjudged.Get(t.Context(), client.ObjectKeyFromObject(o), have)
		if err != nil || have.GetDeletionTimestamp() == nil {
			return
		}
	}
	t.Fatalf("the namespace %s does not end", o.GetName())
}

// cleanUp removes all that the run has made. That policies no longer judge is waited
// for by the next run.
func (r *run) cleanUp(t *testing.T) {
	t.Helper()
	r.unenforce(t)
	for _, o := range slices.Backward(r.made) {
		if err := r.unjudged.Delete(context.Background(), o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}
