package registration

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// always are the namespaces that are never judged, whatever the user says: what is
// there has to come up before a webhook can answer.
func always() []string { return []string{"kube-node-lease", "kube-system"} }

// lockup says why the targets of a policy must not wait for a webhook; "" if they
// may.
func lockup(targets []ruleTarget) string {
	for _, t := range targets {
		switch t.group {
		case "authentication.k8s.io", "authorization.k8s.io":
			return fmt.Sprintf("it is about %s, which the API server asks for while it decides on the webhook's own requests", t.resource)
		}
	}
	return ""
}

// risk says what may become difficult while no webhook answers; "" if nothing.
func risk(targets []ruleTarget) string {
	for _, t := range targets {
		switch t.group + "/" + t.plural() {
		case "/nodes", "certificates.k8s.io/certificatesigningrequests":
			return fmt.Sprintf("no node can join while the webhook is down, because the policy is about %s and its failure policy is Fail", t.resource)
		}
	}
	return ""
}

// Check tells why configurations must not be written: a webhook that must answer
// and is asked about what it needs itself to come up. It looks at the objects only,
// however they were made.
func Check(o Configurations) error {
	for _, w := range o.Webhooks() {
		if err := check(w); err != nil {
			return err
		}
	}
	return nil
}

func check(w admissionregistrationv1.ValidatingWebhook) error {
	if w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore {
		return nil
	}
	needed := always()
	if w.ClientConfig.Service != nil {
		needed = append(needed, w.ClientConfig.Service.Namespace)
	}
	for _, name := range needed {
		if selects(w.NamespaceSelector, name) {
			return fmt.Errorf("the webhook %s must answer for the namespace %s, without which it may never come up", w.Name, name)
		}
	}
	for _, r := range w.Rules {
		if slices.Contains(r.APIGroups, "authentication.k8s.io") || slices.Contains(r.APIGroups, "authorization.k8s.io") {
			return fmt.Errorf("the webhook %s must answer for %v, which the API server asks for while it decides on the webhook's own requests", w.Name, r.Resources)
		}
	}
	return nil
}

// selects tells whether a namespace that has the label of its name, and any others,
// may be selected.
func selects(s *metav1.LabelSelector, name string) bool {
	if s == nil {
		return true
	}
	if want, ok := s.MatchLabels[nameLabel]; ok && want != name {
		return false
	}
	for _, r := range s.MatchExpressions {
		if r.Key != nameLabel {
			continue
		}
		listed := slices.Contains(r.Values, name)
		if r.Operator == metav1.LabelSelectorOpIn && !listed || r.Operator == metav1.LabelSelectorOpNotIn && listed {
			return false
		}
	}
	return true
}
