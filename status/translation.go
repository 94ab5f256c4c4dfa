package status

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

// translated notes what the controller says of a policy, which may have gone since.
func (k *known) translated(t *v1alpha1.PolicyTranslation) {
	id := identityOf(t.Spec.Source)
	var sub *listedPolicy
	if at := slices.IndexFunc(k.by[id], func(s *listedPolicy) bool { return s.group() == t.Spec.Source.Group }); at >= 0 {
		sub = k.by[id][at]
	} else {
		sub = k.add(&listedPolicy{identity: id})
	}
	sub.translation = t
	if sub.source != nil && t.Status.ObservedGeneration != sub.source.Generation {
		return // what it says of rules is of another version
	}
	for i := range t.Status.Rules {
		row := &t.Status.Rules[i]
		sub.rule(row.Rule).row = row
	}
}

func identityOf(ref v1alpha1.PolicyReference) identity {
	id := identity{ref.Name, familyOf(ref.Kind)}
	if ref.Namespace != "" {
		id.name = ref.Namespace + "/" + ref.Name
	}
	return id
}

// migrated notes where a policy is on its way from Kyverno. One that is in the cluster
// no more has nothing to be said of.
func (k *known) migrated(m *v1alpha1.Migration) {
	stage := string(m.Status.Stage)
	if d := m.Status.Doing; d != nil {
		stage += ", " + d.Verb + " begun"
	}
	for _, sub := range k.by[identityOf(m.Spec.Source)] {
		sub.stage = stage
	}
}

// rule is the rule of a name.
func (s *listedPolicy) rule(name string) *rule {
	for _, r := range s.rules {
		if r.name == name {
			return r
		}
	}
	r := &rule{name: name}
	s.rules = append(s.rules, r)
	return r
}

// controlled tells that a controller looks after the policy.
func (s *listedPolicy) controlled() bool {
	return s.translation != nil && s.translation.Status.Mode != v1alpha1.ModeOff
}

// said is what the controller says of a condition. What it said of an earlier
// version of the policy is not known of this one.
func (s *listedPolicy) said(kind string) (report.Condition, bool) {
	if !s.controlled() {
		return report.Condition{}, false
	}
	for _, c := range s.translation.Status.Conditions {
		if c.Type != kind {
			continue
		}
		out := report.Condition{Type: kind, Status: string(c.Status), Reason: c.Reason, Message: c.Message}
		if s.source != nil && c.ObservedGeneration != s.source.Generation {
			out.Status, out.Reason = unknown, "NotObserved"
			out.Message = fmt.Sprintf("the controller has seen generation %d of the policy, which is at %d; see that it runs", c.ObservedGeneration, s.source.Generation)
		}
		return out, true
	}
	return report.Condition{}, false
}

// costOf is a share of what the API server allows, in words.
func costOf(row *v1alpha1.RuleStatus) string {
	if row == nil || row.CostPercent == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", row.CostPercent)
}
