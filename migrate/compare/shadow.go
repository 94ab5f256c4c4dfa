package compare

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/migrate/live"
)

// rehearsals are what kvap's webhook said in shadow, and which of the objects that it
// was asked about are there.
type rehearsals struct {
	found []evidence.Rehearsal
	there map[string]bool // by UID, those that were asked about
}

// readShadow reads the status of PolicyTranslations, as far as it is about the policies
// as they are.
func (c *Comparing) readShadow(ctx context.Context) error {
	c.shadow = rehearsals{there: map[string]bool{}}
	if c.Cluster == nil {
		return nil
	}
	current := map[types.UID]comparedPolicy{}
	for _, p := range c.setting.compared {
		current[p.object.GetUID()] = p
	}
	return live.EachTranslation(ctx, c.Cluster, c.leave, func(t v1alpha1.PolicyTranslation) {
		p, ok := current[t.Spec.Source.UID]
		for _, s := range t.Status.Shadow {
			if ok && s.Generation == p.object.GetGeneration() {
				c.shadow.add(p.name, s)
			}
		}
	})
}

func (r *rehearsals) add(policyName string, s v1alpha1.ShadowStatus) {
	for _, rule := range s.Rules {
		one := evidence.Rehearsal{Policy: policyName, Rule: rule.Rule, Passed: rule.Passed, Violated: rule.Violated, Failed: rule.Failed}
		for _, q := range rule.Requests {
			one.Requests = append(one.Requests, evidence.Rehearsed{
				At: q.At.Time, Operation: q.Operation, Object: q.Object, UID: string(q.UID), Verdict: interp.Status(q.Verdict), Message: q.Message,
			})
			r.there[string(q.UID)] = false
		}
		r.found = append(r.found, one)
	}
}

// see notes that an object is there.
func (r *rehearsals) see(uid string) {
	if _, asked := r.there[uid]; asked && uid != "" {
		r.there[uid] = true
	}
}

// tell holds all of it against what Kyverno did.
func (r *rehearsals) tell(l *evidence.Ledger) {
	for _, one := range r.found {
		l.Shadow(one, func(uid string) bool { return r.there[uid] })
	}
}
