package translate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/internal/cores"
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
	checker := &oneAtATime{checker: apiserver.NewChecker(34)}
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
			forth := lowered(p, nil)
			if back := lowered(p, backwards); forth != back {
				t.Errorf("%s %s:\n%s\nand the other way round:\n%s", file, p.Name, forth, back)
			}
			if atOnce := lowered(p, cores.Each); forth != atOnce {
				t.Errorf("%s %s:\n%s\nand at once:\n%s", file, p.Name, forth, atOnce)
			}
		}
	}
}

// oneAtATime is a checker that several may ask.
type oneAtATime struct {
	mu      sync.Mutex
	checker *apiserver.Checker
}

func (c *oneAtATime) MutatingRefusals(p *admissionregistrationv1.MutatingAdmissionPolicy) []vap.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checker.MutatingRefusals(p)
}

func (c *oneAtATime) Refusals(p *admissionregistrationv1.ValidatingAdmissionPolicy) []vap.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checker.Refusals(p)
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
