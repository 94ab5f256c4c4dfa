package scan

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/compile"
)

// A Look reads the objects of a cluster that policies are about, once and by pages,
// for those who judge them in another way.
type Look struct {
	scanner  *Scanner
	policies Policies
	unread   []*compile.Rule
}

// Unread are the rules about objects that were passed over.
func (l *Look) Unread() []*compile.Rule { return l.unread }

// NewLook looks for policies.
func NewLook(config *rest.Config, p Policies) (*Look, error) {
	s, err := New(config, Options{}, logr.Discard())
	return &Look{scanner: s, policies: p}, err
}

// Known are the objects that rules look up: Namespaces, kvap's params, and ConfigMaps
// with a fixed name.
func (l *Look) Known(ctx context.Context) ([]map[string]any, error) {
	known, unread, err := l.scanner.known(ctx, l.policies)
	for _, r := range l.policies.Compiled.Rules {
		err = cmp.Or(err, unread[r])
	}
	return known, err
}

// Objects calls visit for each object that some rule of the policies can say anything
// of, but those that are about to go. Kinds that may not be read are passed over, and
// told.
func (l *Look) Objects(ctx context.Context, visit func(*unstructured.Unstructured) error) (passedOver []string, err error) {
	served, _, err := l.scanner.served()
	if err != nil {
		return nil, err
	}
	for _, resource := range resourcesOf(l.policies, served) {
		err := l.scanner.each(ctx, resource.GroupVersionResource, func(o *unstructured.Unstructured) error {
			if o.GetDeletionTimestamp() != nil {
				return nil
			}
			return visit(o)
		})
		if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
			passedOver = append(passedOver, resource.GroupResource().String())
			l.unread = append(l.unread, asked(l.policies, resource)...)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resource.GroupResource(), err)
		}
	}
	return passedOver, nil
}
