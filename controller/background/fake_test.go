package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A fakeCluster holds objects as a cluster does, by kind and name.
type fakeCluster struct {
	objects map[string]map[string]any
	refuse  map[string]error // by verb and kind
	log     []string         // what was written
	// meanwhile is done by somebody else when an object is about to be created or updated,
	// and beforeLabel when one is about to be labelled.
	meanwhile, beforeLabel func()
	version                int
}

func (c *fakeCluster) key(apiVersion, kind, namespace, name string) string {
	return apiVersion + " " + kind + " " + namespace + "/" + name
}

func (c *fakeCluster) keyOf(object map[string]any) string {
	at := referenceOf(object)
	return c.key(at.APIVersion, at.Kind, at.Namespace, at.Name)
}

func (c *fakeCluster) wrote(verb string, object map[string]any) error {
	at := referenceOf(object)
	if err := c.refuse[verb+" "+at.Kind]; err != nil {
		return err
	}
	c.log = append(c.log, fmt.Sprintf("%s %s %s/%s", verb, at.Kind, at.Namespace, at.Name))
	return nil
}

// store keeps an object as the API server would.
func (c *fakeCluster) store(object map[string]any) {
	c.version++
	object = maps.Clone(object)
	meta := maps.Clone(object["metadata"].(map[string]any))
	meta["resourceVersion"] = strconv.Itoa(c.version)
	if meta["uid"] == nil {
		meta["uid"] = "made-" + strconv.Itoa(c.version)
	}
	object["metadata"] = meta
	c.objects[c.keyOf(object)] = object
}

func (c *fakeCluster) Namespaced(_ context.Context, _, kind string) (bool, error) {
	return kind != "Namespace" && !strings.HasPrefix(kind, "Cluster"), nil
}

func (c *fakeCluster) Get(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, bool, error) {
	object, found := c.objects[c.key(apiVersion, kind, namespace, name)]
	return object, found, c.refuse["get "+kind]
}

func (c *fakeCluster) Find(_ context.Context, apiVersion, kind, namespace string, uid types.UID) (map[string]any, bool, error) {
	for _, o := range c.objects {
		if at := referenceOf(o); at.APIVersion == apiVersion && at.Kind == kind && at.Namespace == namespace && at.UID == uid {
			return o, true, nil
		}
	}
	return nil, false, nil
}

func (c *fakeCluster) List(_ context.Context, apiVersion, kind, namespace string, selector labels.Selector) (out []map[string]any, err error) {
	for _, o := range c.objects {
		at := referenceOf(o)
		set := labels.Set{}
		own, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		for k, v := range own {
			set[k], _ = v.(string)
		}
		if at.APIVersion == apiVersion && at.Kind == kind && (namespace == "" || namespace == at.Namespace) && selector.Matches(set) {
			out = append(out, o)
		}
	}
	return out, c.refuse["list "+kind]
}

// Page gives two objects at a time.
func (c *fakeCluster) Page(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector, from string) ([]map[string]any, string, error) {
	all, err := c.List(ctx, apiVersion, kind, namespace, selector)
	slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(c.keyOf(a), c.keyOf(b)) })
	all = slices.DeleteFunc(all, func(o map[string]any) bool { return c.keyOf(o) <= from })
	if err != nil || len(all) <= 2 {
		return all, "", err
	}
	return all[:2], c.keyOf(all[1]), nil
}

// once does what is set, once.
func once(act *func()) {
	if do := *act; do != nil {
		*act = nil
		do()
	}
}

func (c *fakeCluster) Create(_ context.Context, object map[string]any) (string, error) {
	once(&c.meanwhile)
	if c.objects[c.keyOf(object)] != nil {
		return "", apierrors.NewAlreadyExists(schema.GroupResource{}, metaText(object, "name"))
	}
	if err := c.wrote("create", object); err != nil {
		return "", err
	}
	c.store(object)
	return strconv.Itoa(c.version), nil
}

