package background

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// A Cluster is what work reads and writes. Its errors are those of the API server,
// as package k8s.io/apimachinery/pkg/api/errors tells them apart.
type Cluster interface {
	interp.Objects
	// Find is the object of a kind with a UID, for those whose name is not known. The
	// namespace is empty for kinds without.
	Find(ctx context.Context, apiVersion, kind, namespace string, uid types.UID) (object map[string]any, found bool, err error)
	// Create makes an object that is not there.
	Create(ctx context.Context, object map[string]any) error
	// Update puts an object in the place of the one with its resource version, at a
	// subresource if that is not empty.
	Update(ctx context.Context, object map[string]any, subresource string) error
	// Apply gives an object the fields of this one, by server-side apply, also those
	// that others have set.
	Apply(ctx context.Context, object map[string]any) error
	// Label gives an object a label.
	Label(ctx context.Context, object interp.ObjectReference, key, value string) error
	// Delete removes an object, if it still has the UID of this one.
	Delete(ctx context.Context, object map[string]any) error
}

// Requests are the GenerateRequests of the cluster.
type Requests interface {
	// Get finds a request; nil comes back where it is gone.
	Get(ctx context.Context, name string) (*v1alpha1.GenerateRequest, error)
	// Create makes a request, unless it is there.
	Create(ctx context.Context, r *v1alpha1.GenerateRequest) error
	// SetStatus writes the status.
	SetStatus(ctx context.Context, r *v1alpha1.GenerateRequest) error
	// Delete removes a request whose work is done.
	Delete(ctx context.Context, r *v1alpha1.GenerateRequest) error
}

// A Notice is what the readers of events are told of a policy.
type Notice struct {
	Policy  v1alpha1.PolicyReference
	Warning bool
	Reason  string
	Note    string
}
