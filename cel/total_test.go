package cel

import "testing"

func TestQuotedTextsAreTotal(t *testing.T) {
	const backslash, star, question = `.replace(r'\', r'\E\\\Q')`, `.replace('*', r'\E.*\Q')`, `.replace('?', r'\E.\Q')`
	for chain, want := range map[string]bool{
		``:                          false,
		backslash:                   true,
		backslash + star:            true,
		backslash + star + question: true,
		backslash + question + star: true,
		star + backslash:            true,
		star:                        false, // a backslash of the text may end the quotes
		star + `.replace('a', 'b')`: false,
		backslash + star + star:     false, // as all below: \E stands outside of quotes
		backslash + `.replace('*', r'\E.\Q')` + star:     false,
		backslash + star + `.replace('.*', r'\E.\Q')`:    false,
		backslash + `.replace(r'\\', r'\E.\Q')`:          false,
		backslash + `.replace(r'\Q', r'\E.*\Q')`:         false,
		backslash + question + `.replace('.', r'\E.\Q')`: false,
	} {
		v, err := Parse(`'a'.matches(r'^\Q' + 'b'` + chain + ` + r'\E$')`)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.IsTotal(Surroundings{}); got != want {
			t.Errorf("%s: total %v, want %v", v, got, want)
		}
	}
}

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
