package interp

import (
	"context"
	"fmt"
	"strings"

	"github.com/kvap/kvap/policy"
)

// A Cleanup tells of objects whether a cleanup policy deletes them. It may be used
// by several goroutines at once.
type Cleanup struct {
	*policy.Cleanup
	rule       *rule // the policy as a rule: what it matches, and its context
	conditions *conditions
	world      World
	limits     Limits
}

// NewCleanup reads a cleanup policy, which must not be changed afterwards.
func NewCleanup(c *policy.Cleanup, world World, limits Limits) *Cleanup {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: c.Name}
	if c.Kind == "CleanupPolicy" {
		p.Kind, p.Namespace = "Policy", c.Namespace
	}
	r := &policy.Rule{Name: c.Name, Match: c.Match, Exclude: c.Exclude, Context: c.Context}
	return &Cleanup{
		Cleanup: c, rule: &rule{Rule: r, policy: p, entries: readEntries(p, c.Context)},
		// A text of the object is no pattern where that would delete it.
		conditions: readConditions(c.Conditions, excusing), world: world, limits: limits,
	}
}

// Deletes tells whether the policy deletes an object now: it matches it, and its
// conditions hold of it. What expressions see is the object, as target, and its
// namespace; each object has a context of its own. No conditions always hold.
func (c *Cleanup) Deletes(ctx context.Context, object map[string]any) (deletes bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			deletes, err = false, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if c.Invalid {
		return false, fmt.Errorf("the cleanup policy has errors; see what reading it reported")
	}
	a := c.review(ctx, object)
	matches := ruleApplies(c.rule.policy, c.rule.Rule, a.subject())
	if a.labelsErr != nil || !matches {
		return false, a.labelsErr
	}
	v := newVars(a)
	v.defineImages(a, c.rule)
	v.defineAll(c.rule.entries, a)
	holds, _, err := c.conditions.holds(v)
	if err != nil {
		return false, fmt.Errorf("failed to evaluate conditions: %w", err)
	}
	return holds, nil
}

// review is the view of an object that nobody sent.
func (c *Cleanup) review(ctx context.Context, object map[string]any) *review {
	group, version, found := strings.Cut(digText(object, "apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	namespace := metaText(object, "namespace")
	a := newReview(ctx, &Request{Admission: map[string]any{
		"kind":   map[string]any{"group": group, "version": version, "kind": object["kind"]},
		"object": object, "namespace": namespace,
	}}, c.world, c.limits)
	request := map[string]any{}
	if namespace != "" {
		request["namespace"] = namespace
	}
	a.data = map[string]any{"request": request, "target": object}
	return a
}
