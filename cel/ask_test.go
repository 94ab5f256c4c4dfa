package cel

import (
	"strings"
	"testing"
)

func TestAsks(t *testing.T) {
	for _, tt := range []struct {
		text             string
		asks             bool
		asked, selection string
	}{
		{"object", false, "", "object"},
		{"object.spec.a", false, "", "object.spec.a"},
		{"object.spec.?a", true, "", ""},
		{"object.spec[?'a']", true, "", ""},
		{"has(object.spec.a)", true, "object.spec.a", ""},
		{"has(object.?spec.a)", true, "", ""},
		{"'a' in object.spec", true, "", ""},
		{"object.list.all(x, has(x.a))", true, "", ""},
		{"object.x == 'has(object.spec) in .?a'", false, "", ""}, // a text asks nothing
	} {
		v, err := Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		asked, isAsked := v.Asked()
		selection, isSelection := v.Selection()
		if v.Asks() != tt.asks || isAsked != (tt.asked != "") || isSelection != (tt.selection != "") ||
			isAsked && strings.Join(asked, ".") != tt.asked || isSelection && strings.Join(selection, ".") != tt.selection {
			t.Errorf("%s: asks %v, for %v (%v), selects %v (%v)", tt.text, v.Asks(), asked, isAsked, selection, isSelection)
		}
	}
}
