package interp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/policy"
)

// exceptOf judges the creation of a Widget by a policy with exceptions, each with its
// name and what stands in its spec.
func exceptOf(t *testing.T, spec string, exceptions ...[2]string) RuleResult {
	t.Helper()
	text := validatingPolicy(spec)
	for _, e := range exceptions {
		text += "---\napiVersion: policies.kyverno.io/v1beta1\nkind: PolicyException\nmetadata: {name: " + e[0] + ", namespace: ns}\nspec: {" + e[1]
		if !strings.Contains(e[1], "policyRefs") {
			text += ", policyRefs: [{name: p, kind: ValidatingPolicy}]"
		}
		text += "}\n"
	}
	f, ds := policy.Parse("p.yaml", []byte(text))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	request := &Request{Admission: create(object(t, `{metadata: {name: w, namespace: team}, spec: {x: 1, image: a}}`))}
	world := &Offline{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return New(f.Policies, f.Exceptions, world, Limits{}).Judge(t.Context(), request)[0]
}

func TestCELExceptions(t *testing.T) {
	const (
		fails  = "validations: [{expression: 'false', message: bad}]"
		allows = "validations: [{expression: 'object.spec.image in exceptions.allowedImages && 1 == object.spec.x || \"v\" in exceptions.allowedValues', message: bad}]"
		yes    = `matchConditions: [{name: a, expression: "object.metadata.name == 'w'"}]`
		no     = `matchConditions: [{name: a, expression: "object.metadata.name == 'w'"}, {name: b, expression: "false"}]`
		errs   = `matchConditions: [{name: a, expression: "object.spec.zz == 1"}]`
		maybe  = `matchConditions: [{name: a, expression: "object.spec.zz == 1"}, {name: b, expression: "false"}]`
	)
	for _, tt := range []struct {
		spec       string
		exceptions [][2]string
		want       Status
		message    string
	}{
		{fails, [][2]string{{"e", "reportResult: skip"}}, Skip, "rule is skipped due to policy exception: ns/e"},
		{fails, [][2]string{{"e", "reportResult: pass"}}, Pass, "rule is passed due to policy exception: ns/e"},
		{fails, [][2]string{{"e", yes}}, Skip, ""},
		{fails, [][2]string{{"e", no}}, Fail, "bad"},
		{fails, [][2]string{{"e", maybe}}, Fail, "bad"},
		{fails, [][2]string{{"e", errs}}, Error, "ns/e"},
		{fails, [][2]string{{"e", errs}, {"f", yes}}, Skip, "ns/f"}, // one that applies is enough
		{fails + "\nfailurePolicy: Ignore", [][2]string{{"e", errs}}, Fail, "bad"},
		{fails, [][2]string{{"e", "policyRefs: [{name: q, kind: ValidatingPolicy}]"}}, Fail, "bad"},
		{fails, [][2]string{{"e", "policyRefs: [{name: p, kind: NamespacedValidatingPolicy}]"}}, Fail, "bad"},
		{fails, [][2]string{{"e", `expiresAt: "2026-01-01T00:00:01Z"`}}, Skip, ""},
		{fails, [][2]string{{"e", `expiresAt: "2026-01-01T00:00:00Z"`}}, Fail, "bad"},
		{fails + "\nmatchConditions: [{name: a, expression: 'object.spec.zz == 1'}]", [][2]string{{"e", yes}}, Skip, "exception"}, // looked at first
		{fails + "\nmatchConditions: [{name: a, expression: 'false'}]", [][2]string{{"e", errs}}, Error, "ns/e"},
		{fails, [][2]string{{"e", `matchConditions: [{name: a, expression: "nothing(1)"}]`}}, Error, "undeclared reference"},
		{fails + "\nvariables: [{name: v, expression: '1'}]", [][2]string{{"e", `matchConditions: [{name: a, expression: "variables.v == 1"}]`}}, Error, "no such attribute"},

		{allows, nil, Fail, "bad"},
		{allows, [][2]string{{"e", "images: [a, b]"}}, Pass, "success"},
		{allows, [][2]string{{"e", "images: [b]"}, {"f", "images: [a], " + no}}, Fail, "bad"},
		{allows, [][2]string{{"e", "images: [b]"}, {"f", "allowedValues: [v], " + yes}}, Pass, "success"},
		{allows, [][2]string{{"e", "images: ['*']"}}, Fail, "bad"}, // no wildcards
		{allows, [][2]string{{"e", "images: [b]"}, {"f", yes}}, Skip, "ns/f"},
	} {
		if got := exceptOf(t, tt.spec, tt.exceptions...); got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s %q: want %s (%s), got %s (%s)", tt.spec, tt.exceptions, tt.want, tt.message, got.Status, got.Message)
		}
	}
	got := exceptOf(t, fails, [2]string{"e", "reportResult: skip"}, [2]string{"f, labels: {polex.kyverno.io/priority: '1'}", "reportResult: pass"})
	if got.Status != Pass || !slices.Equal(got.Exceptions, []string{"ns/e", "ns/f"}) {
		t.Errorf("%+v", got)
	}
}
