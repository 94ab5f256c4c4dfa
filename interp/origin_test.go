package interp

import (
	"strconv"
	"testing"
)

// A value is read as what wrote it, whatever led to it: a text of a ConfigMap that is a list
// is that list (deviation 15), wherever an expression, a variable or a loop takes it from.
func TestOriginsAreKept(t *testing.T) {
	const (
		app, which = "request.object.metadata.labels.app", "request.object.metadata.labels.which"
		noted      = "request.object.metadata.annotations.list"
	)
	variable := func(entries string) string {
		return `context: [{name: cm, configMap: {name: c, namespace: team}}, ` + entries + `]`
	}
	const cm = `context: [{name: cm, configMap: {name: c, namespace: team}}]`
	in := func(key, value string) string {
		return `deny: {conditions: {any: [{key: ` + strconv.Quote("{{ "+key+" }}") + `, operator: AnyIn, value: ` + strconv.Quote("{{ "+value+" }}") + `}]}}`
	}
	for _, c := range []struct {
		name, context, body string
		want                Status
	}{
		// The ConfigMap's list has web in it.
		{"as it is", cm, in(app, "cm.data.list"), Fail},
		{"before a default", cm, in(app, "cm.data.list || ''"), Fail},
		{"by a name of the request", cm, in(app, `cm.data."{{ `+which+` }}"`), Fail},
		{"by a name of the request, before a default", cm, in(app, `cm.data."{{ `+which+` }}" || ''`), Fail},
		{"as a default", cm, in(app, "request.object.metadata.labels.none || cm.data.list"), Fail},
		{"behind a condition", cm, in(app, which+" && cm.data.list"), Fail},
		{"the first that is there", cm, in(app, "not_null(cm.data.none, cm.data.list, "+app+")"), Fail},
		{"by lookup", cm, in(app, "lookup(cm.data, "+which+")"), Fail},
		{"in a pipe", cm, in(app, `cm.data | ("{{ `+which+` }}" || list)`), Fail},
		{"a part of what is put together", cm, in(app, "{a: cm.data.list, b: "+which+"}.a"), Fail},
		{"an element of what is put together", cm, in(app, "["+which+", cm.data.list][1]"), Fail},
		{"as a text", cm, in(app, `'{{ cm.data.list || '' }}'`), Fail},
		{"by to_string", cm, in(app, "to_string(cm.data.list)"), Fail},
		{"a variable", variable(`{name: v, variable: {value: "{{ cm.data.list }}"}}`), in(app, "v"), Fail},
		{"a variable of a variable", variable(`{name: u, variable: {jmesPath: cm.data}}, {name: v, variable: {value: "{{ u.list || '' }}"}}`), in(app, "v"), Fail},
		{"a variable's part", variable(`{name: v, variable: {value: {a: "{{ cm.data.list }}", b: "{{ ` + which + ` }}"}}}`), in(app, "v.a"), Fail},
		{"a variable's element", variable(`{name: v, variable: {value: ["{{ ` + which + ` }}", "{{ cm.data.list }}"]}}`), in(app, "v[1]"), Fail},
		{"what a variable finds", variable(`{name: v, variable: {value: {a: "{{ cm.data.list }}", b: "{{ ` + which + ` }}"}, jmesPath: "a"}}`), in(app, "v"), Fail},
		{"a variable's default", variable(`{name: v, variable: {jmesPath: request.object.metadata.labels.none, default: "{{ cm.data.list }}"}}`), in(app, "v"), Fail},
		{"an element of a loop", cm, `foreach: [{list: "[cm.data.list]", ` + in(app, "element") + `}]`, Fail},
		{"an element of a loop over both", cm, `foreach: [{list: "[` + which + `, cm.data.list]", ` + in(app, "element || ''") + `}]`, Fail},
		{"a wildcard of the policy beside the request", cm, in(app, "["+which+", 'w*']"), Fail},
		{"a wildcard of the policy in a variable", variable(`{name: v, variable: {value: ["{{ ` + which + ` }}", "w*"]}}`), in(app, "v"), Fail},
		{"beyond the end of a list of both", cm, in(app, "lookup(["+which+", 'w*'], `9`) || 'web'"), Fail},
		// What the request has in a text is one element, and no pattern.
		{"the request's", cm, in(app, noted), Pass},
		{"the request's before the ConfigMap's", cm, in(app, noted+" || cm.data.list"), Pass},
		{"the request's behind the ConfigMap's", cm, in(app, "cm.data.list && "+noted), Pass},
		{"the request's beside the ConfigMap's", cm, in(app, "{a: cm.data.list, b: "+noted+"}.b"), Pass},
		{"the request's of a variable", variable(`{name: v, variable: {value: {a: "{{ cm.data.list }}", b: "{{ ` + noted + ` }}"}}}`), in(app, "v.b"), Pass},
		{"the request's of a loop", cm, `foreach: [{list: "[` + noted + `]", ` + in(app, "element") + `}]`, Pass},
		{"a wildcard of the request in an expression that is put together", cm, in(app, "[to_string('{{ request.object.metadata.labels.wild }}'), {{ "+which+" }}]"), Pass},
		{"a wildcard of the request in a query that is put together", variable(`{name: v, variable: {jmesPath: "['{{ request.object.metadata.labels.wild }}']"}}`), in(app, "v"), Pass},
		{"a wildcard of the request in what is done to each", cm, in(app, "map(&join('', ['{{ request.object.metadata.labels.wild }}', @]), [''])"), Pass},
		{"a wildcard of the policy in what is done to each", cm, in(app, "map(&join('', ['w', @]), ['*'])"), Fail},
		{"a key of the request", variable(`{name: v, variable: {value: {"{{ request.object.metadata.labels.wild }}": x}}}`), in(app, "keys(v)"), Pass},
		{"a key of the request that a variable finds", variable(`{name: v, variable: {value: {"{{ request.object.metadata.labels.wild }}": x}, jmesPath: "keys(@)"}}`), in(app, "v"), Pass},
		{"a key of the request in a text", variable(`{name: v, variable: {value: {"{{ request.object.metadata.labels.wild }}": x}, jmesPath: "to_string(@)"}}`), in("to_string({web: 'x'})", "v"), Pass},
		{"a key of the policy", variable(`{name: v, variable: {value: {"w*": x}}}`), in(app, "keys(v)"), Fail},
		{"what a query of an answer finds", variable(`{name: v, apiCall: {urlPath: /a, jmesPath: "data.list || 'none'"}}`), in(app, "v"), Fail},
		{"the request's in a query of an answer", variable(`{name: v, apiCall: {urlPath: /a, jmesPath: "data.none || '{{ ` + noted + ` }}'"}}`), in(app, "v"), Pass},
		{"the request's in a query of a global entry", variable(`{name: v, globalReference: {name: g, jmesPath: "data.none || '{{ ` + noted + ` }}'"}}`), in(app, "v"), Pass},
		{"the request's in a query of an image", variable(`{name: v, imageRegistry: {reference: i, jmesPath: "data.none || '{{ ` + noted + ` }}'"}}`), in(app, "v"), Pass},
		{"the request's in a text", cm, in(app, `'{{ `+noted+` }}'`), Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			policies := readPolicies(t, "p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Service]}}]}
      `+c.context+`
      validate: {message: m, `+c.body+`}
`))
			world := &Offline{Objects: []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "team"},
				"data": map[string]any{"list": `["db","web"]`}}},
				Answers: map[string][]byte{"/a": []byte(`{"data":{"list":"[\"db\",\"web\"]"}}`)}, Globals: map[string]any{"g": map[string]any{"data": map[string]any{}}},
				Images: map[string]map[string]any{"i": {"data": map[string]any{}}}}
			admission, err := ParseAdmission([]byte(`{"operation":"CREATE","kind":{"version":"v1","kind":"Service"},"name":"s","namespace":"team","object":{"apiVersion":"v1","kind":"Service",
"metadata":{"name":"s","namespace":"team","labels":{"app":"web","which":"list","wild":"w*"},"annotations":{"list":"[\"web\"]"}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := New(policies, nil, world, Limits{}).Judge(t.Context(), &Request{Admission: admission})[0]; got.Status != c.want {
				t.Errorf("%s (%s), want %s", got.Status, got.Message, c.want)
			}
		})
	}
}
