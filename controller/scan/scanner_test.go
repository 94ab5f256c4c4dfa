package scan

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kvap/kvap/report"
)

const scanned = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap, Secret]}}]}
      validate: {message: It has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`

var (
	configMaps    = apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets       = apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	policyReports = apischema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}
)

// A fakeCluster is what a scanner is put before: lists and watches as the test says them,
// and reports that are kept.
type fakeCluster struct {
	t        *testing.T
	objects  *fakedynamic.FakeDynamicClient
	metadata *fakemetadata.FakeMetadataClient

	mu      sync.Mutex
	lists   []string // that were asked for: the resource and the token
	watches []string // that were asked for: the resource and the version
	pages   map[apischema.GroupVersionResource]func(token string) (*unstructured.UnstructuredList, error)
	streams map[apischema.GroupVersionResource]*watch.FakeWatcher // those that are open
}

func newFakeCluster(t *testing.T, reports ...runtime.Object) *fakeCluster {
	c := &fakeCluster{
		t: t, pages: map[apischema.GroupVersionResource]func(string) (*unstructured.UnstructuredList, error){},
		streams: map[apischema.GroupVersionResource]*watch.FakeWatcher{},
	}
	c.objects = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[apischema.GroupVersionResource]string{
		configMaps: "ConfigMapList", secrets: "SecretList", policyReports: "PolicyReportList",
		policyReports.GroupVersion().WithResource("clusterpolicyreports"): "ClusterPolicyReportList",
		{Version: "v1", Resource: "namespaces"}:                           "NamespaceList",
		{Group: "kvap.dev", Version: "v1alpha1", Resource: "params"}:      "ParamsList",
	}, reports...)
	c.objects.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get, page := action.(clienttesting.GetAction), c.pages[action.GetResource()]
		if page == nil {
			return false, nil, nil
		}
		list, err := page("")
		if err != nil {
			return true, nil, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.GetNamespace() == get.GetNamespace() && o.GetName() == get.GetName() {
				return true, o, nil
			}
		}
		return true, nil, apierrors.NewNotFound(get.GetResource().GroupResource(), get.GetName())
	})
	c.metadata = fakemetadata.NewSimpleMetadataClient(fakemetadata.NewTestScheme())
	c.metadata.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		asked := action.(clienttesting.WatchActionImpl)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches = append(c.watches, asked.GetResource().Resource+" "+asked.WatchRestrictions.ResourceVersion)
		c.streams[asked.GetResource()] = watch.NewFake()
		return true, c.streams[asked.GetResource()], nil
	})
	return c
}

// A paging client lists by pages, which the fake one does not.
type paging struct {
	dynamic.Interface
	cluster *fakeCluster
}

func (p paging) Resource(r apischema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return pagingResource{p.Interface.Resource(r), r, p.cluster}
}

type pagingResource struct {
	dynamic.NamespaceableResourceInterface
	resource apischema.GroupVersionResource
	cluster  *fakeCluster
}

func (p pagingResource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	c := p.cluster
	c.mu.Lock()
	page := c.pages[p.resource]
	if page != nil {
		c.lists = append(c.lists, strings.TrimSpace(p.resource.Resource+" "+o.Continue))
	}
	c.mu.Unlock()
	if page == nil {
		return p.NamespaceableResourceInterface.List(ctx, o)
	}
	return page(o.Continue)
}

type fakeDiscovery struct{ fakediscovery.FakeDiscovery }

func (fakeDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	verbs := metav1.Verbs{"list", "watch"}
	return []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}, {Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs},
	}}}, nil
}

var _ discovery.DiscoveryInterface = &fakeDiscovery{}

// run scans in the background until the test ends.
func (c *fakeCluster) run() *Scanner {
	s, err := newScanner(paging{c.objects, c}, c.metadata, &fakeDiscovery{}, Options{
		Report: report.ObjectOptions{Group: report.PolicyReports, Max: 10}, Every: 24 * time.Hour,
	}, logr.Discard())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Set(policiesOf(c.t, scanned))
	go func() { _ = s.Run(c.t.Context()) }()
	return s
}

// reports are the names of the reports that are there.
func (c *fakeCluster) reports() []string {
	list, err := c.objects.Resource(policyReports).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, r := range list.Items {
		out = append(out, r.GetName())
	}
	slices.Sort(out)
	return out
}

func (c *fakeCluster) asked() (lists, watches []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lists), slices.Sorted(slices.Values(c.watches))
}

// stream is the open watch of a resource.
func (c *fakeCluster) stream(r apischema.GroupVersionResource) *watch.FakeWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[r]
}

// page is a list, with the places of its objects.
func page(kind, version, next string, places ...string) *unstructured.UnstructuredList {
	out := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": version}}}
	if next != "" {
		out.SetContinue(next)
	}
	for _, place := range places {
		namespace, name, _ := strings.Cut(place, "/")
		out.Items = append(out.Items, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name, "uid": "uid-" + name, "resourceVersion": version},
		}})
	}
	return out
}

func always(list *unstructured.UnstructuredList) func(string) (*unstructured.UnstructuredList, error) {
	return func(string) (*unstructured.UnstructuredList, error) { return list.DeepCopy(), nil }
}

// reportOf is a report that is there.
func reportOf(kind, namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: report.ObjectReport(report.ScannedObject{
		APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, UID: "uid-" + name,
		Results: []report.ScanResult{{Policy: "owners", Rule: "owner", Result: "fail", Message: "validation error: It has an owner.", Scored: true}},
	}, report.ObjectOptions{Group: report.PolicyReports, Max: 10}, 7)}
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

// A report that may not be written, be it that its namespace is being deleted or that a
// policy denies it, is about one object: all others have theirs, and changes are scanned.
func TestReportThatMayNotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("ConfigMap", "z", "last"))
		c.pages[configMaps] = always(page("ConfigMap", "5", "", "closed/no", "going/no2", "z/last"))
		c.pages[secrets] = always(page("Secret", "5", "", "z/secret"))
		refused := 0
		c.objects.PrependReactor("create", "policyreports", func(action clienttesting.Action) (bool, runtime.Object, error) {
			err := apierrors.NewForbidden(policyReports.GroupResource(), "", nil)
			switch action.GetNamespace() {
			case "going":
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return true, nil, err
			case "closed":
				refused++
				return true, nil, err
			}
			return false, nil, nil
		})
		s := c.run()
		synctest.Wait()
		wantReports(t, c, "uid-last", "uid-secret")
		if _, watches := c.asked(); !slices.Equal(watches, []string{"configmaps 5", "secrets 5"}) {
			t.Errorf("watches: %v", watches)
		}
		if problem, _ := s.Problem(s.policies.Compiled.Rules); !strings.Contains(problem, "closed/no") {
			t.Errorf("the problem is %q", problem)
		}
		time.Sleep(time.Hour)
		if refused < 5 || refused > 20 {
			t.Errorf("the report was tried %d times in an hour", refused)
		}
		if lists, _ := c.asked(); len(lists) != 2 {
			t.Errorf("lists: %v; want one of each resource", lists)
		}
	})
}

// Reports about objects that cannot be read stay: a report goes only with its object.
func TestObjectsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("Secret", "a", "secret"), reportOf("ConfigMap", "a", "gone"), reportOf("Pod", "a", "unasked"))
		c.pages[configMaps] = always(page("ConfigMap", "5", "", "a/map"))
		may := false
		c.pages[secrets] = func(string) (*unstructured.UnstructuredList, error) {
			if !may {
				return nil, forbidden(secrets)
			}
			return page("Secret", "9", ""), nil
		}
		s := c.run()
		synctest.Wait()
		wantReports(t, c, "uid-map", "uid-secret")
		if problem, _ := s.Problem(s.policies.Compiled.Rules); !strings.HasPrefix(problem, "secrets cannot be read: ") {
			t.Errorf("the problem is %q", problem)
		}
		may = true
		time.Sleep(time.Hour)
		wantReports(t, c, "uid-map")
		if problem, _ := s.Problem(s.policies.Compiled.Rules); problem != "" {
			t.Errorf("the problem is %q", problem)
		}
	})
}

// A list of which the API server has forgotten the version goes on with the rest, and
// changes are followed from its first page on.
func TestListThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.pages[configMaps] = func(token string) (*unstructured.UnstructuredList, error) {
			switch token {
			case "":
				return page("ConfigMap", "5", "next", "a/one"), nil
			case "next":
				err := apierrors.NewResourceExpired("the token is too old")
				err.ErrStatus.Continue = "rest"
				return nil, err
			}
			return page("ConfigMap", "9", "", "a/two"), nil
		}
		c.pages[secrets] = always(page("Secret", "5", ""))
		c.run()
		synctest.Wait()
		wantReports(t, c, "uid-one", "uid-two")
		lists, watches := c.asked()
		if !slices.Equal(lists, []string{"configmaps", "configmaps next", "configmaps rest", "secrets"}) {
			t.Errorf("lists: %v", lists)
		}
		if !slices.Equal(watches, []string{"configmaps 5", "secrets 5"}) {
			t.Errorf("watches: %v", watches)
		}
	})
}

// A watch that ends goes on where it was; one that cannot has its resource read anew, and
// no other, and not at once again and again.
func TestWatchThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.pages[configMaps] = always(page("ConfigMap", "5", "", "a/map", "a/new"))
		c.pages[secrets] = always(page("Secret", "5", ""))
		c.run()
		synctest.Wait()
		c.stream(configMaps).Modify(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "new", UID: "uid-new", ResourceVersion: "7"}})
		synctest.Wait()
		wantReports(t, c, "uid-map", "uid-new")
		c.stream(configMaps).Stop()
		time.Sleep(10 * time.Second)
		lists, watches := c.asked()
		if len(lists) != 2 || !slices.Contains(watches, "configmaps 7") {
			t.Errorf("after a watch that ended: lists %v, watches %v", lists, watches)
		}
		for range 5 {
			c.stream(configMaps).Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
			time.Sleep(time.Minute)
		}
		lists, _ = c.asked()
		if !slices.Equal(lists, []string{"configmaps", "secrets", "configmaps", "configmaps", "configmaps", "configmaps", "configmaps"}) {
			t.Errorf("after versions that were too old: lists %v", lists)
		}
	})
}

// The report of an object goes with it; that of another of its name is another one.
func TestObjectThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.pages[configMaps] = always(page("ConfigMap", "5", "", "a/map"))
		c.pages[secrets] = always(page("Secret", "5", "", "a/secret"))
		c.run()
		synctest.Wait()
		c.pages[configMaps], c.pages[secrets] = always(page("ConfigMap", "6", "")), always(page("Secret", "6", "", "a/secret"))
		for at, name := range map[apischema.GroupVersionResource]string{configMaps: "map", secrets: "secret"} {
			c.stream(at).Delete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "uid-map", ResourceVersion: "6"}})
		}
		synctest.Wait()
		wantReports(t, c, "uid-secret")
	})
}
