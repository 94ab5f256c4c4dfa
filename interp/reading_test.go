package interp

import (
	"fmt"
	"slices"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Where kvap reads a value otherwise than Kyverno, both statuses are given, with the number
// of the deviation; elsewhere they are the same.
func TestExact(t *testing.T) {
	const (
		member = `deny: {conditions: {any: [{key: "{{ request.object.data.a }}", operator: %s, value: [bind]}]}}`
		inside = `deny: {conditions: {any: [{key: "x-{{ request.object.data.a }}", operator: AnyIn, value: [x-bind]}]}}`
		own    = `pattern: {data: {a: "!*x"}}`
		both   = `deny: {conditions: {any: [{key: "{{ request.object.data.a }}", operator: AnyIn, value: [bind]}, {key: "{{ request.object.data.a }}", operator: AnyIn, value: 1-5}]}}`
	)
	for _, c := range []struct {
		name, body, value string
		status, kyverno   Status
		deviations        []int
	}{
		{"no wildcard", fmt.Sprintf(member, "AnyIn"), "bind", Fail, Fail, nil},
		{"a wildcard that does not match", fmt.Sprintf(member, "AnyIn"), "get*", Pass, Pass, nil},
		{"a wildcard", fmt.Sprintf(member, "AnyIn"), "b*", Pass, Fail, []int{9}},
		{"everything", fmt.Sprintf(member, "AnyIn"), "*", Fail, Fail, nil},
		{"everything is on no list", fmt.Sprintf(member, "AnyNotIn"), "*", Fail, Pass, []int{9}},
		{"of a text", inside, "b?nd", Pass, Fail, []int{9}},
		{"the pattern's own text", own, "!*x", Fail, Pass, []int{13}},
		{"another text", own, "!x", Fail, Fail, nil},
		{"what differs decides nothing", both, "b?nd", Pass, Fail, []int{9}},
	} {
		policies := readPolicies(t, "p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, `+c.body+`}
`))
		value, err := kjson.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		admission, err := ParseAdmission([]byte(`{"operation":"CREATE","kind":{"version":"v1","kind":"ConfigMap"},"name":"c","namespace":"n",
"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"},"data":{"a":` + string(value) + `}}}`))
		if err != nil {
			t.Fatal(err)
		}
		in := New(policies, nil, &Offline{}, Limits{})
		got := in.Judge(t.Context(), &Request{Admission: admission, Exact: true})[0]
		if got.Status != c.status || got.Kyverno != c.kyverno || !slices.Equal(got.Deviations, c.deviations) {
			t.Errorf("%s: %s, to Kyverno %s by %v; want %s, %s, %v", c.name, got.Status, got.Kyverno, got.Deviations, c.status, c.kyverno, c.deviations)
		}
		if plain := in.Judge(t.Context(), &Request{Admission: admission})[0]; plain.Status != c.status || plain.Kyverno != c.status {
			t.Errorf("%s: %s, to Kyverno %s where nobody asks; want %s", c.name, plain.Status, plain.Kyverno, c.status)
		}
	}
}
