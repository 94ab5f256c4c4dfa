package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

func noon() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// cleaner is a policy that was made at noon and runs at each full hour.
func cleaner(t *testing.T, head, spec string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old, uid: u-old, resourceVersion: '1', generation: 1}\n"+
		"spec: {schedule: '0 * * * *', match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {old: 'yes'}}}}]}"+spec+"}\n")
	h := object(t, "metadata: {creationTimestamp: '2026-01-31T12:00:00Z'"+head+"}")
	for k, v := range h.Object["metadata"].(map[string]any) {
		o.Object["metadata"].(map[string]any)[k] = v
	}
	if o.GetNamespace() != "" {
		o.SetKind("CleanupPolicy")
	}
	return o
}

// A fake is a cluster and a ledger of maps. Its time stands still.
type fake struct {
	mu       sync.Mutex
	now      time.Time
	policies []*unstructured.Unstructured
	objects  map[string]*unstructured.Unstructured // by namespace/name
	whole    []bool                                // what lists were of
	refuse   map[string]error                      // by verb and name
	changes  map[string]int                        // how often an object changes when it is about to be deleted
	excepted []*unstructured.Unstructured
	entries  map[string]*v1alpha1.PolicyTranslation
	writes   int
	events   []string
}

func newFake(t *testing.T, policies ...*unstructured.Unstructured) (*fake, *Runner) {
	t.Helper()
	f := &fake{
		now: noon(), policies: policies, objects: map[string]*unstructured.Unstructured{}, refuse: map[string]error{}, changes: map[string]int{},
		entries: map[string]*v1alpha1.PolicyTranslation{},
	}
	for _, text := range []string{
		"metadata: {name: a, namespace: team, uid: a, labels: {old: 'yes'}}", "metadata: {name: b, namespace: other, uid: b, labels: {old: 'yes'}}",
		"metadata: {name: c, namespace: team, uid: c}", "metadata: {name: d, namespace: kube-system, uid: d, labels: {old: 'yes'}}",
		"metadata: {name: e, namespace: team, uid: e, deletionTimestamp: '2026-01-31T11:00:00Z', labels: {old: 'yes'}}",
	} {
		o := object(t, "apiVersion: v1\nkind: ConfigMap\n"+text)
		o.SetResourceVersion("1")
		f.objects[o.GetNamespace()+"/"+o.GetName()] = o
	}
	return f, &Runner{
		Cluster: f, Ledger: f, Mode: v1alpha1.ModeEnforce, ExcludeNamespaces: []string{"kube-system"}, Now: func() time.Time { return f.now },
		World: func(context.Context) (interp.World, error) { return &interp.Offline{}, nil },
		Events: func(_ v1alpha1.PolicyReference, warning bool, reason, note string) {
			f.events = append(f.events, fmt.Sprint(warning, " ", reason, ": ", note))
		},
	}
}

func (f *fake) Policies(context.Context) ([]*unstructured.Unstructured, error) {
	return f.policies, f.refuse["policies"]
}

func (f *fake) Exceptions(context.Context) ([]*unstructured.Unstructured, error) {
	return f.excepted, f.refuse["exceptions"]
}

