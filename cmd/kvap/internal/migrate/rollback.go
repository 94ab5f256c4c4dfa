package migrate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// rollback leads back in the reverse order: Kyverno judges again, is seen to, and then
// kvap lets go.
func (g Goal) rollback(w PolicyState) (*Move, error) {
	if w.Carrier != nil && w.Carrier.GetGeneration() > 1 && g.Accept == "" {
		return nil, fmt.Errorf("the policy of kvap.dev has changed since it took over, and going back loses that; say why it may: --accept REASON")
	}
	kept := w.status().Original
	if w.leftBehind() {
		kept = keepOriginal(w.Source, kept)
	}
	if kept == nil {
		return nil, fmt.Errorf("no record says what it was before, and kvap goes on enforcing; " +
			"where the steps are in a repository, take their components out there, the last first; else put the policy back as it was")
	}
	original, err := restored(kept)
	if err != nil {
		return nil, err
	}
	if w.Source == nil && w.Stage() != v1alpha1.StageEnforced && w.Stage() != v1alpha1.StageAdopted && w.Carrier == nil && !w.wasEnforced() {
		return nil, nil // somebody deleted it while it was Kyverno's
	}
	back := modeOf(original)
	switch {
	case g.To == v1alpha1.StageShadow && g.InFiles:
		back = v1alpha1.ModeShadow
	case g.To == v1alpha1.StageShadow:
		back = "" // which leaves it to the record
	}
	if g.To == v1alpha1.StageShadow && w.shadowedApart() {
		return nil, nil
	}
	if err := w.refuseBack(back); err != nil {
		return nil, err
	}
	if m := w.restore(original, back, g.kept()); m != nil {
		return m, nil
	}
	if m := w.noteUnderWay(w.Source, "rollback-1-kyverno-on"); m != nil && !w.closed() && (w.wasEnforced() || w.Stage() != v1alpha1.StageShadow) {
		return m, nil
	}
	if (w.Carrier != nil && modeOf(w.Carrier) != v1alpha1.ModeShadow || modeOf(w.Source) == v1alpha1.ModeEnforce && back != v1alpha1.ModeEnforce) && !w.Kyverno.Yes {
		return wait("see that Kyverno enforces it", w.Kyverno.Why), nil
	}
	return g.letGo(w, back), nil
}

// wasEnforced tells that a verb was under way by which the source may have gone.
func (w PolicyState) wasEnforced() bool {
	return w.doing(Enforce) || w.doing(Adopt) || w.doing(Rollback) && w.status().Way != ""
}

// restore makes the source what Kyverno judged by; nil where it is. What users have
// changed in it since stays.
func (w PolicyState) restore(original *unstructured.Unstructured, back, kept string) *Move {
	meanwhile := v1alpha1.ModeEnforce // until Kyverno is seen to judge
	if w.Carrier != nil {
		meanwhile = back // the carrier judges so long
	}
	const part = "rollback-1-kyverno-on"
	if w.Source == nil {
		o := original.DeepCopy()
		annotate(o, map[string]string{v1alpha1.ModeKey: meanwhile, v1alpha1.HistoryKey: w.history(), v1alpha1.KyvernoKey: ""})
		return &Move{Does: "make Kyverno's policy again, as it is in the " + kept, Part: part, Write: o}
	}
	o := w.Source.DeepCopy()
	switch {
	case isOff(w.Source):
		restoreAdmission(o, original)
		annotate(o, map[string]string{v1alpha1.KyvernoKey: "", v1alpha1.HistoryKey: w.history()})
		if w.Carrier != nil {
			annotate(o, map[string]string{v1alpha1.ModeKey: back})
		}
		return &Move{Does: "switch Kyverno on for it", Part: part, Write: o}
	case KyvernoHasRest(w.Source):
		o.Object["spec"] = runtime.DeepCopyJSONValue(original.Object["spec"])
		o.SetAnnotations(original.GetAnnotations())
		annotate(o, map[string]string{v1alpha1.ModeKey: meanwhile, v1alpha1.HistoryKey: w.history()})
		return &Move{Does: "give Kyverno all rules back", Part: part, Write: o}
	case len(orphaned(w.Source)) > 0:
		o = unorphaned(o)
		annotate(o, map[string]string{v1alpha1.HistoryKey: w.history()})
		return &Move{Does: "have what its rules generate go with them again", Part: part, Write: o}
	}
	return nil
}

