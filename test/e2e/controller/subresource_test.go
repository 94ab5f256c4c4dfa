//go:build e2e

package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
)

// subresources are rules on parts of objects. No old object excuses what violates them.
const subresources = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: parts}
spec:
  background: false
  rules:
  - name: no-debugging
    match: {any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]}
    validate: {failureAction: Enforce, message: Nobody debugs., deny: {}}
  - name: few
    match: {any: [{resources: {kinds: [Deployment/scale]}}]}
    validate: {failureAction: Enforce, message: At most three., pattern: {spec: {replicas: <=3}}}
`

// What kubectl debug and kubectl scale do is denied, whatever the object was before.
func TestSubresources(t *testing.T) {
	containers := []corev1.Container{{Name: "c", Image: "nginx"}}
	labels := map[string]string{"app": "parts"}
	at := metav1.ObjectMeta{Name: "parts", Namespace: "default", Labels: labels}
	pod := &corev1.Pod{ObjectMeta: at, Spec: corev1.PodSpec{Containers: containers}}
	deployment := &appsv1.Deployment{ObjectMeta: at, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(5)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: containers}},
	}}
	for _, err := range []error{shared.Create(t.Context(), pod), shared.Create(t.Context(), deployment)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		shared.remove(t, pod)
		shared.remove(t, deployment)
	})
	shared.control(t, controller.Options{Mode: "enforce"})
	shared.apply(t, subresources)
	shared.awaitReady(t, "ClusterPolicy", "", "parts")

	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
	if err := shared.SubResource("ephemeralcontainers").Update(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "Nobody debugs.") {
		t.Errorf("an ephemeral container: %v", err)
	}
	scale := func(replicas int32) error {
		s := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		return shared.SubResource("scale").Update(t.Context(), deployment, client.WithSubResourceBody(s))
	}
	if err := scale(50); err == nil || !strings.Contains(err.Error(), "At most three.") {
		t.Errorf("from five to fifty: %v", err)
	}
	if err := scale(2); err != nil {
		t.Errorf("from five to two: %v", err)
	}
}
