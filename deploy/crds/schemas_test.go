package crds_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// editor says what an editor marks in a ClusterPolicy.
func editor(t *testing.T) func(policy []byte) (name string, marks error) {
	t.Helper()
	data, err := os.ReadFile("../schemas/clusterpolicy_v1alpha1.json")
	if err != nil {
		t.Fatal(err)
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal(data, schema); err != nil {
		t.Fatal(err)
	}
	return func(policy []byte) (string, error) {
		var object map[string]any
		if err := yaml.Unmarshal(policy, &object); err != nil || object["kind"] != "ClusterPolicy" {
			return "", nil
		}
		name, _ := object["metadata"].(map[string]any)["name"].(string)
		return name, validate.AgainstSchema(schema, object, strfmt.Default)
	}
}

// An editor marks nothing in the policies of the fixtures, of kyverno.io too, but for those that are
// there to be refused.
func TestEditorTakesPolicies(t *testing.T) {
	marks := editor(t)
	files, err := filepath.Glob("../../fixtures/*/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(filepath.Dir(file)), "bad-") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(data, []byte("\n---")) {
			name, err := marks(document)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			} else if name != "" {
				taken++
			}
		}
	}
	if taken < 50 {
		t.Errorf("found only %d policies", taken)
	}
}

// An editor marks a field that does not exist, and a value of another type.
func TestEditorMarksMistakes(t *testing.T) {
	marks := editor(t)
	for _, wrong := range []string{
		"spec: {rulez: []}",
		"spec: {rules: [{name: a, mach: {}}]}",
		"spec: {rules: [{name: 5}]}",
		"spec: {background: maybe}",
		"sepc: {}",
		"spec: {rules: [{name: a, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {patern: {spec: {}}}}]}",
		"spec: {rules: [{name: a, match: {any: [{resources: {kind: [Pod]}}]}, validate: {pattern: {spec: {}}}}]}",
		"spec: {rules: [{name: a, match: {resources: {kinds: Pod}}, validate: {pattern: {spec: {}}}}]}",
	} {
		if _, err := marks([]byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\n" + wrong)); err == nil {
			t.Errorf("nothing is marked in %s", wrong)
		}
	}
}
