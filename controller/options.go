package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/scan"
	"github.com/kvap/kvap/vap"
)

// Manager is the field manager of all that the controller writes, and the value of
// the label app.kubernetes.io/managed-by on all that it makes. What `kvap convert`
// writes has another value: it belongs to whoever applied it.
const Manager = "kvap-controller"

// Options are the choices of a controller.
type Options struct {
	// Mode is that of policies that name none, but for those of kvap.dev, which are
	// enforced.
	Mode string
	// Release is what the API servers are at least; the zero value asks them.
	Release cel.Release
	// Mutations says who runs the rules that mutate: MutationsAuto, which is the default,
	// MutationsNative or MutationsWebhook. With a Fallback only those become native that may
	// run twice, as they do while they are handed over.
	Mutations string
	// ExcludeNamespaces are left out by every binding. nil means the default ones.
	ExcludeNamespaces []string
	// NamespaceLimit is how many native rules, and native objects, the policies of one
	// namespace have at most; what is beyond it remains. 0 means no limit.
	NamespaceLimit int
	// ExceptionNamespaces are those whose PolicyExceptions count; * means all. Where it
	// is empty none do, as with Kyverno, which counts none unless told.
	ExceptionNamespaces []string
	// Fallback serves what has no native form; nil means NoFallback.
	Fallback Fallback
	// WebhookOwner is a ClusterRole with which the webhook configurations end; empty for
	// none.
	WebhookOwner string
	// Namespace is the controller's own, for its lease and its canaries.
	Namespace string
	// Servers are the API servers to watch policies take effect on; nil finds them by
	// the endpoints of the service kubernetes.
	Servers []*rest.Config

	// Reports is the group of the reports about objects that are there:
	// report.PolicyReports or report.OpenReports; empty for none.
	Reports string
	// World is what rules without a native form look things up in, where objects are
	// scanned for reports.
	World scan.World

	// Leading runs while this replica is the one that writes, beside its passes, until
	// the context ends, and again when it is elected again. An error ends the controller.
	Leading []func(context.Context) error

	// Version is that of the program, for the metrics.
	Version string
	// Step is told of each step of a pass before it begins; nil tells nobody.
	Step func(Step)

	LeaderElection bool
	// The addresses are "0" for none.
	MetricsAddress, HealthAddress, PprofAddress string
}

// Modes are the modes of a policy.
func Modes() []string { return v1alpha1.Modes() }

// withDefaults fills in what is not set.
func (o Options) withDefaults() (Options, error) {
	if o.Mode == "" {
		o.Mode = v1alpha1.ModeShadow
	}
	if !slices.Contains(Modes(), o.Mode) {
		return o, fmt.Errorf("mode %q: want one of %v", o.Mode, Modes())
	}
	if o.ExcludeNamespaces == nil {
		o.ExcludeNamespaces = vap.DefaultExcludedNamespaces()
	}
	if o.Mutations == "" {
		o.Mutations = MutationsAuto
	}
	if o.Step == nil {
		o.Step = func(Step) {}
	}
	if o.Fallback == nil {
		o.Fallback = NoFallback{}
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	for _, address := range []*string{&o.MetricsAddress, &o.HealthAddress, &o.PprofAddress} {
		if *address == "" {
			*address = "0"
		}
	}
	return o, nil
}
