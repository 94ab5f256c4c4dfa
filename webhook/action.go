package webhook

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/webhook/registration"
)

// actionOf is what follows when a rule fails: the first override for the namespace,
// the rule's own action, or the policy's. The rule's overrides stand in front of
// its action, and the policy's behind it.
func (s *Server) actionOf(ctx context.Context, p *servedPolicy, rule string, r *review) (policy.Action, error) {
	if v := p.Validating; v != nil {
		if slices.Contains(v.Actions, "Deny") {
			return policy.Enforce, nil
		}
		return policy.Audit, nil
	}
	var own policy.Action
	found := p.rules[rule]
	if found != nil {
		own = found.ImageAction()
	}
	if found != nil && found.Validate != nil {
		own = found.Validate.Action
		if action, err := s.overridden(ctx, found.Validate.Overrides, r); err != nil || action != "" {
			return action, err
		}
	}
	if own != "" {
		return own, nil
	}
	action, err := s.overridden(ctx, p.Overrides, r)
	if err != nil || action != "" {
		return action, err
	}
	return p.Action, nil
}

// overridden is the action of the first override that is for the object's
// namespace; "" if none is. An override with names and a selector needs both
// (deviation 10).
func (s *Server) overridden(ctx context.Context, overrides []policy.ActionOverride, r *review) (policy.Action, error) {
	for _, o := range overrides {
		if o.Namespaces != nil && !slices.ContainsFunc(o.Namespaces, func(pattern string) bool { return policy.Wildcard(pattern, r.within()) }) {
			continue
		}
		if o.NamespaceSelector != nil {
			selected, err := s.selected(ctx, o.NamespaceSelector, r.within())
			if err != nil {
				return "", err
			}
			if !selected {
				continue
			}
		}
		return o.Action, nil
	}
	return "", nil
}

// selected tells whether a selector takes the labels of a namespace. Outside of
// namespaces there are none.
func (s *Server) selected(ctx context.Context, sel *policy.Selector, namespace string) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(registration.SelectorOf(sel))
	if err != nil {
		return false, nil //nolint:nilerr // a selector that cannot be read selects nothing
	}
	set := labels.Set{}
	if namespace != "" {
		object, err := s.options.World.Namespace(ctx, namespace)
		if err != nil {
			return false, fmt.Errorf("failed to get the labels of the namespace: %w", err)
		}
		set = (&unstructured.Unstructured{Object: object}).GetLabels()
	}
	return selector.Matches(set), nil
}
