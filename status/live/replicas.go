package live

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/report"
)

// readWebhook notes where one process alone answers for rules without which requests are
// refused. Who may not read that is told nothing: it is a hint.
func (r *Reader) readWebhook(ctx context.Context) {
	fails := map[admissionregistrationv1.ServiceReference]int{}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		list, err := r.Dynamic.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource)).List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=" + controller.Manager})
		if err != nil {
			return
		}
		for _, u := range list.Items {
			countFails(u, fails)
		}
	}
	for service, n := range fails {
		list, err := r.Dynamic.Resource(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")).Namespace(service.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
		if err != nil {
			return
		}
		if note := replicaNote(service, n, readyEndpoints(list.Items)); note != "" {
			r.notes = append(r.notes, note)
		}
	}
}

// countFails counts the webhooks of a configuration that refuse what nobody answers, by
// whom they ask.
func countFails(u unstructured.Unstructured, fails map[admissionregistrationv1.ServiceReference]int) {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{} // both kinds have this form, as far as this goes
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c) != nil {
		return
	}
	for _, w := range c.Webhooks {
		if s := w.ClientConfig.Service; s != nil && w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail {
			fails[admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name}]++
		}
	}
}

// readyEndpoints is how many addresses answer for a Service.
func readyEndpoints(items []unstructured.Unstructured) int {
	ready := map[string]bool{}
	for _, u := range items {
		s := &discoveryv1.EndpointSlice{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s) != nil {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready[e.Addresses[0]] = true
			}
		}
	}
	return len(ready)
}

// replicaNote says what happens when the last replica ends; "" where there are others.
func replicaNote(service admissionregistrationv1.ServiceReference, fails, ready int) string {
	if ready > 1 {
		return ""
	}
	many := "one replica answers"
	if ready == 0 {
		many = "no replica answers"
	}
	return fmt.Sprintf("%s at the Service %s/%s for kvap's webhook, and %s with failurePolicy Fail: while it is away, requests are refused; run two (replicas: 2)",
		many, service.Namespace, service.Name, report.Count(fails, "of its entries is", "of its entries are"))
}