// restoreAdmission gives a policy the admission of the recorded one.
func restoreAdmission(o, original *unstructured.Unstructured) {
	spec, _ := o.Object["spec"].(map[string]any)
	switchOn(spec, true)
	was, _ := original.Object["spec"].(map[string]any)
	if v, ok := was["admission"]; ok {
		spec["admission"] = v
	}
	if evaluation, ok := was["evaluation"].(map[string]any); ok {
		if v, ok := evaluation["admission"]; ok {
			_ = unstructured.SetNestedField(o.Object, runtime.DeepCopyJSONValue(v), "spec", "evaluation", "admission") // as in SwitchOff
		}
	}
}

// forget takes out of a policy that is back what says so, nil where nothing does. Until
// the record has ended it stays: whoever decided before that to have kvap enforce the
// policy, and is slow, finds another version than he read, and is refused.
func (w PolicyState) forget() *Move {
	if w.Source == nil || w.closed() {
		return nil
	}
	return w.annotated(w.Source, "rollback-2-native-off", "take what kvap wrote into it out again", map[string]string{v1alpha1.HistoryKey: ""})
}

// letGo ends kvap's part, once Kyverno judges.
func (g Goal) letGo(w PolicyState, back string) *Move {
	const part = "rollback-2-native-off"
	if w.Carrier != nil {
		return &Move{Does: "delete the policy of kvap.dev", Part: part, Delete: w.Carrier}
	}
	does := "have kvap let go of it"
	if g.To == v1alpha1.StageShadow {
		does = "have kvap judge it in shadow again"
	}
	if m := w.annotated(w.Source, part, does, map[string]string{v1alpha1.ModeKey: back}); m != nil {
		return m
	}
	switch {
	case w.CarrierStatus.Exists:
		return &Move{Does: "see that kvap has let go", Wait: "the controller still judges by the policy of kvap.dev", Optional: true}
	case back != v1alpha1.ModeEnforce && w.SourceStatus.Exists && w.SourceStatus.Mode == v1alpha1.ModeEnforce:
		return &Move{Does: "see that kvap has let go", Wait: "the controller still enforces it", Optional: true}
	case g.To == v1alpha1.StageShadow && !w.SourceStatus.as(v1alpha1.ModeShadow, w.Source).Yes:
		return &Move{Does: "see that it is in shadow", Wait: w.SourceStatus.as(v1alpha1.ModeShadow, w.Source).Why, Optional: true}
	}
	return nil
}

// refuseBack says that Kyverno never takes a policy back, and what can be done, where the
// way back writes what the API server denies, or kvap enforces the policy: that Kyverno's
// is left standing cannot be noted in it, as noteUnderWay does, and whoever decided before that to
// delete it, and is slow, would.
func (w PolicyState) refuseBack(back string) error {
	if !w.closed() {
		return nil
	}
	enforced := w.Carrier != nil && modeOf(w.Carrier) == v1alpha1.ModeEnforce || w.Source != nil && modeOf(w.Source) == v1alpha1.ModeEnforce
	if !enforced && w.Source != nil && !isOff(w.Source) && !KyvernoHasRest(w.Source) && modeOf(w.Source) == back {
		return nil
	}
	if !enforced {
		on := "kvap migrate enforce " + w.Title() + " leads on"
		if w.Stopped() {
			on = "to have kvap enforce it again: " + w.Restart()
		}
		return fmt.Errorf("kvap goes on without effect: the API server takes no change of Kyverno's policy any more (%s); %s", w.Closed, on)
	}
	stop := "kubectl annotate --overwrite " + w.objectTitle(v1alpha1.Group) + " kvap.dev/mode=shadow"
	if w.Carrier == nil {
		stop = "kvap migrate adopt " + w.Title() + ", and then " + stop
	}
	return fmt.Errorf("kvap goes on enforcing: Kyverno never takes it back, for the API server takes no policy of %s any more (%s); to deny nothing by it: %s; "+
		"Kyverno 1.19 or earlier, if you install that, gets it from the record by the same command", kyvernoGroup, w.Closed, stop)
}
