package deploy_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The series that are recorded by Kyverno's names are those that docs/controller.md has, each of what
// it says there. test/e2e/deploy sees that controller and API server have what they are made of.
func TestKyvernoSeriesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("chart/files/kyverno-series.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Record string            `json:"record"`
				Expr   string            `json:"expr"`
				Labels map[string]string `json:"labels"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`\b(?:kvap|apiserver)_[a-z_]+`)
	part := regexp.MustCompile(`_(?:bucket|sum|count)$`)
	recorded := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			of := made.FindAllString(r.Expr, -1)
			if len(of) != 1 || part.FindString(of[0]) != part.FindString(r.Record) {
				t.Errorf("%s is made of %q", r.Record, of)
				continue
			}
			recorded[part.ReplaceAllString(r.Record, "")+" of "+part.ReplaceAllString(of[0], "")] = true
		}
	}
	page, err := os.ReadFile("../docs/controller.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### By Kyverno's names\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented, name := map[string]bool{}, ""
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		if series := regexp.MustCompile("^`(kyverno_[a-z_]+)`").FindStringSubmatch(row[1]); series != nil {
			name = series[1]
		}
		for _, of := range made.FindAllString(row[2], -1) {
			documented[name+" of "+of] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(recorded)); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("docs/controller.md has\n%q, and recorded are\n%q", got, want)
	}
}
