package compile

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// A panic is a diagnostic with the place of the policy and the function at fault.
func TestGuard(t *testing.T) {
	at := diag.Pos{File: "p.yaml", Line: 3}
	var none *span
	for name, do := range map[string]func(){
		"a nil pointer": func() { none.line++ },
		"a value":       func() { panic("oops") },
	} {
		fault := guard(at, do)
		if fault == nil || fault.Code != diag.CompilerFault || fault.Pos != at || !strings.Contains(fault.Message, "in compile.TestGuard") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
	if fault := guard(at, func() {}); fault != nil {
		t.Errorf("nothing panicked: %+v", fault)
	}
}

// A tree that grows past all bounds is no fault.
func TestGuardOfTrees(t *testing.T) {
	fault := guard(diag.Pos{}, func() {
		v := cel.Ident("object")
		for range 60 {
			v = v.Plus(v)
		}
	})
	if fault == nil || fault.Code != diag.TooLarge {
		t.Errorf("%+v", fault)
	}
}
