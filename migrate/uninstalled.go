package migrate

import (
	"fmt"

	"github.com/kvap/kvap/api/v1alpha1"
)

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
