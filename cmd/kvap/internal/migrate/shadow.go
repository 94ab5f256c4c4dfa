package migrate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kvap/kvap/api/v1alpha1"
)

// shadow has kvap judge beside Kyverno, without effect: the controller goes by the record, so
// nothing is written into the policy. Files have no record.
func (g Goal) shadow(w PolicyState) (*Move, error) {
	if err := w.refuseAbsent(); err != nil {
		return nil, err
	}
	if !slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow}, w.Stage()) {
		return nil, fmt.Errorf("it is %s already; kvap migrate rollback --to shadow leads back", w.Stage())
	}
	if isOff(w.Source) {
		return nil, fmt.Errorf("kvap enforces it, and Kyverno is switched off in it: in shadow nobody would judge requests by it; kvap migrate rollback %s comes first", w.Title())
	}
	switch mode, _ := v1alpha1.ModeOf(w.Source, v1alpha1.ModeShadow); {
	case g.apart(w) && (g.Apart || g.InFiles):
		return g.shadowApart(w)
	case g.InFiles:
		if m := w.annotated(w.Source, "shadow-1-beside", "have kvap judge it beside Kyverno, without effect", map[string]string{v1alpha1.ModeKey: v1alpha1.ModeShadow}); m != nil {
			return m, nil
		}
	case mode != v1alpha1.ModeShadow:
		return nil, fmt.Errorf("%s of it says %s, which counts more than the record; take that out of the policy first", v1alpha1.ModeKey, mode)
	}
	if seen := w.SourceStatus.as(v1alpha1.ModeShadow, w.Source); !seen.Yes {
		return wait("see that it is judged", seen.Why), nil
	}
	return nil, nil
}

// shadowApart has a policy of kvap.dev judge without effect. Where the controller judges by
// the source in shadow already, none is needed.
func (g Goal) shadowApart(w PolicyState) (*Move, error) {
	if w.Carrier != nil && w.status().Doing == nil && !w.shadowedApart() {
		return nil, fmt.Errorf("kvap.dev has a policy of this name already, which no migration has made, and kvap judges by it in its mode (%s): "+
			"shadow would end that; kvap migrate enforce %s goes on where it says the same, else rename or delete it", cmp.Or(modeOf(w.Carrier), "the controller's"), w.Title())
	}
	if w.Carrier == nil && w.SourceStatus.as(v1alpha1.ModeShadow, w.Source).Yes {
		return nil, nil
	}
	return w.carry("shadow-1-beside", v1alpha1.ModeShadow)
}

// shadowedApart tells of a policy of kvap.dev that shadow has made, beside one of Kyverno
// that cannot be changed.
func (w PolicyState) shadowedApart() bool {
	return w.Carrier != nil && w.Carrier.GetAnnotations()[v1alpha1.HistoryKey] != "" && modeOf(w.Carrier) == v1alpha1.ModeShadow && w.Stage() == v1alpha1.StageShadow
}

// Stranded tells of a policy of kvap.dev that shadow has made beside one of Kyverno that is
// gone since, by hand or with its definition: nobody enforces it.
func (w PolicyState) Stranded() bool { return w.Source == nil && w.shadowedApart() }

// OutOfShadow is the command that has kvap enforce a policy of kvap.dev, and the one that
// removes it.
func (w PolicyState) OutOfShadow() (enforce, remove string) {
	return "kvap migrate enforce " + w.Title() + " --accept REASON", "kubectl delete " + w.objectTitle(v1alpha1.Group)
}

// outOfShadow tells of a policy of kvap.dev that shadow has made, and that is all that is
// left of a policy.
func (w PolicyState) outOfShadow() bool {
	return w.Source == nil && w.Carrier != nil && w.Carrier.GetAnnotations()[v1alpha1.HistoryKey] != "" && w.Stage() == v1alpha1.StageShadow
}
