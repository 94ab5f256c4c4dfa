package interp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// existingMutating is a policy that changes existing objects when a Secret of team is updated.
func existingMutating(kind, spec string) string {
	namespace := ""
	if strings.HasPrefix(kind, "Namespaced") {
		namespace = ", namespace: team"
	}
	if !strings.Contains(spec, "mutations:") {
		spec += "\nmutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"by\": string(has(request.object.metadata) ? request.object.metadata.name : \"none\")}}}'}}]"
	}
	return "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p" + namespace + "}\nspec:\n" + indent(2, `
evaluation: {mutateExisting: {enabled: true}}
matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [UPDATE, DELETE]}]}
`+spec) + "\n"
}

func mutatingWorld(t *testing.T) *Offline {
	t.Helper()
	world := &Offline{
		Plural: func(_, kind string) string { return strings.ToLower(kind) + "s" }, Complete: true,
		Kinds: func(group, _, resource string) (string, bool) {
			kind, ok := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace"}[resource]
			return kind, ok && group == ""
		},
	}
	for _, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {kind: team}}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {kind: other}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: team, labels: {pick: "yes"}}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: team}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: other, labels: {pick: "yes"}}}`, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}`,
	} {
		world.Objects = append(world.Objects, object(t, text))
	}
	return world
}

