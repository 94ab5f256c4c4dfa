package live

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/background"
)

// Requests are the GenerateRequests of a namespace, which is kvap's own.
type Requests struct {
	client    client.Client
	namespace string
}

var _ background.Requests = (*Requests)(nil)

// Get implements background.Requests.
func (r *Requests) Get(ctx context.Context, name string) (*v1alpha1.GenerateRequest, error) {
	out := &v1alpha1.GenerateRequest{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// Create implements background.Requests.
func (r *Requests) Create(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	one = one.DeepCopy()
	one.Namespace = r.namespace
	err := r.client.Create(ctx, one)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// SetStatus implements background.Requests.
func (r *Requests) SetStatus(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	return r.client.Status().Update(ctx, one)
}

// Delete implements background.Requests.
func (r *Requests) Delete(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	return client.IgnoreNotFound(r.client.Delete(ctx, one, client.Preconditions{UID: &one.UID}))
}
