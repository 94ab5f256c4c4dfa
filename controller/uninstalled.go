package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/vap"
)

// reasonUninstalled is the reason of Compiled where the definition of a policy's kind was
// removed, and the policy with it.
const reasonUninstalled = "SourceUninstalled"

// uninstalled are the policies that went with the definition of their kind, as when
// Kyverno is uninstalled. Nobody has said that they are not wanted any more, so what is
// enforced of them stays enforced: by the text that their PolicyTranslations keep, in the
// next process too, until there is a policy of the name again, in kvap's kind or in theirs,
// or somebody deletes the PolicyTranslation. have are the policies that are there.
func (l *policyLister) uninstalled(ctx context.Context, have map[string]*policySource) ([]*policySource, error) {
	var list v1alpha1.PolicyTranslationList
	if err := l.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.PolicyTranslation) int { return strings.Compare(a.Name, b.Name) })
	var out []*policySource
	for i := range list.Items {
		t := &list.Items[i]
		kind, ok := kindOfSource(t.Spec.Source)
		carrier := t.Spec.Source // the policy of kvap.dev that carries it on
		carrier.Group, carrier.UID = v1alpha1.Group, ""
		if have[t.Name] != nil || have[translationName(carrier)] != nil || !ok ||
			t.Labels[vap.ManagedByLabel] != Manager || t.DeletionTimestamp != nil || t.Status.Mode != v1alpha1.ModeEnforce {
			continue
		}
		before := l.sources[t.Name]
		if before != nil && before.ref.UID != t.Spec.Source.UID {
			before = nil
		}
		said := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionCompiled)
		if (before == nil || !before.uninstalled) && (said == nil || said.Reason != reasonUninstalled) {
			if gone, err := l.isGone(ctx, kind); err != nil || !gone {
				if err != nil {
					return nil, err
				}
				continue // the policy was deleted, and its kind is there
			}
		}
		s, err := l.keep(ctx, t, before)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// keep is a policy as it was, by its text.
func (l *policyLister) keep(ctx context.Context, t *v1alpha1.PolicyTranslation, before *policySource) (*policySource, error) {
	if before != nil && before.uninstalled {
		return before, nil
	}
	s := &policySource{ref: t.Spec.Source, generation: t.Status.ObservedGeneration, mode: v1alpha1.ModeEnforce, uninstalled: true}
	if before != nil {
		s.text = before.text
	} else {
		var err error
		if s.text, err = l.remembered(ctx, s.ref); err != nil {
			return nil, err
		}
	}
	if s.text != nil {
		s.policy, s.found = parsePolicy(s.ref, s.text)
	}
	s.act(before)
	return s, nil
}

// isGone asks the API server, and no cache, whether a definition is being deleted, or is
// not there: its objects are deleted after that.
func (l *policyLister) isGone(ctx context.Context, kind sourceKind) (bool, error) {
	list := definitionsList()
	if err := l.direct.List(ctx, list, client.MatchingFields{"metadata.name": kind.definition()}); err != nil {
		return false, fmt.Errorf("whether %s is there: %w", kind.definition(), err)
	}
	return !slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
		return o.Name == kind.definition() && o.DeletionTimestamp == nil
	}), nil
}

// kindOfSource is the kind of a policy that is not kvap's own: whoever takes kvap's own
// definitions away uninstalls kvap.
func kindOfSource(ref v1alpha1.PolicyReference) (sourceKind, bool) {
	for _, k := range sourceKinds() {
		if k.group == ref.Group && k.kind == ref.Kind && !k.exception && k.group != v1alpha1.Group {
			return k, true
		}
	}
	return sourceKind{}, false
}