func (f *fake) Served(context.Context) ([]Resource, error) {
	all := []string{"create", "delete", "get", "list"}
	return []Resource{
		{schema.GroupVersionResource{Version: "v1", Resource: "bindings"}, "Binding", true, []string{"create"}},
		{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true, all},
		{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "Node", false, all},
		{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", true, all},
		{schema.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"}, "Deployment", true, all},
	}, nil
}

func (f *fake) Resource(_ context.Context, k policy.KindSelector) (Resource, bool, error) {
	return Resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true, nil}, k.Kind == "ConfigMap", nil
}

func (f *fake) Each(_ context.Context, _ Resource, namespace string, whole bool, do func(*unstructured.Unstructured) error) error {
	f.mu.Lock()
	var all []*unstructured.Unstructured
	for _, o := range f.objects {
		if namespace == "" || o.GetNamespace() == namespace {
			all = append(all, o.DeepCopy())
		}
	}
	f.whole = append(f.whole, whole)
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	if err := f.refuse["list"]; err != nil {
		return err
	}
	for _, o := range all {
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Get(_ context.Context, _ Resource, namespace, name string, _ bool) (*unstructured.Unstructured, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.objects[namespace+"/"+name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (f *fake) Delete(_ context.Context, _ Resource, o *unstructured.Unstructured, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := o.GetNamespace() + "/" + o.GetName()
	have := f.objects[key]
	switch {
	case f.refuse[key] != nil:
		return f.refuse[key]
	case have == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, o.GetName())
	case f.changes[key] > 0:
		f.changes[key]--
		have.SetResourceVersion(have.GetResourceVersion() + "1")
		if f.changes[key] == 0 {
			have.SetLabels(nil)
		}
	}
	if have.GetResourceVersion() != o.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, o.GetName(), fmt.Errorf("it has changed"))
	}
	delete(f.objects, key)
	return nil
}

func (f *fake) List(context.Context) (map[string]*v1alpha1.PolicyTranslation, error) {
	out := map[string]*v1alpha1.PolicyTranslation{}
	for name, e := range f.entries {
		out[name] = e.DeepCopy()
	}
	return out, nil
}

func (f *fake) Write(_ context.Context, t *v1alpha1.PolicyTranslation) error {
	f.writes++
	f.entries[t.Name] = t.DeepCopy()
	return nil
}

func (f *fake) Remove(_ context.Context, name string) error {
	f.writes++
	delete(f.entries, name)
	return nil
}

// at ticks at a time of that day.
func (f *fake) at(t *testing.T, r *Runner, clock string) {
	t.Helper()
	d, err := time.Parse("15:04:05", clock)
	if err != nil {
		t.Fatal(err)
	}
	f.now = noon().Truncate(24 * time.Hour).Add(time.Duration(d.Hour())*time.Hour + time.Duration(d.Minute())*time.Minute + time.Duration(d.Second())*time.Second)
	if err := r.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) left() string {
	var out []string
	for _, o := range f.objects {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// ready is the condition of the one policy, and how many objects it deleted and failed
// at.
func (f *fake) ready(t *testing.T) string {
	t.Helper()
	for _, e := range f.entries {
		c := e.Status.Conditions[0]
		return fmt.Sprintf("%s %s %d %d: %s", c.Status, c.Reason, e.Status.Cleanup.Deleted, e.Status.Cleanup.Failed, c.Message)
	}
	return ""
}

// A policy deletes what it matches when it is due, once, and writes nothing at rest.
func TestSchedule(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	f.at(t, r, "12:59:59")
	if got := f.left(); got != "abcde" {
		t.Errorf("before it is due there are %s left", got)
	}
	if got := f.ready(t); !strings.HasPrefix(got, "True Scheduled 0 0: it has not run") {
		t.Error(got)
	}
	f.at(t, r, "13:00:00")
	if got := f.left(); got != "cde" {
		t.Errorf("left are %s", got)
	}
	if got := f.ready(t); !strings.HasPrefix(got, "True Scheduled 2 0: the last run deleted 2 objects: ConfigMap team/a, ConfigMap other/b") {
		t.Error(got)
	}
	entry := f.entries["old.clustercleanuppolicies.kyverno.io"].Status.Cleanup
	if got := entry.LastExecutionTime.UTC().Format(time.TimeOnly) + " " + entry.NextExecutionTime.UTC().Format(time.TimeOnly); got != "13:00:00 14:00:00" {
		t.Error(got)
	}
	f.objects["team/c"].SetLabels(map[string]string{"old": "yes"})
	writes := f.writes
	f.at(t, r, "13:00:10")
	f.at(t, r, "13:59:59")
	if f.writes != writes || f.left() != "cde" || len(f.events) != 1 {
		t.Errorf("at rest: %d writes, left %s, events %v", f.writes-writes, f.left(), f.events)
	}
	// Another process goes on where this one ends; what was missed is made up for once.
	again := &Runner{Cluster: r.Cluster, Ledger: r.Ledger, Events: r.Events, World: r.World, Mode: r.Mode, ExcludeNamespaces: r.ExcludeNamespaces, Now: r.Now}
	f.at(t, again, "13:59:59")
	if f.left() != "cde" {
		t.Errorf("a run was made twice: left %s", f.left())
	}
	f.at(t, again, "17:30:00")
	f.objects["team/f"] = f.objects["team/e"].DeepCopy()
	f.objects["team/f"].SetDeletionTimestamp(nil)
	f.at(t, again, "17:30:10")
	if f.left() != "dee" {
		t.Errorf("left are %s", f.left())
	}
	f.policies = nil
	f.at(t, again, "17:40:00")
	if len(f.entries) != 0 {
		t.Error("the entry of a policy that is gone is there still")
	}
}

// What a policy deletes depends on its mode, kind and conditions.
func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		head, spec, left, ready string
		whole                   bool
	}{
		"in shadow":            {", annotations: {kvap.dev/mode: shadow}", "", "abcde", "True Shadow 2 0: the last run would have deleted 2 objects", false},
		"off":                  {", labels: {kvap.dev/mode: 'off'}", "", "abcde", "True Off 0 0", false},
		"no mode":              {", labels: {kvap.dev/mode: 'on'}", "", "abcde", "False BadMode 0 0", false},
		"of a namespace":       {", namespace: other", "", "acde", "True Scheduled 1 0", false},
		"with a condition":     {"", ", conditions: {all: [{key: '{{ target.metadata.name }}', operator: Equals, value: b}]}", "acde", "True Scheduled 1 0", true},
		"with what errs":       {"", ", conditions: {all: [{key: '{{ request.object.kind }}', operator: Equals, value: b}]}", "abcde", "False Failed 0 2: judging ConfigMap team/a: ", true},
		"with what is unknown": {"", ", deletionPropagationPolicy: Sometimes", "abcde", "False Invalid 0 0: the policy cannot be read", false},
		"never due":            {"", "", "abcde", "False Invalid 0 0", false},
		"excluded":             {"", ", exclude: {any: [{resources: {namespaces: [team]}}]}", "acde", "True Scheduled 1 0", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := newFake(t, cleaner(t, c.head, c.spec))
			if name == "never due" {
				unstructured.RemoveNestedField(f.policies[0].Object, "spec", "schedule")
				_ = unstructured.SetNestedField(f.policies[0].Object, "0 0 31 2 *", "spec", "schedule")
			}
			f.at(t, r, "13:00:00")
			if got := f.left(); got != c.left {
				t.Errorf("left are %s", got)
			}
			if got := f.ready(t); !strings.HasPrefix(got, c.ready) {
				t.Error(got)
			}
			for _, e := range f.entries { // kstatus goes on waiting for what may come by itself
				wrong := strings.HasPrefix(c.ready, "False BadMode") || strings.HasPrefix(c.ready, "False Invalid")
				if meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled) != wrong {
					t.Errorf("stalled is not %t: %+v", wrong, e.Status.Conditions)
				}
			}
			if len(f.whole) > 0 && f.whole[0] != c.whole {
				t.Errorf("objects are read whole: %v", f.whole[0])
			}
		})
	}
}