func (c *fakeCluster) Update(_ context.Context, object map[string]any, _ string) (string, error) {
	once(&c.meanwhile)
	if have := c.objects[c.keyOf(object)]; metaText(have, "resourceVersion") != metaText(object, "resourceVersion") {
		return "", apierrors.NewConflict(schema.GroupResource{}, metaText(object, "name"), errors.New("it has changed"))
	}
	if err := c.wrote("update", object); err != nil {
		return "", err
	}
	c.store(object)
	return strconv.Itoa(c.version), nil
}

func (c *fakeCluster) Apply(_ context.Context, object map[string]any) (string, error) {
	if err := c.wrote("apply", object); err != nil {
		return "", err
	}
	c.store(object)
	return strconv.Itoa(c.version), nil
}

func (c *fakeCluster) Label(_ context.Context, at interp.ObjectReference, change map[string]*string) error {
	once(&c.beforeLabel)
	object := c.objects[c.key(at.APIVersion, at.Kind, at.Namespace, at.Name)]
	if object == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, at.Name)
	}
	own, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
	next := maps.Clone(own)
	if next == nil {
		next = map[string]any{}
	}
	for key, value := range change {
		delete(next, key)
		if value != nil {
			next[key] = *value
		}
	}
	if maps.Equal(own, next) {
		return nil
	}
	if err := c.wrote("label", object); err != nil {
		return err
	}
	object = maps.Clone(object)
	meta := maps.Clone(object["metadata"].(map[string]any))
	meta["labels"], object["metadata"] = next, meta
	c.store(object)
	return nil
}

func (c *fakeCluster) Delete(_ context.Context, object map[string]any) error {
	if err := c.wrote("delete", object); err != nil {
		return err
	}
	delete(c.objects, c.keyOf(object))
	return nil
}

// fakeRequests holds GenerateRequests.
type fakeRequests map[string]*v1alpha1.GenerateRequest

func (f fakeRequests) Get(_ context.Context, name string) (*v1alpha1.GenerateRequest, error) {
	return f[name], nil
}

func (f fakeRequests) Create(_ context.Context, r *v1alpha1.GenerateRequest) error {
	if f[r.Name] == nil {
		f[r.Name] = r
	}
	return nil
}

func (f fakeRequests) SetStatus(_ context.Context, r *v1alpha1.GenerateRequest) error {
	f[r.Name] = r
	return nil
}

func (f fakeRequests) Delete(_ context.Context, r *v1alpha1.GenerateRequest) error {
	delete(f, r.Name)
	return nil
}

// A fakeWorld reads the objects of a cluster.
type fakeWorld struct {
	*interp.Offline

	cluster *fakeCluster
}

func (w *fakeWorld) API(ctx context.Context, path string, data []byte) ([]byte, error) {
	now := &interp.Offline{Objects: slices.Collect(maps.Values(w.cluster.objects)), Plural: pluralOf, Complete: true}
	return now.API(ctx, path, data)
}

func pluralOf(_, kind string) string { return strings.ToLower(kind) + "s" }

// A bench is a worker with all that is around it.
type bench struct {
	*Worker
	t        *testing.T
	cluster  *fakeCluster
	requests fakeRequests
	now      time.Time
	told     []Notice
	applied  []Applied
}

// start is a worker with policies, in a cluster with objects.
func start(t *testing.T, policies string, objects ...string) *bench {
	t.Helper()
	b := &bench{t: t, cluster: &fakeCluster{objects: map[string]map[string]any{}, refuse: map[string]error{}}, requests: fakeRequests{}, now: time.Unix(1e9, 0)}
	for _, text := range objects {
		b.cluster.store(object(t, text))
	}
	b.Worker = New(Options{
		Cluster: b.cluster, Requests: b.requests, World: &fakeWorld{Offline: &interp.Offline{Plural: pluralOf}, cluster: b.cluster}, Now: func() time.Time { return b.now },
		Records: &memoryStore{}, Kinds: noKinds, Resources: noKinds,
		Tell: func(n Notice) { b.told = append(b.told, n) }, Applied: func(a Applied) { b.applied = append(b.applied, a) },
	})
	b.Set(setOf(t, policies))
	return b
}

