package scan

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
)

var (
	configMaps     = apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets        = apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	pods           = apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes          = apischema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	namespaces     = apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	policyReports  = apischema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}
	clusterReports = apischema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "clusterpolicyreports"}
)

// A fakeCluster is what a scanner is put before. Its objects are what the test says;
// reports and Namespaces are those of a fake client.
type fakeCluster struct {
	t        *testing.T
	objects  *fakedynamic.FakeDynamicClient
	metadata *fakemetadata.FakeMetadataClient

	mu      sync.Mutex
	version int
	there   map[apischema.GroupVersionResource][]*unstructured.Unstructured
	refused map[apischema.GroupVersionResource]error // why they may not be listed or watched
	expire  string                                   // the token of a list of which the version is forgotten, once
	paged   int                                      // objects of a page, where not 0
	reads   []string                                 // what was asked of objects, but by watches
	looks   []string                                 // at metadata of all objects
	streams map[apischema.GroupVersionResource]*watch.FakeWatcher
	told    []string // of violations
}

func newFakeCluster(t *testing.T, reports ...runtime.Object) *fakeCluster {
	c := &fakeCluster{
		t: t, there: map[apischema.GroupVersionResource][]*unstructured.Unstructured{}, refused: map[apischema.GroupVersionResource]error{},
		streams: map[apischema.GroupVersionResource]*watch.FakeWatcher{}, version: 4,
	}
	c.objects = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[apischema.GroupVersionResource]string{
		configMaps: "ConfigMapList", secrets: "SecretList", pods: "PodList", nodes: "NodeList", policyReports: "PolicyReportList",
		clusterReports: "ClusterPolicyReportList", namespaces: "NamespaceList",
		{Group: "kvap.dev", Version: "v1alpha1", Resource: "params"}: "ParamsList",
	}, reports...)
	for _, name := range []string{"a", "z"} {
		c.namespace(name, nil)
	}
	c.objects.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get := action.(clienttesting.GetAction)
		if !isScanned(get.GetResource()) {
			return false, nil, nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads = append(c.reads, "get "+get.GetResource().Resource+" "+get.GetName())
		if i := c.find(get.GetResource(), get.GetNamespace(), get.GetName()); i >= 0 {
			return true, c.there[get.GetResource()][i].DeepCopy(), nil
		}
		return true, nil, apierrors.NewNotFound(get.GetResource().GroupResource(), get.GetName())
	})
	c.metadata = fakemetadata.NewSimpleMetadataClient(fakemetadata.NewTestScheme())
	c.metadata.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(c.version)}}
		if err := c.refused[action.GetResource()]; err != nil {
			return true, nil, err
		}
		c.looks = append(c.looks, action.GetResource().Resource)
		for _, o := range c.there[action.GetResource()] {
			list.Items = append(list.Items, runtime.RawExtension{Object: metadataOf(o)})
		}
		return true, list, nil
	})
	c.metadata.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		asked := action.(clienttesting.WatchActionImpl)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.refused[asked.GetResource()]; err != nil {
			return true, nil, err
		}
		c.streams[asked.GetResource()] = watch.NewFakeWithChanSize(1000, false)
		return true, c.streams[asked.GetResource()], nil
	})
	return c
}

// isScanned tells of the resources of which the test says what is there.
func isScanned(r apischema.GroupVersionResource) bool {
	return slices.Contains([]apischema.GroupVersionResource{configMaps, secrets, pods, nodes}, r)
}

func (c *fakeCluster) find(r apischema.GroupVersionResource, namespace, name string) int {
	return slices.IndexFunc(c.there[r], func(o *unstructured.Unstructured) bool { return o.GetNamespace() == namespace && o.GetName() == name })
}

// namespace makes a Namespace, or changes its labels.
func (c *fakeCluster) namespace(name string, labels map[string]string) {
	o := objectOf("Namespace", name)
	o.SetLabels(labels)
	at := c.objects.Resource(namespaces)
	if _, err := at.Update(c.t.Context(), o, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := at.Create(c.t.Context(), o, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// put makes objects, or changes them; edits say what is changed.
func (c *fakeCluster) put(r apischema.GroupVersionResource, place string, edits ...func(*unstructured.Unstructured)) {
	kind := map[apischema.GroupVersionResource]string{configMaps: "ConfigMap", secrets: "Secret", pods: "Pod", nodes: "Node"}[r]
	o := objectOf(kind, place)
	c.mu.Lock()
	defer c.mu.Unlock()
	i, event := c.find(r, o.GetNamespace(), o.GetName()), watch.Added
	if i >= 0 {
		o, event = c.there[r][i].DeepCopy(), watch.Modified
	}
	for _, edit := range edits {
		edit(o)
	}
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	if i >= 0 {
		c.there[r][i] = o
	} else {
		c.there[r] = append(c.there[r], o)
	}
	if stream := c.streams[r]; stream != nil && !stream.IsStopped() {
		stream.Action(event, metadataOf(o))
	}
}

// remove removes an object.
func (c *fakeCluster) remove(r apischema.GroupVersionResource, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(r, namespace, name)
	o := c.there[r][i]
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	c.there[r] = slices.Delete(c.there[r], i, i+1)
	if stream := c.streams[r]; stream != nil && !stream.IsStopped() {
		stream.Action(watch.Deleted, metadataOf(o))
	}
}

// end ends the watch of a resource, with an error if there is one.
func (c *fakeCluster) end(r apischema.GroupVersionResource, status *metav1.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stream := c.streams[r]
	c.streams[r] = nil
	if status != nil {
		stream.Error(status)
	} else {
		stream.Stop()
	}
}

// objectOf is an object at a place, namespace/name.
func objectOf(kind, place string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{}}}
	namespace, name, ok := strings.Cut(place, "/")
	if !ok {
		namespace, name = "", place
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetResourceVersion("1")
	return o
}

func metadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Generation: o.GetGeneration(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
	}}
}

