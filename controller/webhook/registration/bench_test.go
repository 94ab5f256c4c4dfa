package registration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// Policies of a namespace whose match conditions are long: each change of one registers all.
func BenchmarkConditions(b *testing.B) {
	list := "[" + strings.TrimSuffix(strings.Repeat("1, ", 40), ", ") + "]"
	condition := strings.ReplaceAll("LIST.all(a, LIST.all(b, a + b >= 0))", "LIST", list)
	var text strings.Builder
	for i := range 100 {
		name := fmt.Sprintf("p-%d", i)
		own := fmt.Sprintf("request.name != '%s' && %s", name, condition)
		text.WriteString(lookup("team", name, own, own, own, own))
	}
	policies := parse(b, []byte(text.String()))
	served := Table{{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}}
	known, o := map[*policy.Policy]Conditions{}, options()
	o.ConditionsOf = func(p *policy.Policy) Conditions {
		if _, ok := known[p]; !ok {
			known[p] = ConditionsOf(p)
		}
		return known[p]
	}
	_, _, _ = Shards(policies, served, o) // which reads them, once
	for b.Loop() {
		if _, _, err := Shards(policies, served, o); err != nil {
			b.Fatal(err)
		}
	}
}
