package scalar

import "testing"

func TestMayMatch(t *testing.T) {
	for _, c := range []struct {
		re, prefix string
		want       bool
	}{
		{`^[0-9]+$`, "[", false},
		{`^[0-9]+$`, "a", false},
		{`^[0-9]*`, "[", true},
		{`[0-9]`, "[", true},
		{`^(a|b)?$`, "[", false},
		{`^a-`, "a-[", true},
		{`^a-\d`, "a-[", false},
		{`^a-\d`, "a-", true},
		{`(?i)^A\[`, "a[", true},
		{`^.`, "[", true},
		{`^(x`, "[", true},
	} {
		if got := MayMatch(c.re, c.prefix); got != c.want {
			t.Errorf("%s after %s: got %v", c.re, c.prefix, got)
		}
	}
}