// A paging client lists by pages, which the fake one does not.
type paging struct {
	dynamic.Interface
	cluster *fakeCluster
}

func (p paging) Resource(r apischema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return pagingResource{p.Interface.Resource(r), r, p.cluster}
}

// IsWatchListSemanticsUnSupported is for informers, as of the fake client.
func (paging) IsWatchListSemanticsUnSupported() bool { return true }

type pagingResource struct {
	dynamic.NamespaceableResourceInterface
	resource apischema.GroupVersionResource
	cluster  *fakeCluster
}

func (p pagingResource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	c := p.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refused[p.resource]; err != nil {
		return nil, err
	}
	if !isScanned(p.resource) {
		return p.NamespaceableResourceInterface.List(ctx, o)
	}
	c.reads = append(c.reads, strings.TrimSpace("list "+p.resource.Resource+" "+o.Continue))
	if o.Continue != "" && o.Continue == c.expire {
		c.expire = ""
		err := apierrors.NewResourceExpired("the token is too old")
		err.ErrStatus.Continue = o.Continue + "'"
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(c.version)}}}
	from, _ := strconv.Atoi(strings.TrimSuffix(o.Continue, "'"))
	for i, object := range c.there[p.resource][from:] {
		if c.paged != 0 && i == c.paged {
			list.SetContinue(strconv.Itoa(from + i))
			break
		}
		list.Items = append(list.Items, *object.DeepCopy())
	}
	return list, nil
}

type fakeDiscovery struct{ fakediscovery.FakeDiscovery }

func (fakeDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	verbs := metav1.Verbs{"list", "watch"}
	return []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}, {Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs},
		{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: verbs}, {Name: "nodes", Kind: "Node", Verbs: verbs},
	}}}, nil
}

var _ discovery.DiscoveryInterface = &fakeDiscovery{}

// run scans by policies in the background until the test ends.
func (c *fakeCluster) run(p Policies) *Scanner {
	return c.runFor(c.t.Context(), p)
}

func (c *fakeCluster) runFor(ctx context.Context, p Policies) *Scanner {
	s, err := newScanner(paging{c.objects, c}, c.metadata, &fakeDiscovery{}, Options{
		Report: report.ObjectOptions{Group: report.PolicyReports, List: []string{"error", "warn"}, Max: 10}, Every: 24 * time.Hour,
		Tell: func(f Finding) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told = append(c.told, fmt.Sprintf("%s/%s %s %s/%s %s", f.Object.Namespace, f.Object.Name, f.Result.Kind, f.Result.Policy, f.Result.Rule, f.Result.Result))
		},
	}, logr.Discard())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Set(p)
	go func() { _ = s.Run(ctx) }()
	return s
}

// settle waits until nothing is to be done any more but later.
func settle(d time.Duration) { time.Sleep(d + 5*time.Second) }

// reports are the names of the reports that are there.
func (c *fakeCluster) reports() (out []string) {
	for _, resource := range []apischema.GroupVersionResource{policyReports, clusterReports} {
		list, err := c.objects.Resource(resource).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range list.Items {
			out = append(out, r.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// writes are the reports that were written since the last question.
func (c *fakeCluster) writes() (out []string) {
	for _, action := range c.objects.Actions() {
		if verb := action.GetVerb(); strings.HasSuffix(action.GetResource().Resource, "policyreports") && verb != "list" && verb != "watch" && verb != "get" {
			out = append(out, fmt.Sprintf("%s %s", verb, action.GetResource().Resource))
		}
	}
	c.objects.ClearActions()
	return out
}

// asked is what was read of objects since the last question.
func (c *fakeCluster) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.reads
	c.reads = nil
	return out
}

// reportOf is a report that is there.
func reportOf(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: report.ObjectReport(report.ScannedObject{
		APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, UID: "uid-" + name,
		Results: []report.ScanResult{{Policy: "owners", Rule: "owner", Result: "fail", Message: "validation error: It has an owner.", Scored: true}},
	}, report.ObjectOptions{Group: report.PolicyReports, Max: 10}, 7)}
	return o
}

func wantReports(t *testing.T, c *fakeCluster, want ...string) {
	t.Helper()
	if got := c.reports(); !slices.Equal(got, want) {
		t.Errorf("reports about %v; want %v", got, want)
	}
}

func forbidden(resource apischema.GroupVersionResource) error {
	return apierrors.NewForbidden(resource.GroupResource(), "", nil)
}

// A countingWorld counts what rules ask the API server, and answers nothing.
type countingWorld struct {
	interp.Offline
	mu     sync.Mutex
	counts map[string]int
	slow   map[string]chan struct{} // paths that are not answered before
}

func (w *countingWorld) API(_ context.Context, path string, _ []byte) ([]byte, error) {
	w.mu.Lock()
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	w.counts[path]++
	slow := w.slow[path]
	w.mu.Unlock()
	if slow != nil {
		<-slow
	}
	return []byte(`{"items": []}`), nil
}

// judged is how often an object was judged since the last question.
func (w *countingWorld) judged(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.counts["/counted/"+name]
	delete(w.counts, "/counted/"+name)
	return n
}
