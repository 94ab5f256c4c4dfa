package interp

import (
	"slices"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// TestFields pins deviation 15, row by row: what a value of the request is read as.
func TestFields(t *testing.T) {
	formats := func(_, _, _ string, field []string) Format {
		switch field[len(field)-1] {
		case "quantity", "quantity2":
			return Quantity
		case "time", "time2":
			return Duration
		case "port":
			return IntOrString
		}
		return AnyText
	}
	const (
		a, b = "{{ request.object.spec.a }}", "{{ request.object.spec.b }}"
	)
	deny := func(key, operator, value string) string {
		return `deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: ` + value + `}]}}`
	}
	of := func(field string) string { return `"{{ request.object.spec.` + field + ` }}"` }
	for _, c := range []struct {
		name, body, spec string
		status, kyverno  Status
		deviations       []int
	}{
		// Two values, neither of which is the policy's.
		{"two durations", deny(a, "Equals", of("b")), `{"a":"1h","b":"60m"}`, Pass, Fail, []int{15}},
		{"two quantities", deny(a, "Equals", of("b")), `{"a":"1000m","b":"1"}`, Pass, Fail, []int{15}},
		{"a pattern", deny(a, "NotEquals", of("b")), `{"a":"abc","b":"a*"}`, Fail, Pass, []int{15}},
		{"a number and its text", deny(a, "Equals", of("b")), `{"a":5,"b":"5"}`, Pass, Fail, []int{15}},
		{"the same text", deny(a, "Equals", of("b")), `{"a":"1h","b":"1h"}`, Fail, Fail, nil},
		{"the same number", deny(a, "Equals", of("b")), `{"a":1,"b":1.0}`, Fail, Fail, nil},
		{"quantities by schema", deny("{{ request.object.spec.quantity }}", "Equals", of("quantity2")), `{"quantity":"1Gi","quantity2":"1024Mi"}`, Fail, Fail, nil},
		{"durations by schema", deny("{{ request.object.spec.time }}", "Equals", of("time2")), `{"time":"1h","time2":"60m"}`, Fail, Fail, nil},
		{"the order of quantities", deny("{{ request.object.spec.quantity }}", "GreaterThan", of("quantity2")), `{"quantity":"2Gi","quantity2":"1024Mi"}`, Fail, Fail, nil},
		{"the order of texts", deny(a, "GreaterThan", of("b")), `{"a":"2","b":"1"}`, Error, Fail, []int{15}},
		{"the order of numbers", deny(a, "GreaterThan", of("b")), `{"a":2,"b":1}`, Fail, Fail, nil},
		{"texts of quantities by schema", deny("{{ to_string(request.object.spec.quantity) }}", "Equals", `"{{ to_string(request.object.spec.quantity2) }}"`), `{"quantity":"1Gi","quantity2":"1024Mi"}`, Fail, Fail, nil},
		{"the order of texts of quantities", deny("{{ to_string(request.object.spec.quantity) }}", "GreaterThan", of("quantity2")), `{"quantity":"2Gi","quantity2":"1024Mi"}`, Fail, Fail, nil},
		{"texts of durations by schema", deny("{{ to_string(request.object.spec.time) }}", "Equals", of("time2")), `{"time":"1h","time2":"60m"}`, Fail, Fail, nil},
		{"a quantity or a default", deny("{{ request.object.spec.quantity || request.object.spec.a }}", "Equals", of("quantity2")), `{"quantity":"1Gi","quantity2":"1024Mi","a":"x"}`, Fail, Fail, nil},
		// A text beside a literal.
		{"a literal duration", deny(a, "Equals", "1h"), `{"a":"60m"}`, Fail, Fail, nil},
		{"a literal quantity", deny(a, "Equals", `"1"`), `{"a":"1000m"}`, Fail, Fail, nil},
		{"minutes are milli", deny(a, "Equals", "5m"), `{"a":"300s"}`, Pass, Fail, []int{15}},
		{"minutes of a duration", deny("{{ request.object.spec.time }}", "Equals", "5m"), `{"time":"300s"}`, Fail, Fail, nil},
		{"seconds that are a number", deny(a, "Equals", "3600"), `{"a":"1h"}`, Pass, Fail, []int{15}},
		{"a wildcard and a number", deny(a, "Equals", `"5*"`), `{"a":"55"}`, Fail, Pass, []int{15}},
		{"no quantity", deny(a, "GreaterThan", "500Mi"), `{"a":"much"}`, Pass, Pass, nil},
		{"a version", deny(a, "GreaterThan", "1.2.3"), `{"a":"1.10.0"}`, Fail, Fail, nil},
		{"minutes of a duration's text", deny("{{ to_string(request.object.spec.time) }}", "Equals", "5m"), `{"time":"300s"}`, Fail, Fail, nil},
		{"the text of a port", deny("{{ to_string(request.object.spec.port) }}", "GreaterThan", `"80"`), `{"port":8080}`, Fail, Fail, nil},
		// Patterns.
		{"a duration where 0 is asked for", `pattern: {spec: {a: ">0"}}`, `{"a":"1h"}`, Fail, Pass, []int{15}},
		{"a port that looks like a quantity", `pattern: {spec: {port: ">1000"}}`, `{"port":"10k"}`, Fail, Pass, []int{15}},
		{"a port that is a number", `pattern: {spec: {port: ">1000"}}`, `{"port":8080}`, Pass, Pass, nil},
		{"the text of a number as a port", `pattern: {spec: {port: 80}}`, `{"port":"80"}`, Fail, Pass, []int{15}},
		{"a variable", `pattern: {spec: {a: "` + b + `"}}`, `{"a":"60m","b":"1h"}`, Fail, Pass, []int{15}},
		{"a variable with an operator", `pattern: {spec: {a: "` + b + `"}}`, `{"a":"x","b":"!y"}`, Fail, Pass, []int{15}},
		{"a variable between words", `pattern: {spec: {a: "` + b + `-*"}}`, `{"a":"x-y","b":"?"}`, Fail, Pass, []int{15}},
		{"a variable that is there", `pattern: {spec: {a: "` + b + `-*"}}`, `{"a":"x-y","b":"x"}`, Pass, Pass, nil},
		// Memberships.
		{"a range", deny(a, "AnyIn", of("b")), `{"a":"3","b":"1-5"}`, Pass, Fail, []int{15}},
		{"a list in a text", deny(a, "AnyIn", of("b")), `{"a":"x","b":"[\"x\"]"}`, Pass, Fail, []int{15}},
		{"JSON that is no list", deny(a, "AnyNotIn", of("b")), `{"a":"x","b":"5"}`, Fail, Pass, []int{15}},
		{"a number in texts", deny(a, "AnyIn", of("b")), `{"a":5,"b":["5"]}`, Pass, Fail, []int{15}},
		{"an element", deny(a, "AnyIn", of("b")), `{"a":"x","b":["x"]}`, Fail, Fail, nil},
		{"a range of the policy", deny(a, "AnyIn", "1-5"), `{"a":"3"}`, Fail, Fail, nil},
		{"everything", deny(a, "AnyIn", of("b")), `{"a":"x","b":"*"}`, Fail, Fail, nil},
	} {
		policies := readPolicies(t, "p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Widget]}}]}
      validate: {message: m, `+c.body+`}
`))
		var spec map[string]any
		if err := kjson.Unmarshal([]byte(c.spec), &spec); err != nil {
			t.Fatal(err)
		}
		admission := map[string]any{"operation": "CREATE", "name": "c", "namespace": "n", "kind": map[string]any{"group": "w", "version": "v1", "kind": "Widget"},
			"object": map[string]any{"apiVersion": "w/v1", "kind": "Widget", "metadata": map[string]any{"name": "c", "namespace": "n"}, "spec": spec}}
		got := New(policies, nil, &Offline{Formats: formats}, Limits{}).Judge(t.Context(), &Request{Admission: admission, Exact: true})[0]
		if got.Status != c.status || got.Kyverno != c.kyverno || !slices.Equal(got.Deviations, c.deviations) {
			t.Errorf("%s: %s, to Kyverno %s by %v (%s); want %s, %s, %v", c.name, got.Status, got.Kyverno, got.Deviations, got.Message, c.status, c.kyverno, c.deviations)
		}
	}
}
