package cel_test

import (
	"fmt"
	"testing"

	"github.com/kvap/kvap/cel"
)

// Choices in the conditions of choices are looked at once each.
func TestViolationOfNestedChoices(t *testing.T) {
	nested := func(depth int) cel.Bool {
		b := cel.Ident("object").Field("a").AsBool()
		for i := range depth {
			b = cel.CondBool(b, cel.True(), cel.Ident("object").Field(fmt.Sprintf("b%d", i)).AsBool())
		}
		return b
	}
	work := func(b cel.Bool) float64 { return testing.AllocsPerRun(1, func() { b.Violation(nil) }) }
	few, many := work(nested(8)), work(nested(16))
	if many > 5*few { // each is flattened into the one around it
		t.Errorf("8 choices take %.0f allocations, 16 take %.0f", few, many)
	}
}
