package translate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// In whatever order, and at once, rules and the kinds they match are looked at: what
// comes of them is the same, also where some of the kinds are refused.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../fixtures/*/policy*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	checker := apiserver.NewChecker(34)
	lowered := func(p *policy.Policy, each func(n int, do func(i int))) string {
		o := translate.Options{Release: 34, Schemas: builtin(t, 34), Checker: checker, Each: each}
		return said(translate.Assemble([]translate.Lowered{translate.Lower(p, o)}, o))
	}
	backwards := func(n int, do func(i int)) {
		for i := range n {
			do(n - 1 - i)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := policy.Parse(file, data)
		for _, p := range f.Policies {
			if forth, back := lowered(p, nil), lowered(p, backwards); forth != back {
				t.Errorf("%s %s:\n%s\nand the other way round:\n%s", file, p.Name, forth, back)
			}
		}
	}
}

// said is what a translation says of rules, and the objects it makes.
func said(r translate.Result) string {
	var out strings.Builder
	for _, rule := range r.Rules {
		fmt.Fprintln(&out, rule.Target, rule.Codes, rule.Found)
	}
	for _, d := range r.Drafts {
		o, found := vap.Emit(d, vap.EmitOptions{})
		fmt.Fprintln(&out, o.Policy, found)
	}
	fmt.Fprintln(&out, r.Diagnostics)
	return out.String()
}
