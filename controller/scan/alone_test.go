package scan

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
)

// A report that was written though the answer told of an error, or got lost, is kvap's.
func TestAnswerThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		lost := false
		c.objects.PrependReactor("create", "policyreports", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if lost {
				return false, nil, nil
			}
			lost = true
			o := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
			if err := c.objects.Tracker().Create(policyReports, o, o.GetNamespace()); err != nil {
				t.Fatal(err)
			}
			return true, nil, apierrors.NewServerTimeout(policyReports.GroupResource(), "create", 1)
		})
		p := policiesOf(t, scanned)
		s := c.run(p)
		settle(time.Minute)
		wantReports(t, c, "uid-map")
		if problem, known := s.Problem(p.Compiled.Rules); problem != "" || !known {
			t.Errorf("the problem is %q, known is %t", problem, known)
		}
		c.put(configMaps, "a/map", set("me", "metadata", "labels", "owner"))
		settle(0)
		wantReports(t, c)
	})
}

// A report of the name that is somebody else's stays as it is.
func TestReportOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := reportOf("ConfigMap", "a", "map")
		theirs.SetLabels(nil)
		set([]any{}, "results")(theirs)
		c := newFakeCluster(t, theirs)
		c.put(configMaps, "a/map")
		c.run(policiesOf(t, scanned))
		settle(time.Hour)
		wantReports(t, c, "uid-map")
		if wrote := c.writes(); len(wrote) > 2 {
			t.Errorf("was written %d times", len(wrote))
		}
		r, err := c.objects.Resource(policyReports).Namespace("a").Get(t.Context(), "uid-map", metav1.GetOptions{})
		if err != nil || len(r.Object["results"].([]any)) != 0 {
			t.Errorf("it has become %v, %v", r, err)
		}
	})
}

// Where what a rule looks up cannot be read, objects that other rules are about are scanned, and the
// reports about those of the rule stay.
func TestLookupThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("Pod", "a", "pod"))
		c.put(configMaps, "a/map")
		c.put(pods, "a/pod")
		may := false
		c.objects.PrependReactor("get", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch {
			case action.(clienttesting.GetAction).GetName() != "allowed":
				return false, nil, nil
			case !may:
				return true, nil, forbidden(configMaps)
			}
			o := objectOf("ConfigMap", "z/allowed")
			set(map[string]any{"owner": "me"}, "data")(o)
			return true, o, nil
		})
		p := policiesOf(t, scanned+`
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: looks}
spec:
  rules:
    - name: allowed
      match: {any: [{resources: {kinds: [Pod]}}]}
      context: [{name: allowed, configMap: {namespace: z, name: allowed}}]
      validate: {message: Its owner is allowed., deny: {conditions: {all: [{key: "{{ allowed.data.owner }}", operator: NotEquals, value: me}]}}}
`)
		s := c.run(p)
		settle(0)
		wantReports(t, c, "uid-map", "uid-pod")
		if problem, _ := s.Problem(p.Compiled.Rules); !strings.Contains(problem, "z/allowed") || strings.Contains(problem, "pods cannot be read") {
			t.Errorf("the problem is %q", problem)
		}
		if problem, _ := s.Problem(p.Compiled.Rules[:1]); problem != "" {
			t.Errorf("the problem of the other policy is %q", problem)
		}
		may = true
		settle(time.Hour)
		wantReports(t, c, "uid-map")
		if problem, known := s.Problem(p.Compiled.Rules); problem != "" || !known {
			t.Errorf("the problem is %q, known is %t", problem, known)
		}
	})
}

// Where there are no reports about objects of the cluster, those in namespaces have theirs.
func TestReportsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.put(nodes, "node")
		c.refused[clusterReports] = apierrors.NewNotFound(clusterReports.GroupResource(), "")
		p := policiesOf(t, strings.Replace(scanned, "Secret", "Node", 1))
		s := c.run(p)
		settle(0)
		got, err := c.objects.Tracker().List(policyReports, policyReports.GroupVersion().WithKind("PolicyReport"), "")
		if err != nil || len(got.(*unstructured.UnstructuredList).Items) != 1 {
			t.Errorf("reports: %v, %v", got, err)
		}
		if problem, _ := s.Problem(p.Compiled.Rules); !strings.Contains(problem, "clusterpolicyreports") {
			t.Errorf("the problem is %q", problem)
		}
	})
}

// A definition of reports that is taken away is told.
func TestReportsThatAreNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.objects.PrependReactor("create", "policyreports", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource",
			}}
		})
		p := policiesOf(t, scanned)
		s := c.run(p)
		settle(0)
		if problem, _ := s.Problem(p.Compiled.Rules); !strings.Contains(problem, "a/map") {
			t.Errorf("the problem is %q", problem)
		}
	})
}

// An object that takes long to be judged keeps no other waiting.
func TestObjectThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		c, w := newFakeCluster(t), &countingWorld{slow: map[string]chan struct{}{"/counted/slow": slow}}
		c.put(configMaps, "a/slow")
		c.put(configMaps, "z/map")
		p := policiesOf(t, counted)
		p.World = w
		c.run(p)
		settle(0)
		wantReports(t, c, "uid-map")
		c.put(configMaps, "z/new")
		settle(0)
		wantReports(t, c, "uid-map", "uid-new")
		close(slow)
		settle(0)
		wantReports(t, c, "uid-map", "uid-new", "uid-slow")
	})
}

// A kind that may not be read is asked for less and less often, and its problem stays the same.
func TestKindThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.refused[secrets] = forbidden(secrets)
		told := 0
		s := c.run(policiesOf(t, scanned))
		settle(0)
		wantReports(t, c, "uid-map")
		s.problems.tell = func() { told++ }
		c.metadata.ClearActions()
		settle(time.Hour)
		asked := 0
		for _, action := range c.metadata.Actions() {
			if action.GetResource() == secrets {
				asked++
			}
		}
		if asked > 20 || told > 5 {
			t.Errorf("in an hour it was asked for %d times, and %d changes were told", asked, told)
		}
		c.refused[secrets] = nil
		c.put(secrets, "a/secret")
		settle(maxRetryDelay + time.Minute)
		wantReports(t, c, "uid-map", "uid-secret")
	})
}

// Objects that fail take turns, which are never further away than an hour; a page takes none.
func TestRetries(t *testing.T) {
	r := retries{workqueue.NewTypedItemExponentialFailureRateLimiter[task](minRetryDelay, maxRetryDelay), rate.NewLimiter(retriesPerSecond, 1)}
	for i := range 50000 {
		if got := r.When(task{uid: types.UID(strconv.Itoa(i))}); got > time.Hour {
			t.Fatalf("object %d waits %s", i, got)
		}
	}
	if got := r.When(task{name: "page"}); got != minRetryDelay {
		t.Errorf("a page waits %s", got)
	}
}
