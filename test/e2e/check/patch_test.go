//go:build e2e

package check

import (
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/test/controlplane"
)

// What check has an error of in a patch is an error on each request, and what it takes
// is none: the API server takes both kinds of policies.
func TestPatches(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop()
	client, err := kubernetes.NewForConfig(plane.Config(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	for file, denied := range map[string]bool{"patches.yaml": true, "patches-not.yaml": false} {
		for _, m := range mutationsOf(t, file) {
			if got := mutated(t, client, m); got != denied {
				t.Errorf("%s: %+v: denied is %t", file, m, got)
			}
		}
	}
}

// mutationsOf are the mutations of a file of package check.
func mutationsOf(t *testing.T, file string) []admissionregistrationv1.Mutation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "check", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	objects, _ := check.Written(file, data)
	return objects[0].Mutating.Spec.Mutations
}

// mutated puts a Pod before a policy with the mutation, and tells whether that is denied.
// Another mutation in front of it sets a label, by which the policy is seen to count.
func mutated(t *testing.T, client kubernetes.Interface, m admissionregistrationv1.Mutation) (denied bool) {
	t.Helper()
	v1 := client.AdmissionregistrationV1()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "subject"}}
	fail := admissionregistrationv1.Fail
	policy.Spec.FailurePolicy, policy.Spec.ReinvocationPolicy = &fail, admissionregistrationv1.NeverReinvocationPolicy
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"CREATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		},
	}}}
	mark := admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
		Expression: "Object{metadata: Object.metadata{annotations: {'acme.io/marked': 'yes'}}}",
	}}
	policy.Spec.Mutations = []admissionregistrationv1.Mutation{mark, m}
	if _, err := v1.MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatalf("%+v: the API server does not take it: %v", m, err)
	}
	defer func() { _ = v1.MutatingAdmissionPolicies().Delete(t.Context(), policy.Name, metav1.DeleteOptions{}) }()
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "subject"}}
	binding.Spec.PolicyName = policy.Name
	if _, err := v1.MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = v1.MutatingAdmissionPolicyBindings().Delete(t.Context(), binding.Name, metav1.DeleteOptions{})
	}()
	await(t, "the policy counts", func() bool {
		pod, err := client.CoreV1().Pods("default").Create(t.Context(), subjectPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if denied = err != nil; denied {
			t.Logf("%v", err)
		}
		return denied || pod.Annotations["acme.io/marked"] != ""
	})
	await(t, "the policy is gone", func() bool {
		_ = v1.MutatingAdmissionPolicyBindings().Delete(t.Context(), binding.Name, metav1.DeleteOptions{})
		pod, err := client.CoreV1().Pods("default").Create(t.Context(), subjectPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && pod.Annotations["acme.io/marked"] == ""
	})
	return denied
}

func subjectPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "subject", Labels: map[string]string{"app": "a"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "b", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}}
	return pod
}
