package main

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
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/webhook/world"
)

// A cleaning is what kvap controller deletes.
type cleaning string

const (
	cleanAuto     cleaning = "auto" // the label too where policies are enforced
	cleanAll      cleaning = "all"
	cleanPolicies cleaning = "policies"
	cleanNothing  cleaning = "none"
)

func cleanings() []string { return words(cleanAuto, cleanAll, cleanPolicies, cleanNothing) }

// label tells whether the label that gives objects an end counts. It has no mode of
// its own, so it has that of policies that name none.
func (c cleaning) label(mode string) bool {
	return c == cleanAll || c == cleanAuto && mode == v1alpha1.ModeEnforce
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

// leading is what is to run where the controller leads. What policies look up is the
// webhook's world, if there is one, and else what the API server says each time.
func (c cleaning) leading(limit int, config *rest.Config, o controller.Options, f webhookFlags, served *fallback, log logr.Logger) []func(context.Context) error {
	if c == cleanNothing {
		return nil
	}
	ask := sync.OnceValues(func() (interp.World, error) {
		if served != nil {
			return served.world, nil
		}
		formats, err := builtinFormats()
		if err != nil {
			return nil, err
		}
		return world.New(config, world.Options{Formats: formats, Services: f.services, TokenFile: apiCallToken, Live: true})
	})
	options := cleanup.Options{
		Mode: o.Mode, TTL: c.label(o.Mode), ExcludeNamespaces: withOwn(o.ExcludeNamespaces), ExceptionNamespaces: o.ExceptionNamespaces, Limit: limit,
		World: func(context.Context) (interp.World, error) { return ask() },
	}
	return []func(context.Context) error{
		func(ctx context.Context) error { return cleanup.Run(ctx, config, options, log.WithName("cleanup")) },
	}
}
