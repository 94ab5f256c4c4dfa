package scan

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
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

// A report that may not be written, be it that its namespace is being deleted or that a
// policy denies it, is about one object: all others have theirs, and changes are scanned.
func TestReportThatMayNotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("ConfigMap", "z", "last"))
		for _, name := range []string{"closed", "going"} {
			c.namespace(name, nil)
		}
		c.put(configMaps, "closed/no")
		c.put(configMaps, "going/no2")
		c.put(configMaps, "z/last")
		c.put(secrets, "z/secret")
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
		p := policiesOf(t, scanned)
		s := c.run(p)
		settle(0)
		wantReports(t, c, "uid-last", "uid-secret")
		if problem, _ := s.Problem(p.Compiled.Rules); !strings.Contains(problem, "closed/no") || strings.Contains(problem, "cannot be read") {
			t.Errorf("the problem is %q", problem)
		}
		settle(time.Hour)
		if refused < 5 || refused > 20 {
			t.Errorf("the report was tried %d times in an hour", refused)
		}
		c.put(configMaps, "z/new")
		settle(0)
		wantReports(t, c, "uid-last", "uid-new", "uid-secret")
		lists := slices.DeleteFunc(c.asked(), func(read string) bool { return !strings.HasPrefix(read, "list") })
		if slices.Sort(lists); !slices.Equal(lists, []string{"list configmaps", "list secrets"}) {
			t.Errorf("lists: %v; want one of each resource", lists)
		}
	})
}

// Reports about objects that cannot be read stay: a report goes only with its object.
func TestObjectsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("Secret", "a", "secret"), reportOf("ConfigMap", "a", "gone"), reportOf("Pod", "a", "unasked"))
		c.put(configMaps, "a/map")
		c.refused[secrets] = forbidden(secrets)
		p := policiesOf(t, scanned)
		s := c.run(p)
		settle(0)
		wantReports(t, c, "uid-map", "uid-secret")
		if problem, _ := s.Problem(p.Compiled.Rules); !strings.HasPrefix(problem, "secrets cannot be read: ") {
			t.Errorf("the problem is %q", problem)
		}
		c.mu.Lock()
		delete(c.refused, secrets)
		c.mu.Unlock()
		settle(time.Hour)
		wantReports(t, c, "uid-map")
		if problem, known := s.Problem(p.Compiled.Rules); problem != "" || !known {
			t.Errorf("the problem is %q, known is %t", problem, known)
		}
	})
}

// A list of which the API server has forgotten the version goes on with the rest.
func TestListThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/one")
		c.put(configMaps, "a/two")
		c.put(configMaps, "a/three")
		c.paged, c.expire = 1, "1"
		c.run(policiesOf(t, scanned))
		settle(0)
		wantReports(t, c, "uid-one", "uid-three", "uid-two")
		lists := slices.DeleteFunc(c.asked(), func(read string) bool { return !strings.HasPrefix(read, "list configmaps") })
		if !slices.Equal(lists, []string{"list configmaps", "list configmaps 1", "list configmaps 1'", "list configmaps 2"}) {
			t.Errorf("lists: %v", lists)
		}
	})
}

// A watch that ends costs nothing but another watch, and one of a version that is forgotten
// another look at metadata: what has not changed is not read, nor judged.
func TestWatchThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.put(secrets, "a/secret")
		c.run(policiesOf(t, scanned))
		settle(0)
		c.put(configMaps, "a/new")
		settle(0)
		wantReports(t, c, "uid-map", "uid-new", "uid-secret")
		c.asked()
		c.end(configMaps, nil)
		settle(time.Minute)
		if asked := c.asked(); len(asked) != 0 {
			t.Errorf("after a watch that ended was read %v", asked)
		}
		for range 5 {
			c.end(configMaps, &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
			settle(time.Minute)
		}
		if asked := c.asked(); len(asked) != 0 {
			t.Errorf("after versions that were too old was read %v", asked)
		}
		if !slices.Equal(c.looks, []string{"configmaps", "secrets", "configmaps", "configmaps", "configmaps", "configmaps", "configmaps"}) &&
			!slices.Equal(c.looks, []string{"secrets", "configmaps", "configmaps", "configmaps", "configmaps", "configmaps", "configmaps"}) {
			t.Errorf("metadata was listed of %v", c.looks)
		}
		c.end(configMaps, &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		c.put(configMaps, "a/meanwhile")
		settle(time.Minute)
		if asked := c.asked(); !slices.Equal(asked, []string{"get configmaps meanwhile"}) {
			t.Errorf("of what has changed meanwhile was read %v", asked)
		}
		wantReports(t, c, "uid-map", "uid-meanwhile", "uid-new", "uid-secret")
	})
}

// The report of an object goes with it; that of another of its name is another one.
func TestObjectThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.put(secrets, "a/secret")
		c.run(policiesOf(t, scanned))
		settle(0)
		c.remove(configMaps, "a", "map")
		settle(0)
		wantReports(t, c, "uid-secret")
	})
}
