package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// A policy of a tenant that would become larger than any is the only one that has no
// native form for it.
func TestCompileBesideABomb(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	sums := "{name: v0, expression: object.metadata.name}"
	for i := range 30 {
		sums += fmt.Sprintf(", {name: v%d, expression: variables.v%d + variables.v%[2]d}", i+1, i)
	}
	for name, body := range map[string]string{
		"lists":       `pattern: {metadata: {labels: {a: "{{ request.object.spec` + strings.Repeat(" | [@,@]", 32) + ` }}"}}}`,
		"sums":        `cel: {variables: [` + sums + `], expressions: [{expression: variables.v30 == ''}]}`,
		"no end":      `cel: {variables: [{name: a, expression: variables.b || variables.b}, {name: b, expression: variables.a || variables.a}], expressions: [{expression: variables.a}]}`,
		"a loop":      `cel: {expressions: [{expression: "[1]` + strings.Repeat(".map(x, [x, x])", 200) + `.size() > 0"}]}`,
		"repetitions": `cel: {expressions: [{expression: "object.metadata.name.matches('` + strings.Repeat("(a{1000})", 900) + `')"}]}`,
	} {
		good := readSource(object(t, "1"), "enforce", nil, nothing)
		bomb := readSource(object(t, "1", "name: p,", "name: bomb,", `pattern: {metadata: {labels: {a: "?*"}}}`, body), "enforce", nil, nothing)
		c := &compiler{options: Options{Release: cel.Default}}
		result, err := c.compile(t.Context(), policyList{sources: []*policySource{bomb, good}}, builtin)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range result.Rules {
			refused := len(r.Codes) > 0 && (r.Codes[0] == diag.TooLarge || name == "no end" && r.Codes[0] == diag.BadExpression)
			if r.Policy.Name == "bomb" && r.Name() == "a" && !refused || r.Policy.Name != "bomb" && r.Target != translate.Native {
				t.Errorf("%s: %s/%s is %s: %v", name, r.Policy.Name, r.Name(), r.Target, r.Codes)
			}
		}
	}
}

// What was stopped is compiled anew the next time, and is as if it had not been.
func TestCompileStopped(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	in := policyList{sources: []*policySource{readSource(object(t, "1"), "enforce", nil, nothing)}}
	c := &compiler{options: Options{Release: cel.Default}}
	ended, end := context.WithCancel(t.Context())
	end()
	if result, err := c.compile(ended, in, builtin); !errors.Is(err, context.Canceled) || len(result.Rules) > 0 {
		t.Errorf("%v, %d rules", err, len(result.Rules))
	}
	if result, err := c.compile(t.Context(), in, builtin); err != nil || len(result.Rules) != 2 || len(result.Objects) == 0 {
		t.Errorf("after that: %v, %d rules, %d objects", err, len(result.Rules), len(result.Objects))
	}
}

// A namespace makes no more objects than the limit, whatever its policies say.
func TestCompileManyOfANamespace(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	var sources []*policySource
	for i := range 6 {
		sources = append(sources, readSource(object(t, "1", "kind: ClusterPolicy", "kind: Policy", "name: p,", fmt.Sprintf("name: p%d, namespace: n,", i)), "enforce", nil, nothing))
	}
	c := &compiler{options: Options{Release: cel.Default, NamespaceLimit: 9}}
	var rounds []compile.Result
	for range 2 { // the second with what is known from the first
		result, err := c.compile(t.Context(), policyList{sources: sources}, builtin)
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, result)
		c.policies = nil
	}
	for i, result := range rounds {
		native := 0
		for _, r := range result.Rules {
			if r.Target == translate.Native {
				native++
			}
		}
		if native == 0 || native > 9 || len(result.Objects) > 9 {
			t.Errorf("round %d: %d native rules, %d objects", i, native, len(result.Objects))
		}
	}
}

// What those of one namespace cost is counted together: what one alone may take, none of
// many may.
func TestCompileSharesTheStepsOfANamespace(t *testing.T) {
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	dear := `deny: {conditions: {all: [{key: "{{ regex_match('(a{200})', request.object.data.x) }}", operator: Equals, value: true}]}}`
	of := func(n int) (reasons []string) {
		var sources []*policySource
		for i := range n {
			sources = append(sources, readSource(object(t, "1", "kind: ClusterPolicy", "kind: Policy", "name: p,", fmt.Sprintf("name: p%d, namespace: n,", i),
				`pattern: {metadata: {labels: {a: "?*"}}}`, dear), "enforce", nil, nothing))
		}
		result, err := (&compiler{options: Options{Release: cel.Default}}).compile(t.Context(), policyList{sources: sources}, builtin)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range result.Rules {
			reasons = append(reasons, r.Reason)
		}
		return reasons
	}
	if alone := of(1); !slices.Equal(alone, []string{"", ""}) {
		t.Errorf("alone: %q", alone)
	}
	for _, reason := range of(100) {
		if !strings.Contains(reason, "the policy would become larger") {
			t.Errorf("among a hundred: %q", reason)
		}
	}
}