// A run that fails is made again, later each time, and then the schedule goes on.
func TestFailures(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	f.refuse["team/a"] = apierrors.NewInternalError(fmt.Errorf("no quorum"))
	f.at(t, r, "13:00:00")
	if got := f.left(); got != "acde" {
		t.Errorf("an object that cannot be deleted keeps others: left %s", got)
	}
	if got := f.ready(t); !strings.HasPrefix(got, "False Failed 1 1: deleting ConfigMap team/a: ") {
		t.Error(got)
	}
	f.at(t, r, "13:00:09")
	f.at(t, r, "13:00:10")
	f.at(t, r, "13:00:29")
	if runs := len(f.whole); runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
	f.at(t, r, "13:00:30")
	for i := range 200 { // many failures
		f.at(t, r, fmt.Sprintf("13:%02d:%02d", 1+i/4, i%4*15))
	}
	if runs := len(f.whole); runs != tries {
		t.Errorf("%d runs, want %d", runs, tries)
	}
	delete(f.refuse, "team/a")
	f.at(t, r, "14:00:00")
	if got := f.left() + " " + f.ready(t); !strings.HasPrefix(got, "cde True Scheduled 1 0") {
		t.Error(got)
	}
}

// A missing permission is said; it costs no other kind, and is not asked for again
// before the policy is due.
func TestForbidden(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	f.refuse["list"] = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", fmt.Errorf("no"))
	f.at(t, r, "13:00:00")
	f.at(t, r, "13:10:00")
	if got := f.ready(t); !strings.HasPrefix(got, "False Forbidden 0 1: a permission is missing") || len(f.whole) != 1 || len(f.events) != 1 {
		t.Error(got, len(f.whole), f.events)
	}
}

