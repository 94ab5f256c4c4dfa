package interp

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// A Cleanup tells of objects whether a cleanup policy deletes them. It may be used
// by several goroutines at once.
type Cleanup struct {
	*policy.Cleanup
	rule       *rule // the policy as a rule: what it matches, and its context
	conditions *conditions
	deleting   *deleting    // in place of both, for a DeletingPolicy
	in         *Interpreter // which compiles it
	world      World
	limits     Limits
}

// NewCleanup reads a cleanup policy, which must not be changed afterwards, nor may the
// exceptions, which are those from a DeletingPolicy.
func NewCleanup(c *policy.Cleanup, exceptions []*policy.Exception, world World, limits Limits) *Cleanup {
	if c.Deleting != nil {
		return &Cleanup{Cleanup: c, deleting: readDeleting(c, exceptions), in: New(nil, nil, world, limits), world: world, limits: limits}
	}
	p := &policy.Policy{Kind: "ClusterPolicy", Name: c.Name}
	if c.Kind == "CleanupPolicy" {
		p.Kind, p.Namespace = "Policy", c.Namespace
	}
	r := &policy.Rule{Name: c.Name, Match: c.Match, Exclude: c.Exclude, Context: c.Context}
	return &Cleanup{
		Cleanup: c, rule: &rule{Rule: r, policy: p, entries: readEntries(p, c.Context)},
		// A text of the object is not a pattern where that would delete it.
		conditions: readConditions(c.Conditions, excusing), world: world, limits: limits,
	}
}

// Broken is which expressions of a DeletingPolicy do not compile, so that it deletes nothing.
func (c *Cleanup) Broken() error {
	_, err := c.BrokenAt()
	return err
}

// BrokenAt is Broken, and where the first of them is.
func (c *Cleanup) BrokenAt() (diag.Pos, error) {
	if c.deleting == nil || c.Invalid {
		return diag.Pos{}, nil
	}
	c.deleting.once.Do(func() { c.deleting.compile(c.in) })
	if c.deleting.at.Line == 0 {
		return c.Pos, c.deleting.err
	}
	return c.deleting.at, c.deleting.err
}

// Deletes tells whether the policy deletes an object of a resource now: it matches it, and
// its conditions hold of it. What expressions see is the object, as target, and its
// namespace; each object has a context of its own. No conditions always hold.
func (c *Cleanup) Deletes(ctx context.Context, resource schema.GroupVersionResource, object map[string]any) (bool, error) {
	deletes, _, err := c.Judge(ctx, resource, object)
	return deletes, err
}

// Judge is Deletes, and whether the policy matches the object.
func (c *Cleanup) Judge(ctx context.Context, resource schema.GroupVersionResource, object map[string]any) (deletes, matches bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			deletes, err = false, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if c.Invalid {
		return false, false, fmt.Errorf("the cleanup policy has errors; see what reading it reported")
	}
	a := c.review(ctx, resource, object)
	if c.deleting != nil {
		if err := c.Broken(); err != nil {
			return false, false, fmt.Errorf("an expression cannot be read: %w", err)
		}
		if matches, err = c.deleting.matches(a); err == nil && matches {
			deletes, err = c.deleting.deletes(a)
		}
		return deletes, matches, err
	}
	matches = ruleApplies(c.rule.policy, c.rule.Rule, a.subject())
	if a.labelsErr != nil || !matches {
		return false, matches, a.labelsErr
	}
	v := newVars(a)
	v.defineImages(a, c.rule)
	v.defineAll(c.rule.entries, a)
	holds, _, err := c.conditions.holds(v)
	if err != nil {
		return false, true, fmt.Errorf("failed to evaluate conditions: %w", err)
	}
	return holds, true, nil
}

// review is the view of an object that nobody sent.
func (c *Cleanup) review(ctx context.Context, resource schema.GroupVersionResource, object map[string]any) *preparedRequest {
	group, version, found := strings.Cut(digText(object, "apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	namespace := metaText(object, "namespace")
	admission := map[string]any{
		"kind":   map[string]any{"group": group, "version": version, "kind": object["kind"]},
		"object": object, "namespace": namespace,
	}
	if c.deleting != nil { // whose constraints are those of requests
		admission["resource"] = map[string]any{"group": resource.Group, "version": resource.Version, "resource": resource.Resource}
		admission["name"], admission["operation"] = metaText(object, "name"), "CREATE"
	}
	a := newReview(ctx, &Request{Admission: admission}, c.world, c.limits)
	request := map[string]any{}
	if namespace != "" {
		request["namespace"] = namespace
	}
	a.data = map[string]any{"request": request, "target": object}
	return a
}
