package verify

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
)

func TestMentions(t *testing.T) {
	file, found := policy.Parse("p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Widget]}}]}
    context:
    - name: parts
      variable: {jmesPath: "request.object.spec.parts[?on].name"}
    preconditions:
      all:
      - {key: "{{ parts[0] }}", operator: Equals, value: x}
      - {key: "{{ request.object.metadata.labels.\"a-b\" || request.oldObject.spec.size }}", operator: Equals, value: "{{ request.operation }}"}
    validate:
      foreach:
      - list: request.object.spec.[init, main][]
        deny:
          conditions:
            any:
            - {key: "{{ element.image }}", operator: Equals, value: "{{ length(keys(element.env)) }}"}
      - list: request.object.spec.groups
        foreach:
        - list: element.users
          pattern: {"=(name)": "?*", "*": x}
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	var got []string
	for _, m := range mentions(file.Policies[0].Rules[0]) {
		got = append(got, strings.Join(m, "/"))
	}
	want := []string{
		"spec", "spec/parts", "spec/parts/[]", "spec/parts/[]/on", "spec/parts/[]/name",
		"metadata", "metadata/labels", "metadata/labels/a-b", "spec/size",
		"spec/init", "spec/main", "spec/init/[]", "spec/main/[]", "spec/init/[]/image", "spec/main/[]/image",
		"spec/init/[]/env", "spec/main/[]/env", "spec/init/[]/env/{}", "spec/main/[]/env/{}",
		"spec/groups", "spec/groups/[]", "spec/groups/[]/users", "spec/groups/[]/users/[]",
		"spec/groups/[]/users/[]/name", "spec/groups/[]/users/[]/{}",
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("mentions (-want +got):\n%s", d)
	}
}