// targets are written as kind/namespace/name, the status, and the label that the policy sets.
func targets(list []TargetMutation) (out []string) {
	for _, m := range list {
		if m.Before == nil {
			out = append(out, fmt.Sprintf("%s: %s", m.Status, m.Message))
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s/%s %s %s", m.Kind, metaText(m.Before, "namespace"), metaText(m.Before, "name"), m.Status, digText(m.After, "metadata", "labels", "by")))
	}
	slices.Sort(out)
	return out
}

// A policy changes the objects that its targets select, by rules or by an expression.
func TestMutatingTargets(t *testing.T) {
	const maps = `resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]`
	for _, tt := range []struct {
		name, kind, spec, operation string
		want                        []string
	}{
		{"rules", "MutatingPolicy", "targetMatchConstraints: {" + maps + "}]}", "UPDATE",
			[]string{"ConfigMap/other/one pass s", "ConfigMap/team/one pass s", "ConfigMap/team/two pass s"}},
		{"names", "MutatingPolicy", "targetMatchConstraints: {" + maps + ", resourceNames: [two]}]}", "UPDATE", []string{"ConfigMap/team/two pass s"}},
		{"selectors", "MutatingPolicy", "targetMatchConstraints: {objectSelector: {matchLabels: {pick: \"yes\"}}, namespaceSelector: {matchLabels: {kind: other}}, " + maps + "}]}", "UPDATE",
			[]string{"ConfigMap/other/one pass s"}},
		{"selectors alone", "MutatingPolicy", "targetMatchConstraints: {namespaceSelector: {matchLabels: {kind: team}}}", "UPDATE", []string{"Secret/team/s pass s"}},
		{"none", "MutatingPolicy", "", "UPDATE", []string{"Secret/team/s pass s"}},
		{"of a namespace", "NamespacedMutatingPolicy", "targetMatchConstraints: {" + maps + "}]}", "UPDATE", []string{"ConfigMap/team/one pass s", "ConfigMap/team/two pass s"}},
		{"a wildcard", "MutatingPolicy", "targetMatchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}", "UPDATE",
			[]string{"error: failed to find the targets: the targets are configmaps of */v1, and nothing says which these are; write them out in targetMatchConstraints"}},
		{"an expression", "MutatingPolicy", "variables: [{name: which, expression: \"object.metadata.name == 's' ? 'one' : object.metadata.name\"}]\n" +
			"targetMatchConstraints: {expression: 'resource.Get(\"v1\", \"configmaps\", object.metadata.namespace, variables.which)'}", "UPDATE", []string{"ConfigMap/team/one pass s"}},
		{"a list", "MutatingPolicy", "targetMatchConstraints: {expression: 'resource.List(\"v1\", \"configmaps\", \"team\")'}", "UPDATE", []string{"ConfigMap/team/one pass s", "ConfigMap/team/two pass s"}},
		{"what is not there", "MutatingPolicy", "targetMatchConstraints: {expression: 'resource.Get(\"v1\", \"configmaps\", \"team\", \"none\")'}", "UPDATE", nil},
		{"an expression that errs", "MutatingPolicy", "targetMatchConstraints: {expression: 'resource.Get(\"v1\", \"configmaps\", object.none, \"none\")'}", "UPDATE",
			[]string{"error: failed to find the targets: no such key: none"}},
		{"of a deletion", "MutatingPolicy", "targetMatchConstraints: {expression: 'resource.Get(\"v1\", \"configmaps\", object.metadata.namespace, \"one\")'}", "DELETE", []string{"ConfigMap/team/one pass none"}},
		{"not asked for", "MutatingPolicy", "targetMatchConstraints: {" + maps + "}]}", "CREATE", nil},
		{"a condition of the trigger", "MutatingPolicy", "matchConditions: [{name: a, expression: \"object.metadata.name != 's'\"}]\ntargetMatchConstraints: {" + maps + "}]}", "UPDATE", nil},
		{"one that errs", "MutatingPolicy", "matchConditions: [{name: a, expression: \"object.none != 's'\"}]\ntargetMatchConstraints: {" + maps + "}]}", "UPDATE", nil},
		{"conditions of targets", "MutatingPolicy", "variables: [{name: which, expression: object.metadata.name}]\ntargetMatchConditions: [{name: a, expression: \"variables.which == 'one' && oldObject == {}\"}]\ntargetMatchConstraints: {" + maps + "}]}", "UPDATE",
			[]string{"ConfigMap/other/one pass s", "ConfigMap/team/one pass s", "ConfigMap/team/two skip "}},
		{"a mutation that errs", "MutatingPolicy", "targetMatchConstraints: {" + maps + ", resourceNames: [two]}]}\nmutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/data\"}]'}}]", "UPDATE",
			[]string{"ConfigMap/team/two error "}},
		{"what is there triggers an expression, whatever the operations", "MutatingPolicy", "targetMatchConstraints: {expression: 'resource.Get(\"v1\", \"configmaps\", object.metadata.namespace, \"one\")'}", "",
			[]string{"ConfigMap/team/one pass s"}},
		{"what is there is changed itself", "MutatingPolicy", "", "", []string{"Secret/team/s pass s"}},
		{"what is there is a target of its own kind", "MutatingPolicy", "targetMatchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], resources: [secrets], resourceNames: [s], operations: [CREATE]}]}", "",
			[]string{"Secret/team/s pass s"}},
		{"what is there is no target", "MutatingPolicy", "targetMatchConstraints: {" + maps + "}]}", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, existingMutating(tt.kind, tt.spec))
			secret := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}`)
			admission := admissionRequest(tt.operation, secret, secret)
			switch tt.operation {
			case "DELETE":
				delete(admission, "object")
			case "CREATE", "":
				delete(admission, "oldObject")
			}
			if tt.operation == "" {
				delete(admission, "resource")
			}
			world := mutatingWorld(t)
			in := New(f.Policies, nil, world, Limits{})
			request := &Request{Admission: admission}
			got := targets(in.MutateExisting(t.Context(), request, f.Policies[0].FullName(), "p", world))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			triggered := in.Triggered(t.Context(), request)
			if len(triggered) != 1 || (triggered[0].Status == Pass) != (len(tt.want) > 0 || tt.name == "what is not there") {
				t.Errorf("%+v", triggered)
			}
		})
	}
}

// What is in another namespace triggers nothing of a policy of one, and what has no such
// switch changes nothing that is there.
func TestMutatingNotTriggered(t *testing.T) {
	elsewhere := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: other}}`)
	for source, want := range map[string]int{
		existingMutating("NamespacedMutatingPolicy", ""):                                              1,
		strings.Replace(existingMutating("MutatingPolicy", ""), "enabled: true", "enabled: false", 1): 0,
	} {
		f := parse(t, source)
		got := New(f.Policies, nil, mutatingWorld(t), Limits{}).Triggered(t.Context(), &Request{Admission: admissionRequest("UPDATE", elsewhere, elsewhere)})
		if len(got) != want || want == 1 && got[0].Status != None {
			t.Errorf("%+v", got)
		}
	}
}

// An exception keeps a target as it is, whatever result it asks for.
func TestMutatingTargetExceptions(t *testing.T) {
	const spec = `targetMatchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE], resourceNames: [two]}]}`
	for result, want := range map[string]string{"skip": "ConfigMap/team/two skip ", "pass": "ConfigMap/team/two pass "} {
		f := parse(t, existingMutating("MutatingPolicy", spec)+"---\napiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: any}\nspec:\n"+
			"  policyRefs: [{kind: MutatingPolicy, name: p}]\n  reportResult: "+result+"\n  matchConditions: [{name: a, expression: \"object.metadata.name == 'two'\"}]\n")
		world := mutatingWorld(t)
		secret := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}`)
		got := targets(New(f.Policies, f.Exceptions, world, Limits{}).MutateExisting(t.Context(), &Request{Admission: admissionRequest("UPDATE", secret, secret)}, "p", "p", world))
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q", result, got)
		}
	}
}
