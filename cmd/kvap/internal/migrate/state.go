package migrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A PolicyState is what is known of one policy at a moment. It is read anew before each
// move, so that it does not matter who made the last one, or whether it was killed.
type PolicyState struct {
	Now time.Time
	// Name is that of the record, and Ref the source, which may be gone.
	Name string
	Ref  v1alpha1.PolicyReference
	// Record is nil where nothing was done.
	Record *v1alpha1.Migration
	// Source is the policy in Kyverno's kind; nil where it is gone.
	Source *unstructured.Unstructured
	// Unserved tells that the cluster does not know its kind: Kyverno was uninstalled.
	Unserved bool
	// Closed is what the API server says to those who make or change such a policy; "" where
	// it takes that, or nobody has tried. Kyverno 1.20 has it deny both.
	Closed string
	// Carrier is the policy in kvap's kind, of the same name; nil where there is none.
	Carrier *unstructured.Unstructured
	// SourceStatus and CarrierStatus are what the controller says of them.
	SourceStatus, CarrierStatus ControllerStatus
	// Kyverno tells whether Kyverno judges requests by the source as it is, and GivenUp that
	// it carries out no policy of the kind any more.
	Kyverno Judging
	GivenUp bool
	// Around is what decides, beside the source itself, what it says: its exceptions, and
	// the objects that its rules read. Only Enforce asks for it.
	Around []map[string]any
	// Unread is why some of that is not known.
	Unread string
	// Staying are the rules, as written, that nothing but Kyverno carries out.
	Staying []string
}

// Title is what a user calls the policy on the command line, whatever his namespace is.
func (w PolicyState) Title() string {
	return strings.TrimPrefix(w.Ref.Namespace+"/"+w.Ref.Name, "/")
}

// Judging tells whether somebody judges, or why that is not known.
type Judging struct {
	Yes bool
	Why string
}

// ControllerStatus is what the controller says of a policy.
type ControllerStatus struct {
	// Exists tells that it says something.
	Exists bool
	// UID is that of the policy that it speaks of: one may be made anew under its name.
	UID  types.UID
	Mode string
	// Generation is of the version that it speaks of.
	Generation int64
	// Judging tells whether requests are judged as the mode has it.
	Judging Judging
}

// as tells whether the controller was seen to judge by a policy, as it is, in a mode.
func (s ControllerStatus) as(mode string, policy *unstructured.Unstructured) Judging {
	switch {
	case !s.Exists:
		return Judging{Why: "the controller has not said anything of it; see that one runs: kvap-controller --help"}
	case s.UID != policy.GetUID():
		return Judging{Why: "the controller speaks of an earlier policy of this name"}
	case s.Mode != mode:
		return Judging{Why: "the controller has it in the mode " + s.Mode}
	case s.Generation < policy.GetGeneration():
		return Judging{Why: "the controller has not seen its latest version"}
	}
	return s.Judging
}

// status is the status of the record, also where there is none.
func (w PolicyState) status() v1alpha1.MigrationStatus {
	if w.Record == nil {
		return v1alpha1.MigrationStatus{Stage: v1alpha1.StageNone}
	}
	return w.Record.Status
}

// Stage is where the policy stands.
func (w PolicyState) Stage() v1alpha1.MigrationStage {
	if stage := w.status().Stage; stage != "" {
		return stage
	}
	return v1alpha1.StageNone
}

// doing tells whether a verb is under way.
func (w PolicyState) doing(verb string) bool {
	d := w.status().Doing
	return d != nil && d.Verb == verb
}

// isOff tells that Kyverno is switched off in a policy, and kvap goes on.
func isOff(policy *unstructured.Unstructured) bool {
	return policy.GetAnnotations()[v1alpha1.KyvernoKey] == v1alpha1.KyvernoOff
}

// modeOf is the mode that a policy asks for; "" where it does not.
func modeOf(policy *unstructured.Unstructured) string {
	return policy.GetAnnotations()[v1alpha1.ModeKey]
}

// recordedMode is the mode that the record gives the source, where that names none; "" where it
// gives none.
func (w PolicyState) recordedMode() string {
	if w.status().Shadows() {
		return v1alpha1.ModeShadow
	}
	return ""
}

// leftBehind tells of a policy of kvap.dev that an enforce made when a rollback had ended
// already: nothing that is written can be made to depend on the record.
func (w PolicyState) leftBehind() bool {
	return w.Source != nil && w.Carrier != nil && w.Carrier.GetAnnotations()[v1alpha1.HistoryKey] != "" && w.status().Doing == nil && modeOf(w.Carrier) != v1alpha1.ModeShadow &&
		slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow}, w.Stage()) && !isOff(w.Source) && !KyvernoHasRest(w.Source)
}

// changed tells that the source is another than the one that was recorded.
func (w PolicyState) changed() bool {
	kept := w.status().Original
	return w.Source != nil && kept != nil && !KyvernoHasRest(w.Source) && kept.Digest != w.digest()
}

// sameAsRecorded is an error where the source is another than the one that was recorded,
// and that the policy of kvap.dev was made of: to delete it would lose what is new in it.
func (w PolicyState) sameAsRecorded(verb string) error {
	if !w.changed() {
		return nil
	}
	return fmt.Errorf("the policy has changed since %s was begun, and what is new in it would be judged by nobody; "+
		"go back with kvap migrate rollback %s, and begin again", verb, w.Title())
}

// Enforces tells whether kvap was seen to enforce the source, with Kyverno switched off in
// it, whoever did that.
func (w PolicyState) Enforces() Judging {
	if w.Source == nil || !isOff(w.Source) {
		return Judging{Why: "Kyverno is not switched off in it"}
	}
	return w.SourceStatus.as(v1alpha1.ModeEnforce, w.Source)
}

// KyvernoIsOff tells that admission is switched off in a policy.
func KyvernoIsOff(policy *unstructured.Unstructured) bool {
	admission, ok, _ := unstructured.NestedBool(policy.Object, "spec", "admission")
	enabled, known, _ := unstructured.NestedBool(policy.Object, "spec", "evaluation", "admission", "enabled")
	return ok && !admission || known && !enabled
}

// KyvernoHasRest tells that a policy has only those rules left that nothing else
// carries out.
func KyvernoHasRest(policy *unstructured.Unstructured) bool {
	return policy.GetAnnotations()[v1alpha1.KyvernoKey] == v1alpha1.KyvernoSome
}

// RuleNames are the names of the rules of a policy.
func RuleNames(policy *unstructured.Unstructured) []string {
	var out []string
	eachRule(policy.Object["spec"], func(name string, _ map[string]any) { out = append(out, name) })
	return out
}

// eachRule calls do with every rule of a spec.
func eachRule(spec any, do func(name string, rule map[string]any)) {
	m, _ := spec.(map[string]any)
	rules, _ := m["rules"].([]any)
	for _, one := range rules {
		if rule, ok := one.(map[string]any); ok {
			name, _ := rule["name"].(string)
			do(name, rule)
		}
	}
}
