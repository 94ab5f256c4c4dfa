package judge_test

import (
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// TestRehearsal: a policy that is rehearsed denies nothing, and finds what it will
// find once it is enforced. An update of what violated before is no violation then; where
// the policy itself only audits, it is one.
func TestRehearsal(t *testing.T) {
	const text = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {validationFailureAction: Enforce, rules: [
{name: team, match: {any: [{resources: {kinds: [ConfigMap, Deployment]}}]}, validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}},
{name: image, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {containers: [{image: "!*:latest"}]}}}},
{name: audited, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {failureAction: Audit, message: m, pattern: {metadata: {labels: {team: "?*"}}}}}]}}`
	schemas, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	f, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	f.Policies[0].Rehearse()
	judges, err := judge.Compile(compile.Input{Policies: f.Policies}, compile.Options{Translate: translate.Options{
		Release: cel.Default, Schemas: schemas, Pack: translate.PackMatch, Params: translate.ParamsConfigMap, Existing: translate.AllowExisting, Guard: translate.GuardAuto,
	}}, judge.ClusterState{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range judges.Compiled.Objects {
		for _, b := range o.Bindings {
			if len(b.Spec.ValidationActions) != 1 || b.Spec.ValidationActions[0] != "Audit" {
				t.Errorf("%s: actions %v", b.Name, b.Spec.ValidationActions)
			}
		}
	}
	bad := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}}
	latest := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "a:latest"}}}}}}
	for _, tt := range []struct {
		group, kind, plural string
		object              map[string]any
		want                map[string]interp.Status
	}{
		{"", "ConfigMap", "configmaps", bad, map[string]interp.Status{"team": interp.Skip, "audited": interp.Fail}},
		{"apps", "Deployment", "deployments", latest, map[string]interp.Status{"team": interp.Skip, "autogen-image": interp.Skip}},
	} {
		r, err := judge.NewRequest(map[string]any{
			"uid": "1", "kind": map[string]any{"group": tt.group, "version": "v1", "kind": tt.kind}, "resource": map[string]any{"group": tt.group, "version": "v1", "resource": tt.plural},
			"name": "a", "namespace": "default", "operation": "UPDATE", "userInfo": map[string]any{"username": "alice"}, "object": tt.object, "oldObject": tt.object,
		})
		if err != nil {
			t.Fatal(err)
		}
		opinions, err := judges.Judge(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range opinions {
			want, asked := tt.want[o.Rule.Name]
			if asked && (o.Status != want || !o.Agree() || (o.Native == apiserver.Deny) != (want == interp.Fail)) {
				t.Errorf("%s %s: native %s, interpreter %s; want %s", tt.kind, o.Rule.Name, o.Native, o.Status, want)
			}
		}
	}
}
