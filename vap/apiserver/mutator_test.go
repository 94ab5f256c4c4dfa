package apiserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

func mutatingPolicy(conditions []string, mutations ...admissionregistrationv1.Mutation) (*admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
	all := []string{"*"}
	p := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: all},
				},
			}}},
			Mutations: mutations,
		},
	}
	for i, c := range conditions {
		p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: string(rune('a' + i)), Expression: c})
	}
	vap.DefaultMutating(p)
	return p, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "p"},
	}
}

func applies(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{PatchType: "ApplyConfiguration", ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression}}
}

func patches(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{PatchType: "JSONPatch", JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression}}
}

func TestMutator(t *testing.T) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}`
	for _, tt := range []struct {
		note       string
		conditions []string
		mutations  []admissionregistrationv1.Mutation
		outcome    apiserver.Outcome
		want       string // a part of the object, or of the message
	}{
		{
			"a merge makes parents", nil,
			[]admissionregistrationv1.Mutation{applies(`Object{metadata: Object.metadata{labels: {"x": "y"}}}`)}, apiserver.Allow, `"labels":{"x":"y"}`,
		},
		{
			"a merge of all elements in another order orders them", nil,
			[]admissionregistrationv1.Mutation{applies(`Object{spec: Object.spec{containers: [Object.spec.containers{name: "b", tty: true}] +
				object.spec.containers.filter(c, c.name != "b").map(c, Object.spec.containers{name: c.name})}}`)},
			apiserver.Allow, `"containers":[{"image":"j","name":"b","resources":{},"tty":true},{"image":"i","name":"a","resources":{}}]`,
		},
		{
			"a mutation sees what the one before made", nil,
			[]admissionregistrationv1.Mutation{
				patches(`[JSONPatch{op: "add", path: "/metadata/labels", value: {"x": "y"}}]`),
				patches(`[JSONPatch{op: "add", path: "/metadata/labels/z", value: object.metadata.labels.x}]`),
			},
			apiserver.Allow, `"labels":{"x":"y","z":"y"}`,
		},
		{
			"an atomic list is not merged", nil,
			[]admissionregistrationv1.Mutation{applies(`Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "k"}]}}`)},
			apiserver.Error, "may not mutate atomic",
		},
		{
			"a field that the kind does not have is refused", nil,
			[]admissionregistrationv1.Mutation{patches(`[JSONPatch{op: "add", path: "/spec/none", value: "x"}]`)}, apiserver.Error, "unknown field",
		},
		{
			"a condition that is false", []string{"false"},
			[]admissionregistrationv1.Mutation{patches(`[JSONPatch{op: "remove", path: "/spec"}]`)}, apiserver.NoMatch, `"image":"j"`,
		},
		{
			"a condition that errs", []string{"object.metadata.labels.x == 'y'"},
			[]admissionregistrationv1.Mutation{patches(`[]`)}, apiserver.Error, "no such key",
		},
		{
			"optional fields", nil,
			[]admissionregistrationv1.Mutation{applies(`Object{spec: Object.spec{?hostNetwork: has(object.spec.nodeName) ? optional.none() : optional.of(true)}}`)}, apiserver.Allow, `"hostNetwork":true`,
		},
	} {
		p, b := mutatingPolicy(tt.conditions, tt.mutations...)
		m, err := apiserver.NewMutator([]*admissionregistrationv1.MutatingAdmissionPolicy{p}, []*admissionregistrationv1.MutatingAdmissionPolicyBinding{b}, apiserver.JudgeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		object, verdicts, err := m.Mutate(t.Context(), &admissionv1.AdmissionRequest{
			Operation: "CREATE", Name: "p", Namespace: "n", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: runtime.RawExtension{Raw: []byte(pod)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if v := verdicts[0]; v.Outcome != tt.outcome || !strings.Contains(v.Message+string(text), tt.want) {
			t.Errorf("%s: %+v\n%s", tt.note, v, text)
		}
	}
}
