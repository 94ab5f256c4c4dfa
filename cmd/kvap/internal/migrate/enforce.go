package migrate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// refuseEnforce wants a comparison that speaks for the policy, or a reason. What was
// begun was accepted then.
func (g Goal) refuseEnforce(w PolicyState) error {
	if err := w.refuseStopped(); err != nil {
		return err
	}
	if w.doing(Enforce) || w.Stage() == v1alpha1.StageEnforced || w.Stage() == v1alpha1.StageAdopted {
		return nil
	}
	if err := w.refuseChanging(); err != nil {
		return err
	}
	if w.outOfShadow() && (modeOf(w.Carrier) == v1alpha1.ModeEnforce || g.Accept != "") {
		return nil // there is nothing to compare it with
	}
	if err := w.refuseAbsent(); err != nil {
		return err
	}
	if w.leftBehind() && !w.closed() {
		return fmt.Errorf("the policy of kvap.dev is of an earlier enforce, which a rollback has overtaken: both sides enforce it; kvap migrate rollback %s takes it away", w.Title())
	}
	if err := w.refuseOtherCarrier(); err != nil {
		return err
	}
	if err := g.refuseClosedWay(w); err != nil {
		return err
	}
	if w.takesPlace() {
		return nil // it is what is enforced already
	}
	if w.Unread != "" && g.Accept == "" {
		return fmt.Errorf("%s; or say why it may go on: --accept REASON", w.Unread)
	}
	for _, one := range w.Around {
		o := unstructured.Unstructured{Object: one}
		if gvk := o.GroupVersionKind(); gvk.Group == ExceptingGroup && gvk.Kind == "PolicyException" && g.Accept == "" {
			return fmt.Errorf("the PolicyException %s/%s of %s excepts from it, which kvap does not read: what Kyverno admits for it would be denied; "+
				"write it into the policy as a match condition, or say why it may go on: --accept REASON", o.GetNamespace(), o.GetName(), ExceptingGroup)
		}
	}
	if rules := twiceRules(w.Source); len(rules) > 0 && g.Accept == "" {
		return fmt.Errorf("%s changes again what it has changed, so it may act twice while both sides enforce it (%s); "+
			"add a precondition that it is not done yet, or say why it may go on: --accept REASON", strings.Join(rules, ", "), diag.ActsTwice)
	}
	if g.Unrecorded && g.Accept == "" {
		return fmt.Errorf("files have no record of a comparison; say what speaks for it: --accept REASON")
	}
	if err := Speaks(w.status().Comparison, w.comparedDigest(), w.Now, g.MaxAge); err != nil && g.Accept == "" {
		return fmt.Errorf("%w; %s say why it may go on: --accept REASON", err, w.wayToCompare())
	}
	return nil
}

// refuseChanging keeps MutatingPolicies and GeneratingPolicies with Kyverno as long as it is
// there: it takes none of the former with admission off, keeps what the latter made in step
// whatever they say of admission, and kvap.dev has no kind for them.
func (w PolicyState) refuseChanging() error {
	why := map[string]string{
		"MutatingPolicy":   "whose admission is off is refused by Kyverno",
		"GeneratingPolicy": "is carried out by Kyverno in the background, whatever it says of admission",
	}[strings.TrimPrefix(w.Ref.Kind, "Namespaced")]
	if w.Ref.Group != ExceptingGroup || why == "" {
		return nil
	}
	return fmt.Errorf("a %s %s, and kvap.dev has no such kind, so that nothing could switch Kyverno off for it; "+
		"leave it with Kyverno, and annotate it with %s: %s when Kyverno goes", w.Ref.Kind, why, v1alpha1.ModeKey, v1alpha1.ModeEnforce)
}

// wayToCompare is what could speak for a policy. Nothing does for rules that generate
// objects, and for those that change objects only a log.
func (w PolicyState) wayToCompare() string {
	changes := false
	eachRule(w.Source.Object["spec"], func(name string, rule map[string]any) {
		changes = changes || rule["mutate"] != nil && !w.stays(name)
	})
	if changes && w.closed() {
		return "no comparison can speak for rules that change objects, for Kyverno carries them out no more;"
	}
	if changes {
		return "for rules that change objects, run kvap migrate compare " + w.Title() + " with --audit-log, of the level Request, or"
	}
	return "run kvap migrate compare " + w.Title() + ", or"
}

