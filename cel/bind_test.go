package cel

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]bool{
		`''`: true, `object.spec.a`: true, `object['a-b']`: true, `object.?spec.a`: true,
		`object.a + 'b'`: false, `params.data[object.a]`: false, `object.?a.orValue('')`: false,
	} {
		if got := parse(t, text).Plain(); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
