package migrate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// From its version 1.20 on, Kyverno carries out no policy of kyverno.io, and has the API
// server deny what makes or changes one. To delete one passes. So nothing is written into
// such a policy: one of kvap.dev takes over, and then the old one is deleted.

// What users do beside a migration is theirs: who put a policy into shadow, as to end an
// outage, has decided that, and who applied one of kvap.dev has it judge.

// closed tells that the API server takes no new policy of the source's kind.
func (w PolicyState) closed() bool { return w.Closed != "" }

// IsLegacy tells of a kind that Kyverno 1.20 gives up.
func IsLegacy(ref v1alpha1.PolicyReference) bool {
	return ref.Group == kyvernoGroup && (ref.Kind == "ClusterPolicy" || ref.Kind == "Policy")
}

// apart tells that policies of kvap.dev take part, and nothing is written into those of
// Kyverno.
func (g Goal) apart(w PolicyState) bool { return w.closed() || g.Apart && IsLegacy(w.Ref) }

// refuseClosed is an error where a move would write what the API server denies.
func (w PolicyState) refuseClosed(m *Move) error {
	if !w.closed() || m == nil || m.Write == nil || m.Write.GroupVersionKind().Group == v1alpha1.Group {
		return nil
	}
	return fmt.Errorf("%s: the API server takes no change of it any more: %s", m.Does, w.Closed)
}

// refuseAbsent is an error where there is no policy of Kyverno's to go on from.
func (w PolicyState) refuseAbsent() error {
	switch {
	case w.Stranded():
		enforce, remove := w.OutOfShadow()
		return fmt.Errorf("Kyverno's policy is gone, and that of kvap.dev is in shadow: nobody enforces it; %s has kvap do so, %s removes it", enforce, remove) //nolint:staticcheck // a name
	case w.Source == nil:
		return fmt.Errorf("the cluster has no such policy; kvap status -A lists what there is")
	}
	return nil
}

// Stopped tells of a policy that kvap took over, and that somebody has put into a mode since
// in which nobody enforces it.
func (w PolicyState) Stopped() bool {
	judge := w.judgedBy()
	return judge != nil && w.status().Doing == nil && slices.Contains([]v1alpha1.MigrationStage{v1alpha1.StageEnforced, v1alpha1.StageAdopted}, w.Stage()) &&
		slices.Contains([]string{v1alpha1.ModeShadow, v1alpha1.ModeOff}, modeOf(judge))
}

// judgedBy is the policy by which kvap judges in Kyverno's place; nil where there is none.
func (w PolicyState) judgedBy() *unstructured.Unstructured {
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
	return "kubectl annotate --overwrite " + w.objectTitle(w.judgedBy().GroupVersionKind().Group) + " " + v1alpha1.ModeKey + "=" + v1alpha1.ModeEnforce
}

// refuseStopped is an error where a verb would undo what somebody has decided.
func (w PolicyState) refuseStopped() error {
	if !w.Stopped() {
		return nil
	}
	return fmt.Errorf("somebody has put it into the mode %s, and nobody enforces it; to have kvap enforce it again: %s", modeOf(w.judgedBy()), w.Restart())
}

// refuseGone says what comes first where the cluster does not know the kind of a policy
// any more, and the policy has gone with it. Nobody has said that it is not wanted.
func (g Goal) refuseGone(w PolicyState) error {
	if w.Source != nil || !w.Unserved || (g.Verb == Enforce || g.Verb == Adopt) && w.Carrier != nil {
		return nil
	}
	if g.Verb == Adopt && w.status().Original != nil && (w.Stage() == v1alpha1.StageEnforced || w.doing(Adopt)) {
		return nil // the record has it, and kvap enforces it as it was
	}
	gone := fmt.Sprintf("the cluster does not know the kind %s of %s any more, and the policy has gone with it", w.Ref.Kind, w.Ref.Group)
	const first = "install Kyverno, or at least its definitions, first (1.20 and later enforce no policy of kyverno.io)"
	switch {
	case w.Carrier != nil:
		return fmt.Errorf("%s; kvap goes on enforcing; to go back, %s", gone, first)
	case w.status().Original == nil:
		return fmt.Errorf("%s; %s, and apply the policy", gone, first)
	case w.Stage() == v1alpha1.StageEnforced || w.wasEnforced():
		return fmt.Errorf("%s; the record has the policy as it was: %s, and kvap migrate rollback %s makes it again", gone, first, w.Title())
	}
	return fmt.Errorf("%s; the record has the policy as it was (kubectl get migration %s -o jsonpath='{.status.original.policy}'): %s, and apply it; "+
		"or delete the record", gone, w.Name, first)
}