// ExceptingGroup is that of the policies in CEL, and of exceptions from them, which kvap
// does not read.
const ExceptingGroup = "policies.kyverno.io"

// enforce has kvap enforce the policy, sees that it does, and then switches Kyverno
// off. What was begun goes on in the way that was recorded.
func (g Goal) enforce(w PolicyState) (*Move, error) {
	if err := g.refuseEnforce(w); err != nil {
		return nil, err
	}
	if w.Stage() == v1alpha1.StageAdopted {
		return nil, fmt.Errorf("it is adopted: kvap enforces it, from a policy of kvap.dev")
	}
	way := g.Way
	if w.doing(Enforce) || w.Stage() == v1alpha1.StageEnforced {
		way = w.status().Way
	}
	if way != v1alpha1.WayRemove && w.closed() && w.Source != nil && !isOff(w.Source) && !KyvernoHasRest(w.Source) {
		g.Way = v1alpha1.WayRemove
		return g.begin(w), nil // it was closed after that
	}
	if way != v1alpha1.WayReplace && !w.closed() && len(w.Staying) > 0 && w.Source != nil && !isOff(w.Source) {
		return nil, fmt.Errorf("nothing but Kyverno carries out %s, and nobody would after this; the way is replace", strings.Join(w.Staying, ", "))
	}
	if way == v1alpha1.WayAdmission {
		return g.enforceInPlace(w)
	}
	return g.enforceElsewhere(w, way)
}

// enforceInPlace leaves the policy where it is, with admission off.
func (g Goal) enforceInPlace(w PolicyState) (*Move, error) {
	if w.Source == nil {
		return nil, fmt.Errorf("the policy was deleted; kvap migrate rollback %s makes it again, as it was recorded", w.Title())
	}
	if w.doing(Enforce) && w.Stage() != v1alpha1.StageEnforced && w.changed() {
		return g.enforceChanged(w)
	}
	if m := w.annotated(w.Source, "enforce-1-native", "have kvap enforce it beside Kyverno", map[string]string{v1alpha1.ModeKey: v1alpha1.ModeEnforce}); m != nil {
		return m, nil
	}
	if seen := w.SourceStatus.as(v1alpha1.ModeEnforce, w.Source); !seen.Yes {
		return wait("see that kvap enforces it", seen.Why), nil
	}
	if isOff(w.Source) {
		return nil, nil
	}
	o := w.Source.DeepCopy()
	SwitchOff(o)
	annotate(o, map[string]string{v1alpha1.HistoryKey: w.history()})
	return &Move{Does: "switch Kyverno off for it: admission is false", Part: "enforce-2-kyverno-off", Write: o}, nil
}

// enforceChanged goes on with a policy that somebody has changed since enforce was begun,
// where what it is now was compared; a reason was given for what it was then.
func (g Goal) enforceChanged(w PolicyState) (*Move, error) {
	if Speaks(w.status().Comparison, w.comparedDigest(), w.Now, g.MaxAge) == nil {
		return g.begin(w), nil
	}
	stands := "Kyverno judges by it still"
	if isOff(w.Source) {
		stands = "Kyverno is switched off in it, so kvap alone enforces it as it is now"
	}
	return nil, fmt.Errorf("the policy has changed since enforce was begun, and is not what was compared; %s; kvap migrate compare %s, and enforce again, "+
		"or go back with kvap migrate rollback %s", stands, w.Title(), w.Title())
}

// SwitchOff changes a policy so that Kyverno no longer judges requests by it, and
// kvap goes on.
func SwitchOff(o *unstructured.Unstructured) {
	annotate(o, map[string]string{v1alpha1.KyvernoKey: v1alpha1.KyvernoOff})
	where := []string{"spec", "admission"}
	if o.GroupVersionKind().Group != kyvernoGroup {
		where = []string{"spec", "evaluation", "admission", "enabled"}
	}
	// It fails only where something in between is not a map, which no API server has let in.
	_ = unstructured.SetNestedField(o.Object, false, where...)
}

