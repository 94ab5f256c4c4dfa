package standin

import (
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ofPolicies has the API server ask about policies too, as Kyverno does.
func (k *Kyverno) ofPolicies() []admissionregistrationv1.ValidatingWebhook {
	url, fail, none := k.URL+PolicyPath, admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	return []admissionregistrationv1.ValidatingWebhook{{
		Name: "validate-policy.kyverno.svc", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: k.Bundle()},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kyverno.io"}, APIVersions: []string{"v1"}, Resources: []string{"clusterpolicies", "policies"}},
		}},
	}}
}

// PolicyPath is where JudgePolicy is to be served.
const PolicyPath = "/policyvalidate"

// JudgePolicy answers whether a policy may be.
func JudgePolicy(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	o := &unstructured.Unstructured{}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(review)
	if err == nil && review.Request != nil {
		err = json.Unmarshal(review.Request.Object.Raw, &o.Object)
	}
	if err != nil || review.Request == nil {
		http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if why := refusedByKyverno(o); why != "" {
		response.Allowed, response.Result = false, &metav1.Status{Message: why}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
}

// refusedByKyverno is why Kyverno does not take a policy, as far as moving it is about:
// admission: false is not for every policy.
func refusedByKyverno(o *unstructured.Unstructured) string {
	spec, _ := o.Object["spec"].(map[string]any)
	if spec["admission"] != false {
		return ""
	}
	if spec["background"] == false {
		return "disabling both admission and background processing is not allowed"
	}
	rules, _ := spec["rules"].([]any)
	for _, one := range rules {
		if rule, ok := one.(map[string]any); ok && rule["validate"] == nil {
			return "disabling admission processing is only allowed with validation policies"
		}
	}
	return ""
}