func setOf(t *testing.T, text string) PolicySet {
	t.Helper()
	f, ds := policy.Parse("policies.yaml", []byte(text))
	var out PolicySet
	for _, p := range f.Policies {
		if p.Invalid {
			t.Fatal(ds)
		}
		group, _, _ := strings.Cut(p.APIVersion, "/")
		out.Policies = append(out.Policies, Policy{Policy: p, Of: v1alpha1.PolicyReference{Group: group, Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, UID: "p"}})
	}
	return out
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// asked has a request start the work of all rules that it triggers, as the webhook
// does, and is the names of the GenerateRequests.
func (b *bench) asked(operation string, object, old map[string]any) []string {
	b.t.Helper()
	subject := object
	if subject == nil {
		subject = old
	}
	at := referenceOf(subject)
	kind := schema.FromAPIVersionAndKind(at.APIVersion, at.Kind)
	request := &interp.Request{NamespaceLabels: map[string]string{}, Admission: map[string]any{
		"uid": "review", "operation": operation, "name": at.Name, "kind": map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
		"userInfo": map[string]any{"username": "alice"},
		"resource": map[string]any{"group": kind.Group, "version": kind.Version, "resource": pluralOf(at.APIVersion, at.Kind)},
	}}
	if at.Namespace != "" {
		request.Admission["namespace"] = at.Namespace
	}
	if object != nil {
		request.Admission["object"] = object
	}
	if old != nil {
		request.Admission["oldObject"] = old
	}
	var names []string
	for _, p := range b.current.Load().policies {
		for _, t := range p.engine.GenerateTriggers(b.t.Context(), request) {
			if t.Action != "" {
				names = append(names, b.keep(Trigger{
					Type: v1alpha1.GenerateObjects, Policy: p.Of, Rule: t.Rule, Delete: t.Action == interp.DeleteTargets, Object: t.Trigger, Request: request,
				}))
			}
		}
		for _, t := range p.engine.Triggered(b.t.Context(), request) {
			if t.Status == interp.Pass {
				names = append(names, b.keep(Trigger{Type: v1alpha1.MutateExisting, Policy: p.Of, Rule: t.Rule, Object: subject, Request: request}))
			}
		}
	}
	return names
}

// keep keeps what a request starts, and is the name of the GenerateRequest.
func (b *bench) keep(t Trigger) string {
	b.t.Helper()
	r, err := Capture(t)
	if err != nil {
		b.t.Fatal(err)
	}
	r.CreationTimestamp.Time = b.now
	b.requests[r.Name] = r
	return r.Name
}

// stored is an object of the cluster; nil where there is none.
func (b *bench) stored(apiVersion, kind, namespace, name string) map[string]any {
	return b.cluster.objects[b.cluster.key(apiVersion, kind, namespace, name)]
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// requestWith is a request that deletes an object.
func requestWith(old map[string]any) *interp.Request {
	return &interp.Request{Admission: map[string]any{"uid": "u", "operation": "DELETE", "oldObject": old}}
}

// doRequest carries a GenerateRequest out.
func (b *bench) doRequest(ctx context.Context, name string) time.Duration {
	return requestTask(name).do(ctx, b.Worker)
}

func noKinds(string, string, string) []v1alpha1.KindReference { return nil }

// memoryStore is a RecordStore that ends with the process.
type memoryStore struct{ all []RuleRecord }

// Load implements RecordStore.
func (m *memoryStore) Load(context.Context) ([]RuleRecord, error) { return m.all, nil }

// Save implements RecordStore.
func (m *memoryStore) Save(_ context.Context, all []RuleRecord) error {
	m.all = all
	return nil
}
