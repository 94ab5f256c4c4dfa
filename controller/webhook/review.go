package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/policy"
)

// A review is an AdmissionReview of the API server, read once.
type review struct {
	uid       string
	operation string
	namespace string
	user      User
	dryRun    bool
	// request is the AdmissionRequest as JSON; object and old are nil when absent.
	request     map[string]any
	object, old map[string]any
}

// errTooLarge is a review beyond the limit.
var errTooLarge = errors.New("the review is larger than the limit")

// decode makes a review of its JSON.
func decode(data []byte) (*review, error) {
	var envelope map[string]any
	if err := kjson.Unmarshal(data, &envelope); err != nil {
		return nil, fmt.Errorf("the review is no JSON object: %w", err)
	}
	if envelope["apiVersion"] != "admission.k8s.io/v1" || envelope["kind"] != "AdmissionReview" {
		return nil, errors.New("this is no AdmissionReview of admission.k8s.io/v1")
	}
	request, ok := envelope["request"].(map[string]any)
	if !ok {
		return nil, errors.New("the review has no request")
	}
	return readRequest(request)
}

func readRequest(request map[string]any) (*review, error) {
	out := &review{request: request}
	out.uid, _ = request["uid"].(string)
	out.operation, _ = request["operation"].(string)
	out.namespace, _ = request["namespace"].(string)
	out.dryRun, _ = request["dryRun"].(bool)
	out.object, _ = request["object"].(map[string]any)
	out.old, _ = request["oldObject"].(map[string]any)
	if user, ok := request["userInfo"].(map[string]any); ok {
		out.user.Name, _ = user["username"].(string)
		groups, _ := user["groups"].([]any)
		for _, g := range groups {
			if name, ok := g.(string); ok {
				out.user.Groups = append(out.user.Groups, name)
			}
		}
	}
	switch {
	case out.uid == "":
		return nil, errors.New("the request has no uid")
	case out.kind() == "":
		return nil, errors.New("the request has no kind")
	}
	switch out.operation {
	case "CREATE", "UPDATE", "DELETE", "CONNECT":
		return out, nil
	}
	return nil, fmt.Errorf("the operation %q is not CREATE, UPDATE, DELETE or CONNECT", out.operation)
}

// kind is the kind of the object in the request.
func (r *review) kind() string {
	kind, _ := r.request["kind"].(map[string]any)
	name, _ := kind["kind"].(string)
	return name
}

// within is the namespace that the object is in. A Namespace is in none, though a
// request about one names it.
func (r *review) within() string {
	if kind, _ := r.request["kind"].(map[string]any); r.kind() == "Namespace" && (kind["group"] == nil || kind["group"] == "") {
		return ""
	}
	return r.namespace
}

// subject is the object that is judged: the old one where it goes.
func (r *review) subject() *unstructured.Unstructured {
	if r.object == nil {
		return &unstructured.Unstructured{Object: r.old}
	}
	return &unstructured.Unstructured{Object: r.object}
}

// resource names the object that is judged, as denials do.
func (r *review) resource() string { return r.kind() + "/" + r.namespace + "/" + r.subject().GetName() }

// with is the review of another object in the place of the one that was sent.
func (r *review) with(object map[string]any) *review {
	out := *r
	out.request = maps.Clone(r.request)
	out.request["object"], out.object = object, object
	return &out
}

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
