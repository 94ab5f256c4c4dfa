package interp_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A mutateVector is a policy, a request, and what Kyverno makes of it. Where kvap
// differs on purpose, Kvap says what it does instead, and Because why.
type mutateVector struct {
	ID          string           `json:"id"`
	APIVersion  string           `json:"apiVersion"`
	Kind        string           `json:"kind"`
	Match       []string         `json:"match"`       // kinds; the object's where empty
	Controllers string           `json:"controllers"` // of the annotation; none where empty and Match is too
	ApplyRules  string           `json:"applyRules"`
	Operation   string           `json:"operation"`
	Subresource string           `json:"subresource"`
	DryRun      bool             `json:"dryRun"`
	Rules       []map[string]any `json:"rules"`
	Object      map[string]any   `json:"object"`
	Old         map[string]any   `json:"old"`
	Expectation `json:",inline"`
	Kvap        *Expectation `json:"kvap"`
	Because     string       `json:"because"`
}

// An Expectation is the status of each rule, and the object in the end where it
// is another.
type Expectation struct {
	Statuses []string       `json:"statuses"`
	Want     map[string]any `json:"want"`
}

func TestMutateVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/mutate/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []mutateVector
		readYAML(t, text, &vectors)
		for _, v := range vectors {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+v.ID, v.run)
		}
	}
}

// readYAML reads numbers as the API server does.
func readYAML(t *testing.T, text []byte, into any) {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(text)
	if err == nil {
		err = kjson.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (v mutateVector) run(t *testing.T) {
	want := v.Expectation
	if v.Kvap != nil {
		want = *v.Kvap
		if v.Because == "" {
			t.Error("a difference needs a reason")
		}
	}
	req := v.request()
	before := mustJSON(t, req.Admission)
	in := interp.New([]*policy.Policy{v.policy(t)}, nil, &interp.Offline{}, interp.Limits{})
	got := in.Mutate(t.Context(), req)
	var statuses []string
	for _, r := range got.Rules {
		statuses = append(statuses, string(r.Status))
	}
	if d := textdiff.Values(named(want.Statuses), named(statuses)); d != "" {
		t.Errorf("statuses (-want +got):\n%s%s", d, messages(got))
	}
	wanted := want.Want
	if wanted == nil {
		wanted = v.Object
	}
	last := got.After
	if n := len(got.Rules); n > 0 { // also of a policy in which a rule errs
		last = got.Rules[n-1].After
	}
	if d := textdiff.Values(numbers(wanted), numbers(v.stripped(last))); d != "" {
		t.Errorf("object (-want +got):\n%s%s", d, messages(got))
	}
	if after := mustJSON(t, req.Admission); after != before {
		t.Errorf("the request was changed:\n%s\n%s", before, after)
	}
}

// named leaves rules without a result out.
func named(statuses []string) []string {
	if len(statuses) == 0 {
		return []string{}
	}
	return slices.DeleteFunc(slices.Clone(statuses), func(s string) bool { return s == "none" || s == "-" })
}

func messages(m *interp.MutationResult) string {
	var b strings.Builder
	for _, r := range m.Rules {
		b.WriteString(r.Rule + ": " + string(r.Status) + " " + r.Message + "\n")
	}
	return b.String()
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// numbers gives all numbers one type.
func numbers(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			out[key] = numbers(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = numbers(item)
		}
		return out
	}
	return v
}

// stripped is an object without what all of them have.
func (v mutateVector) stripped(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	object = maps.Clone(object)
	if object["apiVersion"] == v.APIVersion && object["kind"] == v.Kind {
		delete(object, "apiVersion")
		delete(object, "kind")
	}
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta["name"] == "n" {
		delete(meta, "name")
	}
	delete(meta, "namespace")
	object["metadata"] = meta
	if len(meta) == 0 {
		delete(object, "metadata")
	}
	return object
}

func (v mutateVector) full(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	object = maps.Clone(object)
	object["apiVersion"], object["kind"] = v.APIVersion, v.Kind
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"] = "n", "v0"
	object["metadata"] = meta
	return object
}

func (v mutateVector) request() *interp.Request {
	group, version, found := strings.Cut(v.APIVersion, "/")
	if !found {
		group, version = "", v.APIVersion
	}
	operation := v.Operation
	if operation == "" {
		operation = "CREATE"
	}
	a := map[string]any{
		"uid": "1", "name": "n", "namespace": "v0", "operation": operation, "dryRun": v.DryRun,
		"kind":     map[string]any{"group": group, "version": version, "kind": v.Kind},
		"resource": map[string]any{"group": group, "version": version, "resource": strings.ToLower(v.Kind) + "s"},
		"userInfo": map[string]any{"username": "alice"},
		"object":   nil, "oldObject": nil,
	}
	if v.Subresource != "" {
		a["subResource"] = v.Subresource
	}
	if o := v.full(v.Object); o != nil {
		a["object"] = o
	}
	if o := v.full(v.Old); o != nil {
		a["oldObject"] = o
	}
	return &interp.Request{Admission: a, NamespaceLabels: map[string]string{}}
}

func (v mutateVector) policy(t *testing.T) *policy.Policy {
	t.Helper()
	controllers := v.Controllers
	if controllers == "" && len(v.Match) == 0 {
		controllers = "none"
	}
	meta := map[string]any{"name": "p"}
	if controllers != "" {
		meta["annotations"] = map[string]any{"pod-policies.kyverno.io/autogen-controllers": controllers}
	}
	kinds := v.Match
	if len(kinds) == 0 {
		kinds = []string{v.Kind}
	}
	var rules []any
	for i, r := range v.Rules {
		r = maps.Clone(r)
		resources := map[string]any{"kinds": kinds}
		if more, ok := r["match"].(map[string]any); ok {
			maps.Copy(resources, more)
		}
		r["name"] = "r" + string(rune('1'+i))
		r["match"] = map[string]any{"any": []any{map[string]any{"resources": resources}}}
		rules = append(rules, r)
	}
	spec := map[string]any{"rules": rules}
	if v.ApplyRules != "" {
		spec["applyRules"] = v.ApplyRules
	}
	f, ds := policy.Parse("p.yaml", []byte(mustJSON(t, map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": meta, "spec": spec,
	})))
	if len(f.Policies) != 1 {
		t.Fatal(ds)
	}
	for _, r := range f.Policies[0].Rules {
		r.Invalid = false // some are refused when they are read; here is what they would do
	}
	return f.Policies[0]
}
