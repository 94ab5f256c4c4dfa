package schema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
)

func withBackup(t testing.TB) *schema.Set {
	t.Helper()
	text, err := os.ReadFile("testdata/backup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, ds := builtin(t, "1.36").WithCRDFile("backup.yaml", text)
	want := diag.List{{
		Code: diag.OtherKind, Severity: diag.Note,
		Pos:     diag.Pos{File: "backup.yaml", Line: 82, Col: 1},
		Message: "v1 ConfigMap is no apiextensions.k8s.io/v1 CustomResourceDefinition; it is passed over",
	}}
	if d := textdiff.Values(want, ds); d != "" {
		t.Errorf("diagnostics (-want +got):\n%s", d)
	}
	return s
}

func TestCRDTypes(t *testing.T) {
	s := withBackup(t)
	backup := gvk("shop.example.com/v1 Backup")
	for _, c := range []struct {
		kind schema.GVK
		path string
		want string
	}{
		{backup, "apiVersion", "string!"},
		{backup, "metadata", "object!"},
		{backup, "metadata.labels[]", "string"},
		{backup, "spec", "object!"},
		{backup, "spec.schedule", "string!"},
		{backup, "spec.enabled", "bool"},
		{backup, "spec.copies", "int"},
		{backup, "spec.ratio", "number"},
		{backup, "spec.note", "string nullable"},
		{backup, "spec.after", "string/date-time"},
		{backup, "spec.keep", "string/duration"},
		{backup, "spec.blob", "string/byte"},
		{backup, "spec.port", "int-or-string"},
		{backup, "spec.labels[]", "string"},
		{backup, "spec.anything[]", "any"},
		{backup, "spec.closed", "object"},
		{backup, "spec.closed.a", "string"},
		{backup, "spec.values", "object open"},
		{backup, "spec.raw", "any"},
		{backup, "spec.pod", "object open"},
		{backup, "spec.pod.metadata.name", "string"},
		{backup, "spec.pod.kind", "string!"},
		{backup, "spec.targets", "list!"},
		{backup, "spec.targets[].name", "string!"},
		{backup, "spec.targets[].true", "string"},
		{backup, "status", "object"},
		{backup, "status.copies", "int"},
		{gvk("shop.example.com/v1alpha1 Backup"), "metadata.name", "string"},
		{gvk("shop.example.com/v1 Realm"), "spec.owner", "string"},
		{pod, "spec.containers", "list!"},
	} {
		if got := describe(s.Type(c.kind), c.path); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.path, c.kind, got, c.want)
		}
	}
	if !s.Type(gvk("shop.example.com/v1alpha1 Backup")).Open {
		t.Error("v1alpha1 Backup is not open")
	}
	if s.Type(gvk("shop.example.com/v0 Backup")) != nil {
		t.Error("a version that is not served has a type")
	}
	if builtin(t, "1.36").Type(backup) != nil {
		t.Error("the built-in set has changed")
	}
}

func TestCRDResources(t *testing.T) {
	s := withBackup(t)
	want := []string{
		"shop.example.com/v1 Backup backups namespaced",
		"shop.example.com/v1 Realm realms cluster",
		"shop.example.com/v1alpha1 Backup backups namespaced",
	}
	if d := textdiff.Values(want, summaries(s.Resources("shop.example.com", "*", "*"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r, ok := s.ByResource("shop.example.com", "v1", "backups/scale")
	if !ok {
		t.Fatal("there is no backups")
	}
	subs := []schema.Subresource{{Name: "scale", GVK: gvk("autoscaling/v1 Scale")}, {Name: "status", GVK: r.GVK}}
	if d := textdiff.Values(subs, r.Subresources); d != "" {
		t.Errorf("subresources (-want +got):\n%s", d)
	}
}

// TestCRDForms: JSON, a list, and several documents give the same set as YAML.
func TestCRDForms(t *testing.T) {
	text, err := os.ReadFile("testdata/backup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	var doc any
	if err := yaml.Unmarshal([]byte(first), &doc); err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.MarshalIndent(doc, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	list, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{doc}})
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string][]byte{"yaml": []byte(first), "json": inJSON, "list": list} {
		s, ds := builtin(t, "1.36").WithCRDs(form)
		if len(ds) != 0 {
			t.Errorf("%s: %v", name, ds)
		}
		if got := describe(s.Type(gvk("shop.example.com/v1 Backup")), "spec.targets[].name"); got != "string!" {
			t.Errorf("%s: a target's name is %s", name, got)
		}
	}
}

func TestCRDErrors(t *testing.T) {
	const head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"no YAML", "a: [", "KV102 error"},
		{"a text", "hello", "KV107 error"},
		{"a list", "- a", "KV107 error"},
		{"old version", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition", "KV111 note"},
		{"no spec", head, "KV109 error spec.group, KV109 error spec.names.kind, KV109 error spec.names.plural, KV109 error spec.scope, KV109 error spec.versions"},
		{"wrong shape", head + "spec: {group: []}", "KV107 error"},
		{"bad scope", head + "spec: {group: g, names: {kind: K, plural: ks}, scope: namespaced, versions: [{name: v1, served: true}]}", "KV108 error spec.scope"},
		{"no schema", head + "spec: {group: g.io, names: {kind: K, plural: ks}, scope: Cluster, versions: [{name: v1, served: true}]}", ""},
		{"built in", head + "spec: {group: apps, names: {kind: Deployment, plural: deployments}, scope: Namespaced, versions: [{name: v1, served: true}]}", "KV110 warning"},
		{"in a list", "kind: List\nitems:\n- " + strings.ReplaceAll(head, "\n", "\n  "), "KV109 error items[0].spec.group"},
	} {
		s, ds := builtin(t, "1.36").WithCRDs([]byte(c.text))
		var got []string
		for _, d := range ds {
			text := fmt.Sprintf("%s %s", d.Code, d.Severity)
			if d.Path != "" {
				text += " " + d.Path
			}
			got = append(got, text)
		}
		if all := strings.Join(got, ", "); !strings.HasPrefix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("%s: %s, want %s", c.name, all, c.want)
		}
		if s.Type(pod) == nil {
			t.Errorf("%s: the built-in kinds are gone", c.name)
		}
	}
}

func FuzzCRD(f *testing.F) {
	text, err := os.ReadFile("testdata/backup.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"kind":"List","items":[null,{}]}`))
	base := builtin(f, "1.36")
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _ := base.WithCRDs(text)
		for _, r := range s.Resources("*", "*", "*") {
			if s.Type(r.GVK) == nil {
				t.Errorf("%s has no type", r.GVK)
			}
		}
	})
}
