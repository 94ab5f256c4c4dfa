package interp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// A World is what a rule can ask about besides the request: other objects,
// services, registries, time and chance. Judging never reaches outside but
// through it. Its methods are called by several goroutines at once if Judge is.
//
// Values are JSON as Go data. An object that does not exist is an error; the rule
// that needs it errs.
type World interface {
	// ConfigMap is a ConfigMap as an object.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error)
	// API asks the API server for a path; data, if not nil, is POSTed. The error is
	// ErrNotFound for an object that is known not to exist.
	API(ctx context.Context, path string, data []byte) ([]byte, error)
	// Service asks a service outside the API server. An answer of any status is not an error.
	Service(ctx context.Context, call ServiceCall) (ServiceAnswer, error)
	// Image is what a registry knows of an image: image, resolvedImage, registry,
	// repository, identifier, manifestList, manifest, configData.
	Image(ctx context.Context, reference string, with Access) (map[string]any, error)
	// Registry tells what is proven of images; nil where there is none.
	Registry() Registry
	// Global is the data of a GlobalContextEntry; the name may end in .projection. The
	// error is ErrNotFound where there is known to be no such entry.
	Global(ctx context.Context, name string) (any, error)
	// Namespace is a Namespace as an object.
	Namespace(ctx context.Context, name string) (map[string]any, error)
	// Params are the objects of a kind that a paramRef selects: the one with the
	// name if there is a name, else those that the selector selects. None is no
	// error.
	Params(ctx context.Context, apiVersion, kind, namespace, name string, selector *metav1.LabelSelector) ([]map[string]any, error)
	// Resource is the resource of a kind, as the API server has it in paths.
	Resource(ctx context.Context, apiVersion, kind string) (string, error)
	// Kind is the kind of a resource; ok is false if it is not known.
	Kind(group, version, resource string) (kind string, ok bool)
	// Authorizer answers the authorizer checks of CEL rules.
	Authorizer() authorizer.UnconditionalAuthorizer
	// Resolve finds the addresses of a host.
	Resolve(ctx context.Context, host string) ([]netip.Addr, error)
	// Now is the time.
	Now() time.Time
	// Random is a number below n.
	Random(n int) int
}

// ErrNotFound is the error of what is known not to exist, which is an error for patterns
// and null for CEL.
var ErrNotFound = errors.New("it does not exist")

// A ServiceAnswer is what a service says.
type ServiceAnswer struct {
	Status int
	Body   []byte
	// Mocked tells of an answer that a suite gives. The CEL of Kyverno's command line has its
	// body under body, where that of a cluster is the value itself.
	Mocked bool
}

// Success is the body of an answer, or an error where its status is one.
func (a ServiceAnswer) Success() ([]byte, error) {
	if a.Status/100 != 2 {
		return nil, fmt.Errorf("HTTP %d %s", a.Status, http.StatusText(a.Status))
	}
	return a.Body, nil
}

// A ServiceCall is a request to a service.
type ServiceCall struct {
	Method   string // GET or POST
	URL      string
	Headers  map[string]string
	CABundle string
	Data     []byte // of a POST
}
