package report

import (
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// Leftovers are what a cluster has without the controller.
type Leftovers struct {
	Native []StayingPolicy
	Ending []string // policies with rules that only the webhook judges
}

// A StayingPolicy is a native policy that API servers go on to enforce.
type StayingPolicy struct{ Name, Action string }

const howTheyGo = `To have them go too, set the policies to kvap.dev/mode: "off" and wait until kubectl get ptrans shows it, before you
uninstall. Afterwards delete what is left, the bindings first:

  kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller
  kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller   # from 1.36 on`

// Document says what stays in force, how it goes too, and what ends.
func (l Leftovers) Document() doc.Document {
	var d doc.Document
	if len(l.Native) == 0 {
		d.Sections = []doc.Section{{Text: "No native policy of the controller is in the cluster: nothing stays in force without it."}}
	} else {
		rows := [][]string{{"policy", "action"}}
		for _, p := range l.Native {
			rows = append(rows, []string{p.Name, p.Action})
		}
		d.Sections = []doc.Section{
			{Text: "These native policies stay in force without the controller. Nothing restores or updates them then:"}, {Table: rows}, {Text: howTheyGo},
		}
	}
	if len(l.Ending) > 0 {
		d.Sections = append(d.Sections, doc.Section{
			Text: "The webhook ends with the controller. Nobody judges by its rules of these policies then:\n\n  " + strings.Join(l.Ending, "\n  "),
		})
	}
	return d
}