// enforceElsewhere has a policy of kvap.dev take over.
func (g Goal) enforceElsewhere(w PolicyState, way v1alpha1.MigrationWay) (*Move, error) {
	if w.doing(Enforce) || w.Stage() == v1alpha1.StageEnforced {
		if err := w.sameAsRecorded(Enforce); err != nil {
			return nil, err
		}
	}
	if w.Source != nil { // Kyverno has the time that kvap takes to hear of it
		if m, err := w.orphan("enforce-1-native"); m != nil || err != nil {
			return m, err
		}
	}
	if m, err := w.carry("enforce-1-native", v1alpha1.ModeEnforce); m != nil || err != nil {
		return m, err
	}
	if w.Source == nil {
		return nil, nil
	}
	if m := w.noteUnderWay(w.Carrier, "enforce-1-native"); m != nil && !KyvernoHasRest(w.Source) {
		return m, nil
	}
	if way == v1alpha1.WayRemove {
		return &Move{Does: "delete Kyverno's policy, which is in the " + g.kept(), Part: "enforce-2-kyverno-off", Delete: w.Source}, nil
	}
	if KyvernoHasRest(w.Source) {
		return nil, nil
	}
	kept, err := someRules(w.Source, func(name string) bool { return w.stays(name) })
	if err != nil {
		return nil, err
	}
	o := w.Source.DeepCopy()
	o.Object["spec"] = kept.Object["spec"]
	o.SetAnnotations(kept.GetAnnotations()) // one may say for which controllers of pods the rules are
	annotate(o, map[string]string{
		v1alpha1.ModeKey: v1alpha1.ModeOff, v1alpha1.HistoryKey: w.history(), v1alpha1.KyvernoKey: v1alpha1.KyvernoSome, v1alpha1.OrphanedKey: "",
	})
	return &Move{Does: "leave Kyverno the rules that only it carries out", Part: "enforce-2-kyverno-off", Write: o}, nil
}

// kept is where a policy that is deleted can be found.
func (g Goal) kept() string {
	if g.Unrecorded {
		return "files"
	}
	return "record"
}

// carry has a policy of kvap.dev judge in place of the source; nil where it is seen to.
func (w PolicyState) carry(part, mode string) (*Move, error) {
	if w.Carrier == nil {
		o, err := w.carrier(mode)
		if err != nil {
			return nil, err
		}
		does := "make a policy of kvap.dev with the same spec"
		if mode == v1alpha1.ModeShadow {
			does += ", without effect"
		}
		return &Move{Does: does, Part: part, Write: o}, nil
	}
	does, see := "have kvap enforce it", "see that kvap enforces it"
	if mode == v1alpha1.ModeShadow {
		does, see = "have kvap judge it without effect", "see that it is judged"
	}
	if m := w.annotated(w.Carrier, part, does, map[string]string{v1alpha1.ModeKey: mode}); m != nil {
		return m, nil
	}
	if seen := w.CarrierStatus.as(mode, w.Carrier); !seen.Yes {
		return wait(see, seen.Why), nil
	}
	return nil, nil
}

// refuseClosedWay wants a reason where rules are left that nobody carries out any more.
func (g Goal) refuseClosedWay(w PolicyState) error {
	switch {
	case !w.closed() || w.Source == nil:
		return nil
	case g.Way != "" && g.Way != v1alpha1.WayRemove && w.status().Doing == nil && w.Stage() != v1alpha1.StageEnforced:
		return fmt.Errorf("the way %s writes into Kyverno's policy, and the API server takes no change of it any more (%s); the way is remove", g.Way, w.Closed)
	case len(w.Staying) > 0 && g.Accept == "":
		return fmt.Errorf("nothing but Kyverno carries out %s, and Kyverno 1.20 carries out no policy of %s: nobody does; "+
			"rewrite it, or have kvap enforce the others, with all of it in the record: --accept REASON", strings.Join(w.Staying, ", "), kyvernoGroup)
	}
	return nil
}

// refuseOtherCarrier is an error where kvap.dev has a policy of the name already that is
// not what the source is.
func (w PolicyState) refuseOtherCarrier() error {
	switch {
	case w.Carrier == nil, w.takesPlace():
		return nil
	case !w.shadowedApart():
		return fmt.Errorf("kvap.dev has a policy of this name already, which no migration has made; rename or delete it")
	case w.Carrier.GetGeneration() > 1 || w.changed():
		return fmt.Errorf("the policy and that of kvap.dev in shadow beside it are no longer the same; kvap migrate rollback %[1]s and kvap migrate shadow %[1]s make it anew", w.Title())
	}
	return nil
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
	p, err := policyOf(w.Source)
	if err != nil {
		return "", err
	}
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
