package registration

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/policy"
)

// shards is how many configurations of a kind there are at most.
const shards = 9

// Names are those that configurations may have. Native policies judge none of them (vap and
// interp have the same list).
func Names() []string {
	out := []string{"kvap-webhook"}
	for i := 1; i < shards; i++ {
		out = append(out, fmt.Sprintf("kvap-webhook-%d", i))
	}
	return out
}

// Shards are the entries of Configure in objects that an API server takes. An entry stays in
// its object; in place of one whose name is taken it is in the next.
func Shards(policies []*policy.Policy, kinds Kinds, o Options) ([]Configurations, []Problem, error) {
	names := Names()
	for i, name := range names {
		if slices.Contains(o.Taken, name) {
			names[i] = ""
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return name != "" }) {
		return nil, nil, fmt.Errorf("the names of the webhook's configurations, %v, are taken by objects that kvap did not make", o.Taken)
	}
	entries, problems := entriesOf(policies, kinds, o)
	byName := map[string][]entry{}
	for _, e := range entries {
		at := e.shard
		for names[at] == "" {
			at = (at + 1) % shards
		}
		byName[names[at]] = append(byName[names[at]], e)
	}
	var out []Configurations
	for _, name := range Names() {
		if len(byName[name]) > 0 {
			out = append(out, configurationsOf(name, byName[name]))
		}
	}
	return out, problems, nil
}
