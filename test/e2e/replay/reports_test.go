//go:build e2e

package replay

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/report"
)

// isReport tells of reports about objects.
func isReport(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == report.PolicyReports
}

// translated changes what is asserted of an object into how kvap says it.
func translated(asserted *unstructured.Unstructured) {
	if isReport(asserted) {
		ourReport(asserted)
	}
}

// ourReport is what is asserted of a report as kvap says it: it names itself as who keeps reports and
// as the source of results; a policy in CEL, whose results have no rule with Kyverno, or one that
// says what has been decided, is one rule that is called like the policy.
func ourReport(o *unstructured.Unstructured) {
	if labels := o.GetLabels(); labels["app.kubernetes.io/managed-by"] == "kyverno" {
		labels["app.kubernetes.io/managed-by"] = report.ReportManager
		o.SetLabels(labels)
	}
	// The counts of what has happened to a report are the API server's.
	unstructured.RemoveNestedField(o.Object, "metadata", "generation")
	results, _ := o.Object["results"].([]any)
	for _, item := range results {
		result, _ := item.(map[string]any)
		source, _ := result["source"].(string)
		if strings.HasPrefix(source, "Kyverno") {
			delete(result, "rule")
		}
		if message, _ := result["message"].(string); strings.HasPrefix(message, "mutated ") || source == "KyvernoMutatingPolicy" && message == "success" {
			delete(result, "message") // kvap's says what the object is, and not what was done
		}
		if strings.EqualFold(source, "kyverno") || strings.HasPrefix(source, "Kyverno") {
			result["source"] = "kvap"
		}
	}
}
