package interp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
)

// TestMutatingCorpus compares what each MutatingPolicy makes of an object, and the gravest
// status over its forms, with Kyverno's.
func TestMutatingCorpus(t *testing.T) {
	needCorpus(t)
	if policies, total := eachFolder(t, "mutatingpolicy", compareMutating); policies < 50 || total < 3000 {
		t.Errorf("%d policies, %d cases", policies, total)
	}
}

func compareMutating(t *testing.T, dir string) (cases int) {
	data, err := os.ReadFile(dir + "/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, ds := policy.Parse("policy.yaml", data)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	engine := inNamespaces(f)
	for _, line := range lines(t, dir+"/cases.jsonl.gz") {
		cases++
		var c corpusCase
		var recorded struct {
			Statuses map[string]Status `json:"statuses"`
			Object   map[string]any    `json:"object"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if err := kjson.Unmarshal(line, &recorded); err != nil {
			t.Fatal(err)
		}
		request := c.request(t, "")
		got := engine(request).Mutate(context.Background(), request)
		statuses, messages := map[string]Status{}, ""
		for _, r := range got.Rules {
			name := r.Policy
			if r.Namespace != "" {
				name = r.Namespace + "/" + name
			}
			if r.Kyverno != None && gravity(r.Kyverno) > gravity(statuses[name]) {
				statuses[name] = r.Kyverno
			}
			messages += r.Rule + ": " + r.Message + "\n"
		}
		if d := textdiff.Values(recorded.Statuses, statuses); d != "" {
			t.Errorf("case %s: statuses (-want +got):\n%s%s", c.ID, d, messages)
		}
		want := recorded.Object
		if want == nil {
			want = got.Before
		}
		if d := textdiff.Values(want, got.After); d != "" {
			t.Errorf("case %s: object (-want +got):\n%s%s", c.ID, d, messages)
		}
	}
	return cases
}

// inNamespaces are interpreters of policies, each for a cluster that has the namespace of a
// request and nothing else.
func inNamespaces(f *policy.File) func(*Request) *Interpreter {
	known := map[string]*Interpreter{}
	return func(r *Request) *Interpreter {
		name := digText(r.Admission, "namespace")
		key := fmt.Sprint(name, r.NamespaceLabels)
		if known[key] != nil {
			return known[key]
		}
		world := &Offline{Complete: true, Plural: func(_, kind string) string {
			return map[string]string{"Namespace": "namespaces"}[kind]
		}}
		if name != "" {
			labels := map[string]any{"kubernetes.io/metadata.name": name}
			for k, v := range r.NamespaceLabels {
				labels[k] = v
			}
			world.Objects = []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}}}
		}
		known[key] = New(f.Policies, f.Exceptions, world, Limits{})
		return known[key]
	}
}
