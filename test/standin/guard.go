package standin

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GuardName is what the objects that Close makes are called.
const GuardName = "legacy-policies.kyverno.io"

// Guard denies who makes or changes policies and exceptions of kyverno.io, as the write
// guard of Kyverno 1.20 does: every change of the object itself, also one that changes
// nothing. What passes: to delete one, to take finalizers away, and to write its status.
// By an earlier plan, what changes metadata alone passes too.
func Guard(metadataPasses bool) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	passes := `request.operation == 'UPDATE' && object.spec == oldObject.spec`
	if !metadataPasses {
		passes += ` && has(oldObject.metadata.finalizers) && (!has(object.metadata.finalizers) || ` +
			`object.metadata.finalizers.size() < oldObject.metadata.finalizers.size())`
	}
	fail := admissionregistrationv1.Fail
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: GuardName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"kyverno.io"}, APIVersions: []string{"*"}, Resources: []string{"clusterpolicies", "policies", "policyexceptions"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: passes,
				Message:    "this API is no longer served by Kyverno; migrate to policies.kyverno.io, and delete the object",
			}},
		},
	}
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: GuardName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: GuardName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return p, b
}

// Close has the API server deny that, and waits until it does.
func Close(ctx context.Context, c client.Client, metadataPasses bool) error {
	p, b := Guard(metadataPasses)
	for _, o := range []client.Object{p, b} {
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return untilDenied(ctx, c, true)
}

// untilDenied waits until the API server denies a policy, or takes it.
func untilDenied(ctx context.Context, c client.Client, want bool) error {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": []any{map[string]any{
		"name": "closed", "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}}}},
		"validate": map[string]any{"pattern": map[string]any{"metadata": map[string]any{"name": "?*"}}},
	}}}}}
	o.SetAPIVersion("kyverno.io/v1")
	o.SetKind("ClusterPolicy")
	o.SetName("closed")
	for ctx.Err() == nil {
		if err := c.Create(ctx, o.DeepCopy(), client.DryRunAll); (err != nil && strings.Contains(err.Error(), GuardName)) == want {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("the guard of Kyverno 1.20: %w", ctx.Err())
}

// Open takes that away.
func Open(ctx context.Context, c client.Client) error {
	p, b := Guard(false)
	for _, o := range []client.Object{b, p} {
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return untilDenied(ctx, c, false)
}

// deploymentName is that of Kyverno's admission controller.
const deploymentName = "kyverno-admission-controller"

// HangsKey is the annotation of the Deployment that has what stands in answer nobody: who
// asks it waits until his time is up.
const HangsKey = "kvap.dev/stand-in-hangs"

// A Requirement is what somebody wants of what stands in.
type Requirement struct {
	Down  bool // the Deployment was scaled down, or is gone
	Hangs bool
}

// ConditionOf reads it.
func ConditionOf(ctx context.Context, c client.Client) (Requirement, error) {
	d := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: deploymentName}, d)
	if apierrors.IsNotFound(err) {
		return Requirement{Down: true}, nil
	}
	return Requirement{Down: err == nil && d.Spec.Replicas != nil && *d.Spec.Replicas == 0, Hangs: d.Annotations[HangsKey] == "true"}, err
}

// Deployment is that of Kyverno's admission controller in a version. There are no nodes, so
// its Pod waits for one: what stands in does its work until it is scaled down.
func Deployment(version string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/component": "admission-controller", "app.kubernetes.io/part-of": "kyverno"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: deploymentName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kyverno", Image: "reg.kyverno.io/kyverno/kyverno:" + version}}},
			},
		},
	}
}
