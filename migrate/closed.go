package migrate

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// From its version 1.20 on, Kyverno carries out no policy of kyverno.io, and has the API
// server deny what makes or changes one. To delete one passes. So nothing is written into
// such a policy: one of kvap.dev takes over, and then the old one is deleted.

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

// shadowedApart tells of a policy of kvap.dev that shadow has made, beside one of Kyverno
// that cannot be changed.
func (w PolicyState) shadowedApart() bool {
	return w.Carrier != nil && w.Carrier.GetAnnotations()[v1alpha1.HistoryKey] != "" && modeOf(w.Carrier) == v1alpha1.ModeShadow && w.Stage() == v1alpha1.StageShadow
}

// Stranded tells of a policy of kvap.dev that shadow has made beside one of Kyverno that is
// gone since, by hand or with its definition: nobody enforces it.
func (w PolicyState) Stranded() bool { return w.Source == nil && w.shadowedApart() }

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

// OutOfShadow is the command that has kvap enforce a policy of kvap.dev, and the one that
// removes it.
func (w PolicyState) OutOfShadow() (enforce, remove string) {
	return "kvap migrate enforce " + w.Title() + " --accept REASON", "kubectl delete " + objectTitle(w.Carrier)
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

// refuseBack says that Kyverno never takes a policy back, and what can be done, where the
// way back writes what the API server denies, or kvap enforces the policy: that Kyverno's
// is left standing cannot be noted in it, as held does, and whoever decided before that to
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
	stop := "kubectl annotate --overwrite " + w.carrierTitle() + " kvap.dev/mode=shadow"
	if w.Carrier == nil {
		stop = "kvap migrate adopt " + w.Title() + ", and then " + stop
	}
	return fmt.Errorf("kvap goes on enforcing: Kyverno never takes it back, for the API server takes no policy of %s any more (%s); to deny nothing by it: %s; "+
		"Kyverno 1.19 or earlier, if you install that, gets it from the record by the same command", kyvernoGroup, w.Closed, stop)
}

// carrierTitle is what kubectl calls the policy of kvap.dev.
func (w PolicyState) carrierTitle() string {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(w.Ref.Kind))
	o.SetNamespace(w.Ref.Namespace)
	o.SetName(w.Ref.Name)
	return objectTitle(o)
}
