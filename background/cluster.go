package background

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// A Cluster is what work reads and writes. Its errors are those of the API server,
// as package k8s.io/apimachinery/pkg/api/errors tells them apart.
type Cluster interface {
	interp.ObjectReader
	// Page is a part of what List gives, behind the one that gave from; next is empty for
	// the last. There may be any number of objects in all.
	Page(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector, from string) (objects []map[string]any, next string, err error)
	// Find is the object of a kind with a UID, for those whose name is not known. The
	// namespace is empty for kinds without.
	Find(ctx context.Context, apiVersion, kind, namespace string, uid types.UID) (object map[string]any, found bool, err error)
	// Create makes an object that is not there. Like Update and Apply it tells the
	// resource version that the object then has.
	Create(ctx context.Context, object map[string]any) (version string, err error)
	// Update puts an object in the place of the one with its resource version, at a
	// subresource if that is not empty.
	Update(ctx context.Context, object map[string]any, subresource string) (version string, err error)
	// Apply gives an object the fields of this one, by server-side apply, also those
	// that others have set.
	Apply(ctx context.Context, object map[string]any) (version string, err error)
	// Label gives an object labels, and takes those that are nil. Nothing is written
	// where that is so already.
	Label(ctx context.Context, object interp.ObjectReference, labels map[string]*string) error
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

// A Watcher tells of objects, by calling Seen of a Worker.
type Watcher interface {
	// Watch has these watched from now on, and nothing else.
	Watch(list []Watched)
}

// A Watched is a kind of objects whose changes are told of: those that were generated,
// or those that were copied.
type Watched struct {
	ObjectKind
	Namespace string // empty for all
	Sources   bool
}

// An ObjectKind is a kind of objects.
type ObjectKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// A Notice is what the readers of events are told of a policy.
type Notice struct {
	Policy  v1alpha1.PolicyReference
	Warning bool
	Reason  string
	Note    string
}
