package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

// natives are the native policies that are there and bound, by what they do and their name,
// and what their bindings do. One that validates may have the name of one that mutates.
type natives map[nativeName]boundNative

type nativeName struct {
	mutates bool
	name    string
}

type boundNative struct {
	since   time.Time // when the last of its objects was made
	actions []string
}

// readNatives reads them anew. The status that the controller writes says what it has
// seen; this is what is there.
func (r *Reader) readNatives(ctx context.Context) (natives, error) {
	out := natives{}
	for _, mutates := range []bool{false, true} {
		kind := "ValidatingAdmissionPolicy"
		if mutates {
			kind = "MutatingAdmissionPolicy"
		}
		if _, served := r.Serves(admission, kind, "v1", "v1beta1"); !served && !mutates {
			return nil, fmt.Errorf("the cluster does not serve %s of %s, which Kubernetes has from 1.30 on", kind, admission)
		}
		policies, _, err := listed(ctx, r.Connection, admission, kind, "v1", "v1beta1")
		if err != nil {
			return nil, err
		}
		bindings, _, err := listed(ctx, r.Connection, admission, kind+"Binding", "v1", "v1beta1")
		if err != nil {
			return nil, err
		}
		made := map[string]time.Time{}
		for _, p := range policies {
			made[p.GetName()] = p.GetCreationTimestamp().Time
		}
		for _, b := range bindings {
			name, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
			actions, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
			since, ok := made[name]
			if !ok {
				continue
			}
			key := nativeName{mutates, name}
			since = slices.MaxFunc([]time.Time{out[key].since, since, b.GetCreationTimestamp().Time}, time.Time.Compare)
			out[key] = boundNative{since, append(out[key].actions, actions...)}
		}
	}
	return out, nil
}

const admission = "admissionregistration.k8s.io"

// of says since when all native policies are there by which the controller says that a
// policy is judged, or which of them is not there, or does not deny where it should.
func (n natives) of(s v1alpha1.PolicyTranslationStatus) (since time.Time, missing string) {
	for _, row := range s.Rules {
		if row.Target != string(report.Native) {
			continue
		}
		for _, name := range row.Objects {
			have, ok := n[nativeName{row.Type == "mutate", name}]
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
