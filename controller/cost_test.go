package controller

import (
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/schema"
)

// The cost of a rule is a share of what is allowed; what has no native form has none.
func TestCostPercent(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	s := readSource(object(t, "1", "b: \"?*\"", "b: \"{{ random('a') }}\""), "enforce", nil, nothing)
	c := &compiler{options: Options{Release: cel.Default}}
	result, err := c.compile(t.Context(), policyList{sources: []*policySource{s}}, builtin)
	if err != nil {
		t.Fatal(err)
	}
	var rules []*compile.Rule
	for _, r := range result.Rules {
		if r.Policy == s.policy {
			rules = append(rules, r)
		}
	}
	if len(rules) != 2 {
		t.Fatalf("there are %d rules", len(rules))
	}
	if got := costPercent(rules[0], result); got < 1 || got > 100 {
		t.Errorf("the native rule costs %d %%", got)
	}
	if got := costPercent(rules[1], result); got != 0 {
		t.Errorf("the rule %s, which is left (%s), costs %d %%", rules[1].Name(), rules[1].Target, got)
	}
}

// What a variable of a rule costs is part of it: that of the names of what violates it.
func TestCostOfVariables(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	const mounts = `spec: {containers: [{=(volumeMounts): [{name: "!host*", mountPath: "!/host*"}]}]}`
	s := readSource(object(t, "1", "metadata: {labels: {a: \"?*\"}}", mounts), "enforce", nil, nothing)
	c := &compiler{options: Options{Release: cel.Default}}
	result, err := c.compile(t.Context(), policyList{sources: []*policySource{s}}, builtin)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Rules {
		if r.Policy == s.policy && r.Name() == "a" {
			if got := costPercent(r, result); got < 3 {
				t.Errorf("the rule goes through lists in lists, and costs %d %%", got)
			}
			return
		}
	}
	t.Fatal("there is no rule")
}
