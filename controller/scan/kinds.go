package scan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// never tells of kinds that come and go too fast to be scanned, or are reports.
func never(group, resource string) bool {
	switch group {
	case "wgpolicyk8s.io", "openreports.io", "reports.kyverno.io", "events.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "metrics.k8s.io":
		return true
	}
	return group == "" && resource == "events"
}

// A resource is one whose objects are scanned.
type resource struct {
	apischema.GroupVersionResource
	kind       string
	namespaced bool
}

// groupKind is the kind of its objects, in whatever version.
func (r resource) groupKind() apischema.GroupKind {
	return apischema.GroupKind{Group: r.Group, Kind: r.kind}
}

// resourcesOf are the resources, of those that the cluster serves and lists, that the
// policies can say anything of, in the order in which they are served.
func resourcesOf(p Policies, served []*metav1.APIResourceList) []resource {
	var out []resource
	for _, list := range served {
		gv, err := apischema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || never(gv.Group, r.Name) || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
				continue
			}
			if one := (resource{gv.WithResource(r.Name), r.Kind, r.Namespaced}); len(asked(p, one)) > 0 {
				out = append(out, one)
			}
		}
	}
	return out
}

// asked are the rules that can say anything of a resource.
func asked(p Policies, r resource) (rules []*compile.Rule) {
	for _, rule := range p.Compiled.Rules {
		if p.about(rule, r) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// about tells whether a rule can say anything of a resource.
func (p Policies) about(rule *compile.Rule, r resource) bool {
	if !p.asks(rule) && !(p.Triggers && rule.Source != nil && !rule.Source.Invalid && rule.Source.Generate != nil) {
		return false
	}
	if rule.Target == translate.Native && !rule.Mutates() {
		return slices.ContainsFunc(rule.Objects, func(i int) bool {
			for _, m := range p.Compiled.Objects[i].Policy.Spec.MatchConstraints.ResourceRules {
				if has(m.APIGroups, r.Group) && has(m.APIVersions, r.Version) && has(m.Resources, r.Resource) {
					return true
				}
			}
			return false
		})
	}
	if constraints := rule.Policy.MatchConstraints(); constraints != nil {
		return slices.ContainsFunc(constraints.Rules, func(m policy.ResourceRule) bool {
			if has(m.Groups, r.Group) && has(m.Versions, r.Version) && has(m.Resources, r.Resource) {
				return true
			}
			return has(m.Resources, "pods") && runsPods(r) // the judge knows whether it is about these, too
		})
	}
	return slices.ContainsFunc(rule.Forms, func(f *compile.Form) bool {
		return f.Source != nil && f.Source.Match != nil && matchesKind(f.Source.Match, r)
	})
}

// runsPods reports whether objects of a resource have a template of Pods, which policies in CEL may
// be about that name Pods.
func runsPods(r resource) bool {
	switch r.GroupResource().String() {
	case "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch":
		return true
	}
	return false
}

// matchesKind tells whether a filter can mean a resource.
func matchesKind(m *policy.MatchBlock, r resource) bool {
	return slices.ContainsFunc(m.Filters(), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(k policy.Text) bool {
			s, ok := policy.ParseKind(k.Value)
			return ok && s.Subresource == "" && word(s.Group, r.Group) && word(s.Version, r.Version) && word(s.Kind, r.kind)
		})
	})
}

// has tells whether a list of a resource rule has a word, or all of them.
func has(list []string, w string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, w)
}

// word tells whether a part of a kind can mean a word. A wildcard may mean any.
func word(pattern, w string) bool {
	return pattern == "" || strings.ContainsAny(pattern, "*?") || pattern == w
}
