package checking

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/restmapper"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/schema"
)

// TestServedBy: of what a cluster serves, those kinds are asked for that no release has built
// in, with the subresources of each, in whatever order the server lists them.
func TestServedBy(t *testing.T) {
	t.Parallel()
	groups := []*restmapper.APIGroupResources{
		{
			Group: metav1.APIGroup{Name: "acme.io", Versions: []metav1.GroupVersionForDiscovery{{Version: "v2"}, {Version: "v1"}}},
			VersionedResources: map[string][]metav1.APIResource{
				"v1": {
					{Name: "widgets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1"},
					{Name: "widgets", Kind: "Widget", Namespaced: true},
					{Name: "widgets/status", Kind: "Widget"},
					{Name: "gone/status", Kind: "Gone"}, // of no resource
				},
				"v2": {{Name: "widgets", Kind: "Widget", Namespaced: true}},
			},
		},
		{
			Group:              metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}},
			VersionedResources: map[string][]metav1.APIResource{"v1": {{Name: "pods", Kind: "Pod", Namespaced: true}}},
		},
	}
	served, err := servedBy(groups)
	if err != nil {
		t.Fatal(err)
	}
	if len(served) != 2 || served[0].path() != "/openapi/v3/apis/acme.io/v1" || served[1].path() != "/openapi/v3/apis/acme.io/v2" {
		t.Fatalf("%+v, want the two versions of acme.io", served)
	}
	widgets := served[0].resources
	if len(widgets) != 1 || !widgets[0].Namespaced || len(widgets[0].Subresources) != 2 {
		t.Fatalf("%+v, want widgets with two subresources", widgets)
	}
	for _, sub := range widgets[0].Subresources {
		want := map[string]string{"scale": "autoscaling/v1 Scale", "status": "acme.io/v1 Widget"}[sub.Name]
		if got := sub.GVK.Group + "/" + sub.GVK.Version + " " + sub.GVK.Kind; got != want {
			t.Errorf("widgets/%s is %s, want %s", sub.Name, got, want)
		}
	}
	for text, want := range map[string]bool{"kinds: [Widget]": true, "resources: [widgets]": true, "apiGroups: [acme.io]": true, "kinds: [Pod]": false} {
		if got := served[0].namedIn([]input.Source{{Data: []byte("kinds: []")}, {Data: []byte(text)}}); got != want {
			t.Errorf("named in %s: %v", text, got)
		}
	}
	if core := (servedKinds{Version: "v1"}); core.path() != "/openapi/v3/api/v1" || core.namedIn([]input.Source{{Data: []byte("a")}}) {
		t.Errorf("the core group is at %s", core.path())
	}
}

const policies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "no owner", pattern: {metadata: {annotations: {owner: "?*"}}}}
%s`

const behind = `  - name: %s
    match: {any: [{resources: {kinds: [ConfigMap]}, roles: [admin]}]}
    validate: {message: no, pattern: {metadata: {name: a}}}
`

const byHand = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hand}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations: [{expression: "has(object.data)"}]
`

// compiled is a run on sources, for two releases.
func compiled(t *testing.T, texts ...string) *Run {
	t.Helper()
	var releases []convert.Choices
	for _, release := range []cel.Release{30, 36} {
		f := convert.DefaultFlags()
		f.Release = release.String()
		choices, err := f.Choices()
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, choices)
	}
	run := &Run{}
	for i, text := range texts {
		name := string(rune('a'+i)) + ".yaml"
		run.Sources = append(run.Sources, input.Source{Name: name, Below: name, Data: []byte(text)})
	}
	run.Compile(t.Context(), releases)
	return run
}

// TestEachReleaseIsChecked: what policies are converted to is an object for each release that
// was asked for; the same object is one for both, and one written by hand is of no release.
func TestEachReleaseIsChecked(t *testing.T) {
	t.Parallel()
	run := compiled(t, strings.Replace(policies, "%s", "", 1), byHand)
	of := map[string]int{}
	for _, o := range run.Objects {
		if o.Kind() == "ValidatingAdmissionPolicy" {
			of[o.Name()]++
		}
	}
	if of["owners"] == 0 || of["hand"] != 1 || len(of) != 2 {
		t.Errorf("objects by name: %v", of)
	}
	of = map[string]int{}
	schemas, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	run.Options.Schemas = map[cel.Release]*schema.Set{30: schemas, 36: schemas}
	for _, r := range check.Objects(run.Objects, run.Options) {
		of[r.Object.Name()] += len(r.Releases)
	}
	if of["owners"] != 2*2 || of["hand"] != 2 { // a policy and its binding, and a policy
		t.Errorf("releases by name: %v", of)
	}
}

// TestBehind: rules that have no native form are counted, not named by the releases they were
// converted for.
func TestBehind(t *testing.T) {
	t.Parallel()
	one := strings.Replace(behind, "%s", "one", 1)
	two := one + strings.Replace(behind, "%s", "two", 1)
	for more, want := range map[string]string{
		"": "", one: "1 rule has no native form and is not checked; x convert says why",
		two: "2 rules have no native form and are not checked; x convert says why",
	} {
		if got := compiled(t, strings.Replace(policies, "%s", more, 1)).Behind("x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if run := compiled(t, byHand); run.Behind("x") != "" || run.NeedsNone() || run.Unread() != nil {
		t.Error("objects alone have something behind them")
	}
}

// TestCheckedIsNotPassedOver: of a file that a user names, each document is told that nothing
// is made of; one that is checked is not among them.
func TestCheckedIsNotPassedOver(t *testing.T) {
	t.Parallel()
	run := compiled(t, strings.Replace(policies, "%s", "", 1), "# a comment\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n"+byHand)
	var told []string
	for _, f := range run.Report().Diagnostics {
		if f.File == "b.yaml" && !slices.Contains(told, f.Message) {
			told = append(told, f.Message)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "Secret") {
		t.Errorf("told %q, want the Secret alone", told)
	}
}
