package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

const celException = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: e, labels: {polex.kyverno.io/priority: "2"}}
spec:
  policyRefs: [{name: p, kind: ValidatingPolicy}]
  matchConditions: [{name: a, expression: b}]
  images: [c]
  allowedValues: [d]
  reportResult: pass
  expiresAt: "2027-01-31T00:00:00Z"
  properties: {x: y}
`

func TestCELException(t *testing.T) {
	f, ds := policy.Parse("e.yaml", []byte(celException))
	if len(ds) > 0 || len(f.Exceptions) != 1 || len(f.Unread) > 0 {
		t.Fatal(ds)
	}
	want := &policy.CELException{
		Refs: []policy.Ref{{Kind: "ValidatingPolicy", Name: "p"}}, MatchConditions: []policy.CEL{{Name: "a", Expression: "b"}},
		Images: []string{"c"}, AllowedValues: []string{"d"}, ReportResult: "pass", ExpiresAt: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
		Labels: map[string]string{"polex.kyverno.io/priority": "2"},
	}
	e := f.Exceptions[0]
	if d := cmp.Diff(want, e.CEL, cmpopts.IgnoreTypes(diag.Pos{})); d != "" || e.Namespace != "default" || e.Invalid || e.CEL.Whole() {
		t.Errorf("%+v (-want +got):\n%s", e, d)
	}
	for kind, is := range map[string]bool{"ValidatingPolicy": true, "NamespacedValidatingPolicy": false} {
		if e.CEL.IsFrom(&policy.Policy{Kind: kind, Name: "p"}) != is {
			t.Errorf("%s: want %v", kind, is)
		}
	}
	for from, to := range map[string]string{
		"[{name: p, kind: ValidatingPolicy}]": "[]",
		"{name: p, kind":                      "{kind",
		"2027-01-31T00:00:00Z":                "tomorrow",
		"reportResult: pass":                  "reportResult: fail",
		"images: [c]":                         "image: [c]",
	} {
		f, ds := policy.Parse("e.yaml", []byte(strings.Replace(celException, from, to, 1)))
		if !ds.HasErrors() || !f.Exceptions[0].Invalid {
			t.Errorf("%s: %v", to, ds)
		}
	}
}

// An exception that names a policy which is not there is told.
func TestIdleCELException(t *testing.T) {
	f, _ := policy.Parse("e.yaml", []byte(celException))
	p := &policy.Policy{Kind: "ValidatingPolicy", Name: "p", Validating: &policy.Validating{}}
	if ds := policy.Idle([]*policy.Policy{p}, f.Exceptions); len(ds) > 0 {
		t.Error(ds)
	}
	p.Name = "q"
	if ds := policy.Idle([]*policy.Policy{p}, f.Exceptions); len(ds) != 1 || ds[0].Code != diag.IdleException {
		t.Error(ds)
	}
}
