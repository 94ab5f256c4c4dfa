package interp

import "testing"

// TestListInRange pins 4.5 for a list held to one text that is a range: what is no
// measure is in no range, and on neither side of one.
func TestListInRange(t *testing.T) {
	for _, tt := range []struct {
		list                           string
		anyIn, allIn, anyNot, allNotIn bool
	}{
		{`[7, "20"]`, true, true, false, false},
		{`[7, 200]`, true, false, true, false},
		{`[2, 200]`, false, false, true, true},
		{`[7, abc]`, true, false, false, false},
		{`[2, abc]`, false, false, true, true},
		{`[abc]`, false, false, false, true},
		{`["0.05k", "100"]`, true, true, false, false},
		{`[]`, false, true, false, true},
		{`["5-100"]`, true, true, false, false},           // the only element, and the same text
		{`["5-100", "5-100"]`, false, false, false, true}, // deviation 13: no measures
		{`[null]`, false, false, false, true},
	} {
		for operator, denied := range map[string]bool{"AnyIn": tt.anyIn, "AllIn": tt.allIn, "AnyNotIn": tt.anyNot, "AllNotIn": tt.allNotIn} {
			want := Pass
			if denied {
				want = Fail
			}
			if got := denies(t, `"{{ request.object.spec.l }}"`, operator, `"5-100"`, `{spec: {l: `+tt.list+`}}`); got != want {
				t.Errorf("%s %s: want %s, got %s", tt.list, operator, want, got)
			}
		}
	}
}

// TestMembershipOfMissingParts pins 11.2 where what is looked for is missing: a
// part that is not there is null, and goes when a list is flattened.
func TestMembershipOfMissingParts(t *testing.T) {
	for _, tt := range []struct {
		key, operator, value, object string
		want                         Status
	}{
		{"request.object.spec.[a, b]", "AllIn", `[x]`, `{spec: {}}`, Pass},
		{"request.object.spec.[a, b]", "AllNotIn", `[x]`, `{spec: {}}`, Fail},
		{"request.object.spec.[a, b]", "AnyIn", `["*"]`, `{spec: {}}`, Fail},
		{"request.object.spec.[a, b]", "AllIn", `[x]`, `{}`, Error},
		{"request.object.spec.[a, b][]", "AllIn", `[x]`, `{spec: {}}`, Fail},
		{"request.object.spec.[a, b][]", "AnyNotIn", `[x]`, `{spec: {}}`, Pass},
		{"request.object.spec.[a, b][]", "AllIn", `[x]`, `{}`, Pass}, // null: what errs on the left of [] is null
		{"request.object.[spec.a, spec.b][].c", "AllIn", `[x]`, `{}`, Fail},
		{"keys(request.object.spec.m) || 'x'", "AnyIn", `[x]`, `{spec: {}}`, Error},
		{"keys(request.object.spec.m || `{}`)", "AllIn", `[x]`, `{spec: {}}`, Fail},
		{"keys(request.object.spec.m || `{}`) || 'x'", "AnyIn", `[x]`, `{spec: {}}`, Fail},
		{"max(request.object.spec.l[].x)", "AllNotIn", `[x]`, `{spec: {l: []}}`, Pass}, // a null key
		{"max(request.object.spec.l[].x)", "AllNotIn", `[x]`, `{spec: {}}`, Error},
		{"max(request.object.spec.l[].x) || 'none'", "AnyIn", `[none]`, `{spec: {l: [{}]}}`, Fail},
	} {
		if got := denies(t, `"{{ `+tt.key+` }}"`, tt.operator, tt.value, tt.object); got != tt.want {
			t.Errorf("%s %s of %s: want %s, got %s", tt.key, tt.operator, tt.object, tt.want, got)
		}
	}
}
