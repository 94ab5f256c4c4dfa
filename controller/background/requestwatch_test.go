package background

import (
	"errors"
	"strings"
	"testing"
)

// That GenerateRequests cannot be watched is told once, of each policy that it is
// about, and when it is over.
func TestUnheard(t *testing.T) {
	b := start(t, settings)
	for range 3 {
		b.RequestWatch(errors.New("no route to the store"))
	}
	if len(b.told) != 1 || !strings.Contains(b.told[0].Note, "no route") || len(b.Waits()) != 1 {
		t.Errorf("told %v, waits %v", b.told, b.Waits())
	}
	b.RequestWatch(nil)
	b.RequestWatch(nil)
	if len(b.told) != 2 || b.told[1].Warning || b.Waits() != nil {
		t.Errorf("told %v, waits %v", b.told, b.Waits())
	}
	b = start(t, plainCopies)
	if b.RequestWatch(errors.New("no route")); len(b.told) != 0 {
		t.Errorf("told %v", b.told)
	}
}
