package report

import "io"

// Leftovers are what a cluster has without the controller.
type Leftovers struct {
	Native []StayingPolicy
	Ending []string // policies with rules that only the webhook judges
}

// A StayingPolicy is a native policy that API servers go on to enforce.
type StayingPolicy struct{ Name, Action string }

const howTheyGo = `
To have them go too, set the policies to kvap.dev/mode: "off" and wait until kubectl get ptrans shows it, before you
uninstall. Afterwards delete what is left, the bindings first:

  kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller
  kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller   # from 1.36 on`

// WriteText writes what stays in force, how it goes too, and what ends.
func (l Leftovers) WriteText(w io.Writer) error {
	ending := ""
	if len(l.Ending) > 0 {
		ending = "\n\nThe webhook ends with the controller. Nobody judges by its rules of these policies then:\n"
		for _, name := range l.Ending {
			ending += "\n  " + inLine(name)
		}
	}
	if len(l.Native) == 0 {
		_, err := io.WriteString(w, "No native policy of the controller is in the cluster: nothing stays in force without it."+ending+"\n")
		return err
	}
	if _, err := io.WriteString(w, "These native policies stay in force without the controller. Nothing restores or updates them then:\n\n"); err != nil {
		return err
	}
	rows := [][]string{{"POLICY", "ACTION"}}
	for _, p := range l.Native {
		rows = append(rows, []string{p.Name, p.Action})
	}
	return writeTable(w, rows, howTheyGo+ending)
}
