package translate

import "testing"

func TestCommonText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p, q string
		want bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"a", "", false}, {"*", "", true}, {"*", "?", true},
		{"a*", "*b", true}, {"a*", "b*", false}, {"*a", "*b", false}, {"?", "é", true}, {"??", "é", false},
		{"/var/*", "/var/log", true}, {"/var/*/x", "/var/log", false}, {"*a*", "b?b", true}, {"*a*", "bab", true}, {"*aa*", "b?b", false},
		{"**", "*", true}, {"a*b*c", "*bc", true}, {"a*b*c", "*d", false},
		{"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*c", false},
	} {
		if got := haveCommonText([]string{tt.p}, []string{tt.q}); got != tt.want {
			t.Errorf("%q, %q: %v", tt.p, tt.q, got)
		}
		if got := haveCommonText([]string{"x", tt.q}, []string{"y", tt.p}); got != tt.want {
			t.Errorf("%q, %q: %v", tt.q, tt.p, got)
		}
	}
}
