package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

// natives are the native policies that are there and bound, by name, and what their
// bindings do.
type natives map[string]native

type native struct {
	since   time.Time // when the last of its objects was made
	actions []string
}

// readNatives reads them anew. The status that the controller writes says what it has
// seen; this is what is there.
func (r *Reader) readNatives(ctx context.Context) (natives, error) {
	const group = "admissionregistration.k8s.io"
	out := natives{}
	for _, policy := range []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"} {
		made := map[string]time.Time{}
		take := map[string]func(*unstructured.Unstructured){
			policy: func(o *unstructured.Unstructured) { made[o.GetName()] = o.GetCreationTimestamp().Time },
			policy + "Binding": func(o *unstructured.Unstructured) {
				name, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
				actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "validationActions")
				since, ok := made[name]
				if !ok {
					return
				}
				out.add(name, since, actions)
				out.add(name, o.GetCreationTimestamp().Time, nil)
			},
		}
		for _, kind := range []string{policy, policy + "Binding"} {
			resource, ok := r.Serves(group, kind, "v1", "v1beta1")
			switch {
			case !ok && strings.HasPrefix(policy, "Mutating"): // which come with Kubernetes 1.36
				continue
			case !ok:
				return nil, fmt.Errorf("the cluster does not serve %s of %s, which Kubernetes has from 1.30 on", kind, group)
			}
			items, _, err := r.List(ctx, resource)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			for i := range items {
				take[kind](&items[i])
			}
		}
	}
	return out, nil
}

// add adds an object of a native policy, and what it does.
func (n natives) add(name string, made time.Time, actions []string) {
	have := n[name]
	if made.After(have.since) {
		have.since = made
	}
	have.actions = append(have.actions, actions...)
	n[name] = have
}

// of says since when all native policies are there by which the controller says that a
// policy is judged, or which of them is not there, or does not deny where it should.
func (n natives) of(s v1alpha1.PolicyTranslationStatus) (since time.Time, missing string) {
	for _, row := range s.Rules {
		if row.Target != string(report.Native) {
			continue
		}
		for _, name := range row.Objects {
			have, ok := n[name]
			switch {
			case !ok:
				return since, fmt.Sprintf("the native policy %s of the rule %s is not there, or is not bound; see that the controller runs", name, row.Rule)
			case s.Mode == v1alpha1.ModeEnforce && strings.Contains(row.Action, denies) && !slices.Contains(have.actions, denies):
				return since, fmt.Sprintf("the native policy %s of the rule %s does not deny yet", name, row.Rule)
			}
			if have.since.After(since) {
				since = have.since
			}
		}
	}
	return since, ""
}

// denies is the action of a binding that denies.
const denies = "Deny"
