package compile

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/internal/cores"
)

// guard runs a part of the compiler. A panic in it is a diagnostic of what it was
// about, so that one policy cannot take the others with it; and so is an expression
// that grows past all bounds, of which one rule's would have been told already.
func guard(at diag.Pos, do func()) *diag.Diagnostic {
	fault := cores.Guard(do)
	if fault == nil {
		return nil
	}
	d := diag.Errorf(at, diag.CompilerFault, "the compiler failed on this policy (%v, in %s); the webhook will judge it; please report this with the policy", fault.Value, fault.In)
	switch fault.Value.(type) {
	case budget.Stopped:
		panic(fault.Value)
	case cel.TooLarge, budget.TooLarge:
		d = diag.Warnf(at, diag.TooLarge, "the policy would become larger than any that the API server takes; the webhook will judge it")
	}
	return &d
}