// An object that changes while it is about to be deleted is judged anew.
func TestConflict(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	f.changes["team/a"] = 1 // and is not old any more
	f.at(t, r, "13:00:00")
	if got := f.left() + " " + f.ready(t); !strings.HasPrefix(got, "acde True Scheduled 1 0") {
		t.Error(got)
	}
	f, r = newFake(t, cleaner(t, "", ""))
	f.changes["team/a"] = 100
	f.at(t, r, "13:00:00")
	if got := f.left() + " " + f.ready(t); !strings.HasPrefix(got, "acde False Failed 1 1") {
		t.Error(got)
	}
}

// Where Kyverno has run the policy, kvap that takes over does not do so again.
func TestTakingOver(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	_ = unstructured.SetNestedField(f.policies[0].Object, "2026-01-31T13:00:04Z", "status", "lastExecutionTime")
	f.at(t, r, "13:00:05")
	if got := f.left(); got != "abcde" {
		t.Errorf("left are %s", got)
	}
	f.at(t, r, "14:00:00")
	if got := f.left(); got != "cde" {
		t.Errorf("left are %s", got)
	}
}

// A run deletes no more than it may, says how many it leaves, and the next goes on.
func TestLimit(t *testing.T) {
	f, r := newFake(t, cleaner(t, "", ""))
	r.Limit = 1
	before := len(f.objects)
	for i := range 2 {
		f.now = f.now.Add(time.Hour)
		if err := r.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		var said string
		for _, e := range f.entries {
			said = e.Status.Conditions[0].Message
		}
		if left := strings.Contains(said, "1 more are over the limit"); before-len(f.objects) != i+1 || left != (i == 0) {
			t.Errorf("run %d: %d objects are gone; %s", i, before-len(f.objects), said)
		}
	}
}

// A namespace that is left out is not deleted either.
func TestExcludedNamespace(t *testing.T) {
	o := cleaner(t, "", "")
	o.Object["spec"].(map[string]any)["match"] = object(t, "any: [{resources: {kinds: [Namespace]}}]").Object
	f, r := newFake(t)
	run := newRun(Read(o, v1alpha1.ModeEnforce), nil, f, &interp.Offline{}, r.ExcludeNamespaces, false)
	for name, want := range map[string]bool{"kube-system": false, "team": true} {
		namespace := object(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+", uid: n}")
		if got, err := run.judged(t.Context(), Resource{}, namespace); got != want || err != nil {
			t.Errorf("%s: %t %v", name, got, err)
		}
	}
}
