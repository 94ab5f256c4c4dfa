package registration

import (
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
