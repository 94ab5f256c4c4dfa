package registration

import (
	"fmt"
	"strings"
	"testing"
)

// A policy whose entry would have the name of another one that asks for something else is left
// out, and hides nothing of the other.
func TestEntryOfTheSameName(t *testing.T) {
	list := parse(t, []byte(`
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: one, namespace: tenant}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {metadata: {name: "?*"}}}
`))
	r := &registry{entries: map[string]*entry{}, used: map[string]int{}}
	targets, _ := ruleTargets(list[0], Validate, kinds(t))
	g := &routeGroup{Route: RouteOf(list[0], Validate), policies: list, targets: targets}
	mine := &entry{Route: g.Route, shard: g.shard("tenant"), webhook: g.webhook(r.options)}
	key := g.key(mine)
	if _, hash, _ := strings.Cut(key, "-local-"); len(hash) != 32 {
		t.Errorf("%s tells entries apart by %d digits", key, len(hash))
	}
	other := *mine
	other.webhook.Name, other.webhook.Rules = "other", nil
	r.entries[key] = &other
	r.add("tenant", []*routeGroup{g})
	if len(r.problems) != 1 || !r.problems[0].Refused || len(other.names) != 0 {
		t.Errorf("%+v, of the other entry are %v", r.problems, other.names)
	}
	r.entries[key] = mine
	r.add("tenant", []*routeGroup{g})
	if len(r.problems) != 1 || len(mine.names) != 1 {
		t.Errorf("what asks for the same: %+v, %v", r.problems, mine.names)
	}
}

// Policies of a namespace have so many different sets of match conditions. Those that share one,
// or have none, and those of other namespaces, are not kept out.
func TestConditionsOfANamespace(t *testing.T) {
	var text strings.Builder
	add := func(name, namespace, conditions string) {
		fmt.Fprintf(&text, `---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: %s, namespace: %s}
spec:
  webhookConfiguration: {matchConditions: [%s]}
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {metadata: {name: "?*"}}}
`, name, namespace, conditions)
	}
	for i := range maxConditioned + 2 {
		add(fmt.Sprintf("p%d", i), "tenant", fmt.Sprintf("{name: c, expression: '%d == 1'}", i))
	}
	add("p00", "tenant", "{name: c, expression: '0 == 1'}")
	add("zz", "tenant", "")
	add("other", "other", "{name: c, expression: '9 == 9'}")
	entries, problems := entriesOf(parse(t, []byte(text.String())), kinds(t), options())
	if len(entries) != maxConditioned+2 || len(problems) != 2 {
		t.Errorf("%d entries, %+v", len(entries), problems)
	}
	for i, p := range problems {
		if want := fmt.Sprintf("tenant/p%d", maxConditioned+i); p.Policy.FullName() != want || !p.Refused || !strings.Contains(p.Message, "8 different sets of match conditions") {
			t.Errorf("%s is left out, want %s: %+v", p.Policy.FullName(), want, p.Message)
		}
	}
}
