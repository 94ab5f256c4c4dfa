package status

import (
	"fmt"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

// cleanups are the policies that delete on a schedule, as the controller that runs them
// tells. They have no rules.
func (c Snapshot) cleanups() (out []report.PolicyStatus) {
	for _, t := range c.Translations {
		ref := t.Spec.Source
		if t.Status.Cleanup == nil || !c.Filter.matches(ref.Name, ref.Namespace, t.Labels) {
			continue
		}
		p := report.PolicyStatus{Name: ref.Name, Namespace: ref.Namespace, Kind: ref.Kind, Group: ref.Group, Mode: t.Status.Mode}
		if !t.CreationTimestamp.IsZero() {
			p.Created = t.CreationTimestamp.UTC().Format(time.RFC3339)
		}
		for _, one := range t.Status.Conditions {
			p.Conditions = append(p.Conditions, report.Condition{Type: one.Type, Status: string(one.Status), Reason: one.Reason, Message: one.Message + runs(t.Status.Cleanup)})
		}
		out = append(out, p)
	}
	return out
}

// runs says when a policy ran and runs.
func runs(c *v1alpha1.CleanupStatus) (out string) {
	if c.LastExecutionTime != nil {
		out += fmt.Sprintf("; it ran last at %s", c.LastExecutionTime.UTC().Format(time.RFC3339))
	}
	if c.NextExecutionTime != nil {
		out += fmt.Sprintf("; it runs next at %s", c.NextExecutionTime.UTC().Format(time.RFC3339))
	}
	return out
}
