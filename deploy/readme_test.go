package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// The chart's README has a place for every value, and for no other.
func TestReadmeNamesValues(t *testing.T) {
	readme, err := os.ReadFile("chart/README.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(readme), -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			named = append(named, m[1])
		}
	}
	whole := []string{"resources", "podSecurityContext", "securityContext", "metrics.dashboard.labels"} // whose fields are not ours
	var want []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		m, isMap := v.(map[string]any)
		if !isMap || len(m) == 0 || slices.Contains(whole, prefix) {
			want = append(want, prefix)
			return
		}
		for key, below := range m {
			if prefix != "" {
				key = prefix + "." + key
			}
			walk(key, below)
		}
	}
	walk("", values)
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("chart/README.md has\n%q, values.yaml has\n%q", named, want)
	}
}
