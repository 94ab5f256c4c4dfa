package cel

import "testing"

// A tree that shares its parts is refused by what it would print, long before it is
// large in memory.
func TestTooLarge(t *testing.T) {
	v, large := Ident("x"), 1
	defer func() {
		if _, ok := recover().(TooLarge); !ok {
			t.Errorf("a tree of %d nodes was built, and %d is the bound", large, MaxSize)
		}
	}()
	for large <= MaxSize {
		v, large = v.Plus(v), 2*large
	}
}
