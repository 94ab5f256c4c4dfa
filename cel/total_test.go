package cel

import "testing"

// An object that may be null has no keys to look among.
func TestKeysOfNullAreAnError(t *testing.T) {
	v := parse(t, `'a' in oldObject`)
	for _, null := range []bool{false, true} {
		around := Surroundings{Roots: []Root{{"oldObject", podForm(), null}}}
		if got := v.IsTotal(around); got == null {
			t.Errorf("%s, null %v: total %v", v, null, got)
		}
	}
}
