package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/schema"
)

// gadgets is what a cluster says of a kind with its own types and those of others.
const gadgets = `{"openapi": "3.0.0", "components": {"schemas": {
"io.acme.v1.Gadget": {
  "type": "object",
  "x-kubernetes-group-version-kind": [{"group": "acme.io", "version": "v1", "kind": "Gadget"}],
  "properties": {
    "metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
    "spec": {"description": "d", "allOf": [{"$ref": "#/components/schemas/io.acme.v1.Spec"}]}}},
"io.acme.v1.Spec": {"type": "object", "required": ["name"], "properties": {
  "name": {"type": "string"},
  "size": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
  "port": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "maybe": {"type": "string", "nullable": true},
  "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
  "strange": null,
  "lost": {"$ref": "#/components/schemas/nowhere"},
  "inner": {"$ref": "#/components/schemas/io.acme.v1.Spec"}}},
"io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"oneOf": [{"type": "string"}, {"type": "integer"}], "format": "int-or-string"},
"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions": {
  "type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "DeleteOptions"}, {"group": "acme.io", "version": "v1", "kind": "DeleteOptions"}]},
"nothing": null
}}}`

func gadget() schema.Resource {
	return schema.Resource{GVK: schema.GVK{Group: "acme.io", Version: "v1", Kind: "Gadget"}, Plural: "gadgets", Namespaced: true}
}

func served(t *testing.T, document string, resources ...schema.Resource) *schema.Set {
	t.Helper()
	set, err := builtin(t, "1.36").WithServed(resources, []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestWithServed(t *testing.T) {
	set := served(t, gadgets, gadget())
	typ := set.Type(gadget().GVK)
	if typ == nil || typ.Open {
		t.Fatalf("the kind has the type %+v", typ)
	}
	if f := typ.Fields["metadata"]; f == nil || f.Type.Fields["labels"] == nil || !f.Required {
		t.Errorf("metadata is %+v", f)
	}
	spec := typ.Fields["spec"].Type
	for name, want := range map[string]schema.Kind{
		"name": schema.String, "size": schema.Any, "port": schema.IntOrString, "labels": schema.Map, "maybe": schema.String, "free": schema.Object,
		"strange": schema.Any, "lost": schema.Any, "inner": schema.Any,
	} {
		if f := spec.Fields[name]; f == nil || f.Type.Kind != want {
			t.Errorf("spec.%s is %+v, want kind %d", name, f, want)
		}
	}
	if !spec.Fields["name"].Required || !spec.Fields["maybe"].Type.Nullable || !spec.Fields["free"].Type.Open {
		t.Error("what is required, null or open is lost")
	}
	if r, ok := set.ByResource("acme.io", "v1", "gadgets"); !ok || !r.Namespaced {
		t.Errorf("the resource is %+v", r)
	}
}

// What is known better stays, and what nobody describes may have any fields.
func TestWithServedKnownAndUnknown(t *testing.T) {
	pod := schema.Resource{GVK: schema.GVK{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true}
	set := served(t, gadgets, pod, schema.Resource{GVK: schema.GVK{Group: "acme.io", Version: "v1", Kind: "Riddle"}, Plural: "riddles"})
	if typ := set.Type(pod.GVK); typ.Fields["spec"] == nil {
		t.Error("a Pod is no longer one")
	}
	if typ := set.Type(schema.GVK{Group: "acme.io", Version: "v1", Kind: "Riddle"}); typ == nil || !typ.Open {
		t.Errorf("an undescribed kind has the type %+v", typ)
	}
	if _, err := set.WithServed(nil, []byte("<html>")); err == nil {
		t.Error("a page is taken for an OpenAPI document")
	}
}

// A document whose references double at each step fills no memory.
func TestWithServedIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"components": {"schemas": {"g": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "acme.io", "version": "v1", "kind": "Gadget"}], "properties": {"a": {"$ref": "#/components/schemas/s0"}}}`)
	for i := range 64 {
		fmt.Fprintf(&b, `, "s%d": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/s%d"}, "b": {"$ref": "#/components/schemas/s%d"}}}`, i, i+1, i+1)
	}
	b.WriteString("}}}")
	if typ := served(t, b.String(), gadget()).Type(gadget().GVK); typ == nil || !typ.Open {
		t.Errorf("a kind without end has the type %+v", typ)
	}
}
