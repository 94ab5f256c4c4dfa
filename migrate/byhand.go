package migrate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What users do beside a migration is theirs: who put a policy into shadow, as to end an
// outage, has decided that, and who applied one of kvap.dev has it judge.

// Stopped tells of a policy that kvap took over, and that somebody has put into a mode since
// in which nobody enforces it.
func (w PolicyState) Stopped() bool {
	judge := w.judge()
	return judge != nil && w.status().Doing == nil && slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageEnforced, v1alpha1.StageAdopted}, w.Stage()) &&
		slices.Contains([]string{v1alpha1.ModeShadow, v1alpha1.ModeOff}, modeOf(judge))
}

// judge is the policy by which kvap judges in Kyverno's place; nil where there is none.
func (w PolicyState) judge() *unstructured.Unstructured {
	switch {
	case w.Carrier != nil:
		return w.Carrier
	case w.Source != nil && isOff(w.Source):
		return w.Source
	}
	return nil
}

// Restart is the command that has kvap enforce a policy again that somebody has stopped.
func (w PolicyState) Restart() string {
	return "kubectl annotate --overwrite " + objectTitle(w.judge()) + " " + v1alpha1.ModeKey + "=" + v1alpha1.ModeEnforce
}

// refuseStopped is an error where a verb would undo what somebody has decided.
func (w PolicyState) refuseStopped() error {
	if !w.Stopped() {
		return nil
	}
	return fmt.Errorf("somebody has put it into the mode %s, and nobody enforces it; to have kvap enforce it again: %s", modeOf(w.judge()), w.Restart())
}

// takesPlace tells of a policy of kvap.dev with the spec of the source that enforces it, and
// that no record knows: the files of --output-dir were applied.
func (w PolicyState) takesPlace() bool {
	if w.Source == nil || w.Carrier == nil || !w.closed() || modeOf(w.Carrier) != v1alpha1.ModeEnforce ||
		w.status().Doing == nil && !slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow}, w.Stage()) {
		return false
	}
	want, err := w.carrier(v1alpha1.ModeEnforce)
	return err == nil && Digest(want.Object) == Digest(w.Carrier.Object)
}

// TakesPlace is takesPlace, where it was seen to enforce.
func (w PolicyState) TakesPlace() bool {
	return w.takesPlace() && w.CarrierStatus.as(v1alpha1.ModeEnforce, w.Carrier).Yes
}

// outOfShadow tells of a policy of kvap.dev that shadow has made, and that is all that is
// left of a policy.
func (w PolicyState) outOfShadow() bool {
	return w.Source == nil && w.Carrier != nil && w.Carrier.GetAnnotations()[v1alpha1.HistoryKey] != "" && w.Stage() == v1alpha1.StageShadow
}

// Lost are the rules that the record has and nobody carries out.
func (w PolicyState) Lost() (names []string) {
	if w.Source != nil || w.Carrier == nil || w.status().Original == nil || w.Stage() == v1alpha1.StageShadow {
		return nil
	}
	original, err := restored(w.status().Original)
	if err != nil {
		return nil
	}
	has := RuleNames(w.Carrier)
	for _, name := range RuleNames(original) {
		if !slices.Contains(has, name) {
			names = append(names, name)
		}
	}
	return names
}

// objectTitle is what kubectl calls a policy.
func objectTitle(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	title := strings.TrimSuffix(strings.ToLower(gvk.Kind), "y") + "ies." + gvk.Group + " " + o.GetName()
	if o.GetNamespace() != "" {
		title += " -n " + o.GetNamespace()
	}
	return title
}
