package cleanup

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakekube "k8s.io/client-go/kubernetes/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// While nothing changes of what kvap may do, it asks once a minute, and not about each
// resource. A permission that is granted counts within a minute.
func TestAccessReviewsAtRest(t *testing.T) {
	for _, incomplete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kube := fakekube.NewClientset()
			granted := []authorizationv1.ResourceRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}, {Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"*"}},
			}
			reviews := 0
			kube.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				reviews++
				slices.Reverse(granted) // the order is not told
				return true, &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: granted, Incomplete: incomplete}}, nil
			})
			may := false
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				reviews++
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: may}}, nil
			})
			var resources []metav1.APIResource
			for _, name := range []string{"pods", "services", "secrets", "configmaps", "endpoints", "podtemplates", "limitranges"} {
				resources = append(resources, metav1.APIResource{Name: name, Kind: name, Namespaced: true, Verbs: metav1.Verbs{"delete", "list", "watch"}})
			}
			discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: resources}}}}
			w := &watcher{
				live: &liveCluster{served: &served{client: discovery, now: time.Now}, metadata: fakemetadata.NewSimpleMetadataClient(fakemetadata.NewTestScheme())},
				kube: kube, log: logr.Discard(), watched: map[schema.GroupVersionResource]*watched{},
			}
			minutes := func(n int) int {
				before := reviews
				for range n {
					time.Sleep(renewEvery)
					w.renew(t.Context())
				}
				return reviews - before
			}
			minutes(1)
			want := 20
			if incomplete {
				want += 2 * len(resources)
			}
			if got := minutes(20); got > want {
				t.Errorf("incomplete %t: %d reviews in 20 minutes; want %d", incomplete, got, want)
			}
			may, granted = true, append(granted, authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
			if minutes(1); len(w.watched) != len(resources) {
				t.Errorf("incomplete %t: %d resources are watched that may be", incomplete, len(w.watched))
			}
		})
	}
}
