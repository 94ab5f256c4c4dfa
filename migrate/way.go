package migrate

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// WayFor is the lightest way by which Kyverno can be switched off for a policy, by what
// its own validation takes: admission: false is only for policies with nothing but
// validate rules, and not together with background: false. Apart, nothing is written into
// a policy that moves whole.
func (g Goal) WayFor(w PolicyState) (v1alpha1.MigrationWay, error) {
	begun := w.Source == nil || isOff(w.Source) || KyvernoHasRest(w.Source)
	if s := w.status(); s.Way != "" && (begun || !w.closed()) {
		return s.Way, nil
	}
	if err := (Goal{Verb: Enforce}).refuseGone(w); err != nil {
		return "", err
	}
	if w.outOfShadow() {
		return v1alpha1.WayRemove, nil
	}
	if err := w.refuseAbsent(); err != nil {
		return "", err
	}
	if !CanCarry(w.Ref) || w.Ref.Group != kyvernoGroup {
		return v1alpha1.WayAdmission, nil
	}
	data, err := json.Marshal(w.Source.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	f, _ := policy.Parse(w.Ref.Name, data)
	if len(f.Policies) != 1 {
		return "", fmt.Errorf("the policy cannot be read; kvap status says why")
	}
	p := f.Policies[0]
	onlyValidates := !slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool { return r.Validate == nil })
	switch {
	case !p.Admission:
		return "", fmt.Errorf("nobody judges requests by it: admission is false")
	case len(w.Staying) == len(p.Rules):
		return "", fmt.Errorf("nothing but Kyverno carries its rules out; leave it there")
	case w.closed():
		return v1alpha1.WayRemove, nil
	case len(w.Staying) > 0:
		return v1alpha1.WayReplace, nil
	case p.Background && onlyValidates && !g.apart(w):
		return v1alpha1.WayAdmission, nil
	}
	return v1alpha1.WayRemove, nil
}
