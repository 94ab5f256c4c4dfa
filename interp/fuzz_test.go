package interp

import (
	"context"
	"strings"
	"testing"
	"time"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
)

// FuzzJudge pins that judging never crashes, always ends, and says the same twice,
// whatever rule and object it is given.
func FuzzJudge(f *testing.F) {
	for _, rule := range []string{
		`validate: {pattern: {metadata: {labels: {"a*": "?*"}}, spec: {=(l): [{(k): "x|y", ^(m): [{v: ">1Gi"}]}], <(z): "1-5", X(w): null}}}`,
		`validate: {anyPattern: [{spec: {x: "!a & !b"}}, {spec: {x: [[1], [2]]}}]}`,
		`validate: {message: "{{ request.object.spec.x }}", deny: {conditions: {any: [{key: "{{ request.object.spec.l[].v || 'none' }}", operator: AnyNotIn, value: "1-10"}]}}}`,
		`validate: {foreach: [{list: "request.object.spec.l", context: [{name: c, variable: {jmesPath: element.k, default: d}}], foreach: [{list: "keys(element)", deny: {conditions: {all: [{key: "{{ c }}{{ element1 }}", operator: Equals, value: "x*"}]}}}]}]}`,
		`validate: {podSecurity: {level: restricted, version: v1.25}}`,
		`validate: {cel: {expressions: [{expression: "object.spec.x == 1"}]}}`,
		`validate: {pattern: {spec: {x: "$(./../l)", l: "$(<=/spec/x)"}}}`,
	} {
		f.Add(rule, `{"metadata": {"name": "a", "namespace": "b", "labels": {"ab": "c"}}, "spec": {"x": "5", "l": [{"k": "x", "m": [{"v": "2Gi"}]}, null], "z": 3}}`)
	}
	f.Fuzz(func(t *testing.T, rule, object string) {
		file, ds := policy.Parse("policy.yaml", []byte(strings.ReplaceAll(widgetPolicy(rule), "[Widget]", "[Widget, Pod]")))
		var o map[string]any
		if ds.HasErrors() || kjson.Unmarshal([]byte(object), &o) != nil || o == nil {
			return
		}
		o["apiVersion"], o["kind"] = "v1", "Pod"
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		in := New(file.Policies, file.Exceptions, &Offline{Time: time.Unix(0, 0)}, Limits{})
		for _, request := range []map[string]any{create(o), admissionRequest("UPDATE", o, o), admissionRequest("DELETE", nil, o)} {
			first := in.Judge(ctx, &Request{Admission: request, Action: policy.Enforce})
			second := in.Judge(ctx, &Request{Admission: request, Action: policy.Enforce})
			for i := range first {
				if strings.HasPrefix(first[i].Message, errPanic.Error()) {
					t.Fatalf("crashed: %s", first[i].Message)
				}
				if first[i].Status != second[i].Status || first[i].Kyverno != second[i].Kyverno {
					t.Fatalf("judged twice:\n%s", textdiff.Values(first[i], second[i]))
				}
			}
		}
	})
}
