package check_test

import (
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// What goes wrong in the checking of an object is a finding, and not the end of the
// program, although it happens on another core.
func TestFault(t *testing.T) {
	const text = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name != ''"}]
`
	objects, found := check.Written("p.yaml", []byte(text+"---\n"+text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	withoutTypes := map[cel.Release]*schema.Set{34: nil}
	results := check.Objects(objects, check.Options{Schemas: withoutTypes})
	if len(results) != 2 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if len(r.Findings) == 0 || r.Findings[0].Code != diag.CompilerFault || r.Findings[0].Pos.Line == 0 {
			t.Errorf("%+v", r.Findings)
		}
	}
}
