package apiserver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
)

// alternatives is a long expression.
func alternatives(n int, form string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(parts, " || ")
}

const (
	labelled = "object.metadata.?labels[?'app'].orValue('') == 'a%d'"
	chosen   = "(object.metadata.?labels.?l%[1]d.orValue('') != '' ? object.metadata.labels.l%[1]d : 'x')"
	looped   = "object.spec.containers.all(c, c.image == 'a%[1]d' || c.name in ['x', 'y%[1]d'])"
)

// What checking a long expression takes grows with its length, and not with its square.
func TestLongExpression(t *testing.T) {
	NewChecker(cel.Latest).Validate(&admissionregistrationv1.ValidatingAdmissionPolicy{}) // what is made once
	nested := func(n int, form string) string { return strings.ReplaceAll(alternatives(n, form), "||", "? true :") }
	for _, c := range []struct {
		form string
		join func(int, string) string
	}{
		{labelled, alternatives}, {looped, alternatives}, {"(object.a == null ? '' : object.a) + 'x' == 'a%d'", alternatives},
		{labelled, nested},
	} {
		work := func(n int) float64 {
			p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: c.join(n, c.form)}}
			checker := NewChecker(cel.Latest)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			checker.Validate(p)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		few, many := work(50), work(200)
		if many > 6*few {
			t.Errorf("%.60s: fifty take %.0f bytes, and four times as many %.1f times that", c.join(2, c.form), few, many/few)
		}
	}
}
