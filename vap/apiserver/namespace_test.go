package apiserver

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReadsNamespace: its name, its labels and whether it is there are known of any namespace.
func TestReadsNamespace(t *testing.T) {
	variables := map[string]string{
		"ns": "namespaceObject", "notes": "variables.ns.metadata.annotations", "labels": "variables.ns.metadata.labels", "self": "variables.self",
	}
	for expression, want := range map[string]bool{
		"true": false,
		"object.metadata.annotations['a'] == 'b'":                                          false,
		"namespaceObject == null || namespaceObject.metadata.name != 'a'":                  false,
		"null != namespaceObject && 'a' in namespaceObject.metadata.labels":                false,
		"namespaceObject.metadata.?labels[?'a'].orValue('') == 'b'":                        false,
		"namespaceObject.metadata.labels.exists(k, k.startsWith('a'))":                     false,
		"variables.labels.a == 'b' && variables.self":                                      false,
		"namespaceObject.metadata.annotations['a'] == 'b'":                                 true,
		"has(namespaceObject.metadata.annotations)":                                        true,
		"namespaceObject.metadata.annotations == null":                                     true,
		"namespaceObject.status.phase == 'Active'":                                         true,
		"variables.notes.a == 'b'":                                                         true,
		"variables.ns.metadata.?annotations[?'a'].hasValue()":                              true,
		"dyn(namespaceObject).metadata.annotations.a == 'b'":                               true,
		"[namespaceObject].exists(n, n.metadata.annotations.a == 'b')":                     true,
		"object.metadata.labels.exists(k, namespaceObject.metadata.annotations[k] == 'b')": true,
		"this is no CEL, namespaceObject":                                                  false,
	} {
		if got := ReadsNamespace(expression, variables); got != want {
			t.Errorf("%s: got %v, want %v", expression, got, want)
		}
	}
}

// TestWholeNamespace: policies see all of a Namespace that is stored, or told, and labels that are
// told alone stand in the place of those that are stored.
func TestWholeNamespace(t *testing.T) {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"*"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
		}}},
	}
	for _, expression := range []string{
		"namespaceObject.metadata.?annotations[?'owner'].orValue('') == 'me'", "namespaceObject.metadata.?labels[?'stage'].orValue('') == 'prod'",
		"namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'app'", "namespaceObject.?status.phase.orValue('') == 'Active'",
	} {
		p.Spec.Validations = append(p.Spec.Validations, admissionregistrationv1.Validation{Expression: expression})
	}
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	b.Spec.PolicyName, b.Spec.ValidationActions = "p", []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	whole := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"owner": "me"}, Labels: map[string]string{"stage": "prod"}}}
	told := whole.DeepCopy()
	told.Status.Phase = corev1.NamespaceActive
	for name, tt := range map[string]struct {
		stored map[string]*corev1.Namespace
		told   *corev1.Namespace
		want   string // of each validation
	}{
		"nothing is known":            {nil, nil, "--+-"},
		"labels are told":             {nil, Labelled(map[string]string{"stage": "prod"}), "-++-"},
		"stored":                      {map[string]*corev1.Namespace{"app": whole}, nil, "++++"},
		"another is stored":           {map[string]*corev1.Namespace{"other": whole}, nil, "--+-"},
		"stored, and labels are told": {map[string]*corev1.Namespace{"app": whole}, Labelled(map[string]string{}), "+-++"},
		"told":                        {nil, told, "++++"},
	} {
		j, err := NewJudge([]*admissionregistrationv1.ValidatingAdmissionPolicy{p}, []*admissionregistrationv1.ValidatingAdmissionPolicyBinding{b}, JudgeOptions{Namespaces: tt.stored})
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Review(t.Context(), podRequest("CREATE", pod, ""), tt.told)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, r := range got[0].Results {
			said += map[Outcome]string{Allow: "+", Deny: "-", Error: "!"}[r.Outcome]
		}
		if said != tt.want {
			t.Errorf("%s: got %s, want %s", name, said, tt.want)
		}
	}
	if whole.Labels["kubernetes.io/metadata.name"] != "" || whole.Status.Phase != "" {
		t.Error("what was given is changed")
	}
}
