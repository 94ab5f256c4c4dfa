package judge_test

import (
	"context"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

const benchRequest = `{"uid":"u","operation":"CREATE","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"name":"p","namespace":"n",
"userInfo":{"username":"alice","groups":["dev","system:authenticated"]},
"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","labels":{"app":"x","team":"red"}},
"spec":{"containers":[{"name":"a","image":"nginx:1.27","securityContext":{"runAsNonRoot":true}},{"name":"b","image":"redis:7"}]}}}`

// BenchmarkJudge reads a request and puts it before both judges of one typical rule.
func BenchmarkJudge(b *testing.B) {
	schemas, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		b.Fatal(err)
	}
	f, _ := policy.Parse("p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: an image is pinned
      foreach:
      - list: request.object.spec.containers
        deny: {conditions: {any: [{key: "{{ element.image }}", operator: AnyIn, value: ["*:latest"]}]}}
`))
	j, err := judge.Compile(compile.Input{Policies: f.Policies}, compile.Options{Translate: translate.Options{Release: cel.Latest, Schemas: schemas}}, judge.ClusterState{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var data map[string]any
		if err := kjson.Unmarshal([]byte(benchRequest), &data); err != nil {
			b.Fatal(err)
		}
		r, err := judge.NewRequest(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.Judge(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
