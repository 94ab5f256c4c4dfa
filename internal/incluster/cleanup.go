package incluster

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cleanup"
	"github.com/kvap/kvap/interp"
)

// A Cleaning is what kvap controller deletes.
type Cleaning string

// What may be deleted.
const (
	CleanAuto     Cleaning = "auto" // the label too where policies are enforced
	CleanAll      Cleaning = "all"
	CleanPolicies Cleaning = "policies"
	CleanNothing  Cleaning = "none"
)

// Cleanings are all of them.
func Cleanings() []Cleaning { return []Cleaning{CleanAuto, CleanAll, CleanPolicies, CleanNothing} }

// label tells whether the label that gives objects an end counts. It has no mode of
// its own, so it has that of policies that name none.
func (c Cleaning) label(mode string) bool {
	return c == CleanAll || c == CleanAuto && mode == v1alpha1.ModeEnforce
}

// podNamespace is where a Pod reads the namespace that it is in.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// withOwn are namespaces, and the one of the Pod that this runs in, if it does: what
// deletes does not delete itself.
func withOwn(namespaces []string) []string {
	own, err := os.ReadFile(podNamespace)
	if err != nil {
		return namespaces
	}
	return append(slices.Clone(namespaces), strings.TrimSpace(string(own)))
}

// cleaning is what is to run where the controller leads. What policies look up is the
// webhook's world, if there is one, and else what the API server says each time.
func (o Options) cleaning(ctx context.Context, config *rest.Config, served interp.World, log logr.Logger) []func(context.Context) error {
	if o.Cleanup == CleanNothing {
		return nil
	}
	ask := sync.OnceValues(func() (interp.World, error) {
		if served != nil {
			return served, nil
		}
		return Webhook{Services: o.Webhook.Services}.world(ctx, config, "", true, nil, log)
	})
	c := o.Controller
	options := cleanup.Options{
		Mode: c.Mode, TTL: o.Cleanup.label(c.Mode), ExcludeNamespaces: withOwn(c.ExcludeNamespaces), ExceptionNamespaces: c.ExceptionNamespaces, Limit: o.CleanupLimit,
		World: func(context.Context) (interp.World, error) { return ask() },
	}
	return []func(context.Context) error{
		func(ctx context.Context) error { return cleanup.Run(ctx, config, options, log.WithName("cleanup")) },
	}
}
