package controller

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
)

// What runs the rules that mutate: the API server where it can, which is an error to want where
// it cannot, or always the webhook.
const (
	MutationsAuto    = "auto"
	MutationsNative  = "native"
	MutationsWebhook = "webhook"
)

// servesMutations tells whether a cluster serves MutatingAdmissionPolicies, of the version that
// is there to stay, and the controller may read them. Where it does, those that it has made are
// looked after whatever is wanted now.
func servesMutations(ctx context.Context, d discovery.DiscoveryInterface, direct client.Reader) (bool, error) {
	of, err := d.ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		return false, fmt.Errorf("whether the API server serves MutatingAdmissionPolicies: %w", err)
	}
	if !slices.ContainsFunc(of.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		return false, nil
	}
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingAdmissionPolicyList{}, &admissionregistrationv1.MutatingAdmissionPolicyBindingList{},
	} {
		err := direct.List(ctx, list, client.Limit(1))
		if apierrors.IsForbidden(err) { // the role is that of an older version
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("MutatingAdmissionPolicies: %w", err)
		}
	}
	return true, nil
}

// mutationsOf tells whether rules that mutate become native.
func mutationsOf(wanted string, served bool, release cel.Release) (bool, error) {
	can := served && release.Supports(compile.FirstMutations)
	if wanted == MutationsNative && !can {
		return false, fmt.Errorf("mutations are to be native, and need an API server of Kubernetes %s or newer that serves MutatingAdmissionPolicies, and lets the controller list them", compile.FirstMutations)
	}
	return can && wanted != MutationsWebhook, nil
}
