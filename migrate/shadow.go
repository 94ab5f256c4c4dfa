package migrate

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/api/v1alpha1"
)

func refuseShadow(w PolicyState) error {
	if err := w.refuseAbsent(); err != nil {
		return err
	}
	if !slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow}, w.Stage()) {
		return fmt.Errorf("it is %s already; kvap migrate rollback --to shadow leads back", w.Stage())
	}
	if isOff(w.Source) {
		return fmt.Errorf("kvap enforces it, and Kyverno is switched off in it: in shadow nobody would judge requests by it; kvap migrate rollback %s comes first", w.Title())
	}
	return nil
}

// shadow has kvap judge beside Kyverno, without effect.
func (g Goal) shadow(w PolicyState) (*Move, error) {
	if g.apart(w) {
		return g.shadowApart(w)
	}
	if m := annotated(w.Source, "shadow-1-beside", "have kvap judge it beside Kyverno, without effect", w.history(),
		map[string]string{v1alpha1.ModeKey: v1alpha1.ModeShadow}); m != nil {
		return m, nil
	}
	if seen := w.SourceStatus.as(v1alpha1.ModeShadow, w.Source); !seen.Yes {
		return wait("see that it is judged", seen.Why), nil
	}
	return nil, nil
}
