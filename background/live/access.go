package live

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/background"
)

// Access asks the API server what this process may do.
func Access(config *rest.Config, c *Client) (background.May, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, verb string, k background.ObjectKind, namespace string) (bool, error) {
		kind := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
		at, err := c.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case apimeta.IsNoMatchError(err):
			return true, nil // nothing of it can be made, which is another failure
		case err != nil:
			return false, err
		}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: at.Resource.Group, Version: at.Resource.Version, Resource: at.Resource.Resource,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}, nil
}
