package live

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/report"
)

// uninstallSteps are the commands that take Kyverno away, in order: what makes webhook
// configurations ends before these go, for it would make them again; one that is left with
// failurePolicy Fail denies what it matches. The definitions go last, and every object
// with them.
func uninstallSteps(f report.Finish, namespace string) []string {
	hooks, empty := 0, []string{}
	for _, p := range f.Parts {
		switch {
		case strings.HasSuffix(p.Kind, "WebhookConfiguration"):
			hooks++
		case p.Owner == "Kyverno" && p.Objects == 0 && p.Next != notCounted:
			empty = append(empty, p.Name)
		}
	}
	out := []string{
		fmt.Sprintf("kubectl scale deployment -n %s -l app.kubernetes.io/part-of=kyverno --replicas=0 ends Kyverno, which would make its webhook configurations again.", namespace),
		fmt.Sprintf("kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l %s=kyverno takes these away (there are %d): at once, for one that is left "+
			"with failurePolicy Fail denies what it matches.", kyvernoLabel, hooks),
		fmt.Sprintf("helm uninstall kyverno -n %s removes the rest; helm get manifest kyverno -n %[1]s says before whether the definitions are in it.", namespace),
	}
	if len(empty) > 0 {
		out = append(out, "kubectl delete crd "+strings.Join(empty, " ")+" takes the definitions away of which there are no objects.")
	}
	return out
}
