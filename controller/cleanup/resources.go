package cleanup

import (
	"context"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// resources looks at the resources that the rules of a DeletingPolicy name, each in one
// version: apps/v1 deployments, or */* for all that can be listed and deleted.
func (r *run) resources(ctx context.Context) {
	all, err := r.cluster.Served(ctx)
	if err != nil {
		r.fail("finding what the cluster serves", err)
		return
	}
	done := map[string]bool{}
	for _, rule := range r.policy.cleanup.Deleting.MatchConstraints.Rules {
		for _, name := range rule.Resources {
			found := servedBy(all, rule, name)
			if len(found) == 0 {
				r.result.unserved = append(r.result.unserved, strings.Trim(strings.Join(rule.Groups, ",")+"/"+name, "/"))
			}
			for _, resource := range found {
				key := resource.GroupResource().String()
				if done[key] || !resource.Namespaced && r.policy.Ref.Namespace != "" {
					continue
				}
				done[key] = true
				r.kind(ctx, resource)
			}
		}
	}
}

// servedBy are the resources that a name of a rule means, and that can be listed and
// deleted. A subresource is none.
func servedBy(all []Resource, rule policy.ResourceRule, name string) (out []Resource) {
	name, sub, _ := strings.Cut(name, "/")
	if sub != "" && sub != "*" {
		return nil
	}
	means := func(patterns []string, s string) bool {
		return slices.Contains(patterns, "*") || slices.Contains(patterns, s)
	}
	for _, r := range all {
		if (name == "*" || name == r.Resource) && means(rule.Groups, r.Group) && means(rule.Versions, r.Version) &&
			slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
			out = append(out, r)
		}
	}
	return out
}
