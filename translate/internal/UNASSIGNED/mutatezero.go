package UNASSIGNED

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// Between two mutations an API server has the object in its Go type, which drops most fields that
// are false, 0 or empty. A rule that asks for such a field behind one that writes it so finds
// nothing, where Kyverno finds what was written.

// IsZero tells of a literal that the Go type of an object may drop.
func IsZero(v cel.Value) bool {
	return !v.IsZero() && slices.Contains([]string{"false", "0", "0.0", "''"}, v.String())
}
