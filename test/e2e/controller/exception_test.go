//go:build e2e

package controller

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// free excepts ConfigMaps of the name probe from a policy.
func free(namespace, annotation string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: free, namespace: %s, annotations: {%s}}
spec:
  exceptions: [{policyName: excepted, ruleNames: ["*"]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [probe]}}]}
`, namespace, annotation)
}

// expiresIn is long after the pass that a change starts: the exception expires by the
// clock, and nothing else happens then.
const expiresIn = 6 * time.Second

// An exception counts in a namespace that is trusted, until it expires; in another the
// policy is enforced all the same and tells of it.
func TestExceptions(t *testing.T) {
	options := enforcing()
	options.ExceptionNamespaces = []string{"kube-public"}
	shared.control(t, options)
	shared.apply(t, requires("excepted", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "excepted")
	ignored := func(n int) func() bool {
		return func() bool {
			return len(shared.translation(t, "excepted.clusterpolicies.kyverno.io").Status.IgnoredExceptions) == n
		}
	}
	shared.apply(t, free("default", ""))
	testcluster.Soon(t, "the policy tells of the exception", ignored(1))
	testcluster.Soon(t, "there is an event", func() bool { return shared.hasEvent(t, "excepted", "ExceptionIgnored") })
	if err := shared.tryCreate(t.Context(), nil); !apierrors.IsInvalid(err) {
		t.Errorf("by an exception that does not count: %v", err)
	}
	expires := func(in time.Duration) string {
		return controller.ExpiresKey + `: "` + time.Now().Add(in).UTC().Format(time.RFC3339) + `"`
	}
	shared.apply(t, free("kube-public", expires(time.Hour)))
	testcluster.Soon(t, "the exception counts", func() bool { return shared.tryCreate(t.Context(), nil) == nil })
	shared.apply(t, free("kube-public", expires(expiresIn)))
	testcluster.Soon(t, "the exception has expired", func() bool { return apierrors.IsInvalid(shared.tryCreate(t.Context(), nil)) })
	testcluster.Soon(t, "the policy tells of both", ignored(2))
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"}}
	if err := shared.Create(t.Context(), other); !apierrors.IsInvalid(err) {
		t.Errorf("what nothing excepts: %v", err)
	}
}
