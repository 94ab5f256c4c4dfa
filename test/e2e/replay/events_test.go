//go:build e2e

package replay

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// auditedRequests is the flag of an API server that writes what is sent to it into its log, of what
// changes something: it is judged again to tell what passes natively.
func auditedRequests(dir string) (string, error) {
	file := filepath.Join(dir, "audit-policy.yaml")
	policy := `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata, users: ["system:apiserver"]}
- level: Request
`
	return "--audit-policy-file=" + file, os.WriteFile(file, []byte(policy), 0o600)
}

// kyvernoSettings is the ConfigMap by which tests have Kyverno tell what passes: kvap is told by a flag,
// before.
func kyvernoSettings() *unstructured.Unstructured {
	return object("v1", "ConfigMap", "kyverno", "kyverno")
}

// ourEvent has what a test says of an Event of Kyverno's be about kvap's: the part that made it has
// another name, a policy in CEL is named by the version that kvap reads, and what the API server judges by a
// pattern it tells without a path.
func ourEvent(o *unstructured.Unstructured) {
	if by, _ := o.Object["reportingComponent"].(string); strings.HasPrefix(by, "kyverno-") {
		o.Object["reportingComponent"] = "kvap-" + strings.TrimPrefix(by, "kyverno-")
	}
	if said, _ := o.Object["message"].(string); said != "" { // natively a rule says its own words alone
		o.Object["message"] = regexp.MustCompile(`validation error: (.*) rule \S+ failed at path \S+$`).ReplaceAllString(said, "$1")
	}
	about, _ := o.Object["involvedObject"].(map[string]any)
	if version, _ := about["apiVersion"].(string); strings.HasPrefix(version, "policies.kyverno.io/") {
		about["apiVersion"] = "policies.kyverno.io/v1"
	}
}
