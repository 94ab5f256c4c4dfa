package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		path string
		want place
		ok   bool
	}{
		{"/api/v1/pods", place{version: "v1", plural: "pods"}, true},
		{"/api/v1/namespaces/{namespace}/pods/{name}", place{version: "v1", plural: "pods", namespaced: true}, true},
		{"/api/v1/namespaces/{namespace}/pods/{name}/exec", place{version: "v1", plural: "pods", sub: "exec", namespaced: true}, true},
		{"/api/v1/namespaces/{name}/finalize", place{version: "v1", plural: "namespaces", sub: "finalize"}, true},
		{"/api/v1/namespaces/{namespace}/bindings", place{version: "v1", plural: "bindings", namespaced: true}, true},
		{"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
			place{group: "apps", version: "v1", plural: "deployments", sub: "scale", namespaced: true}, true},
		{"/api/v1/nodes/{name}/proxy/{path}", place{}, false},
		{"/api/v1/watch/pods", place{}, false},
		{"/api/v1/watch/namespaces/{namespace}/pods/{name}", place{}, false},
		{"/api/v1/", place{}, false},
		{"/apis/apps/", place{}, false},
		{"/version/", place{}, false},
		{"/.well-known/openid-configuration/", place{}, false},
	} {
		got, ok := parsePath(c.path)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v %t, want %+v %t", c.path, got, ok, c.want, c.ok)
		}
	}
}

const goSource = `package v1

type TypeMeta struct{}

type Thing struct {
	TypeMeta ` + "`json:\",inline\"`" + `
	Spec   ThingSpec   ` + "`json:\"spec,omitempty\"`" + `
	Status ThingStatus ` + "`json:\"status,omitempty\"`" + `
}

type ThingSpec struct {
	Common   ` + "`json:\",inline\"`" + `
	Template *Template ` + "`json:\"template\"`" + `
	Selector Template  ` + "`json:\"selector,omitzero\"`" + `
	Kind     string    ` + "`json:\"kind,omitempty\"`" + `
	Path     string    ` + "`json:\"path\"`" + `
}

type Common struct {
	Name string ` + "`json:\"name\"`" + `
}

type Template struct {
	Name string ` + "`json:\"name\"`" + `
}

type ThingStatus struct {
	Name string ` + "`json:\"name\"`" + `
}

type PlainOptions struct {
	TypeMeta ` + "`json:\",inline\"`" + `
	Command []string ` + "`json:\"command\"`" + `
	Ports   []int32  ` + "`json:\"ports,omitempty\"`" + `
	TTY     bool     ` + "`json:\"tty,omitempty\"`" + `
}
`

// source is a package of Go types, as if read of a staging module.
func source(t *testing.T) *goTypes {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(goSource), 0o644); err != nil {
		t.Fatal(err)
	}
	structs, err := parseStructs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &goTypes{packages: map[string]map[string]*goStruct{"api/thing/v1": structs}}
}

func TestAlways(t *testing.T) {
	const in = "io.k8s.api.thing.v1."
	str := &definition{Type: "string"}
	ref := func(name string) *definition { return &definition{Ref: in + name} }
	b := &builder{src: source(t), doc: &document{Definitions: map[string]*definition{
		in + "Thing":       {Properties: map[string]*definition{"spec": ref("ThingSpec"), "status": ref("ThingStatus")}},
		in + "ThingStatus": {Properties: map[string]*definition{"name": str}, Required: []string{"name"}},
		in + "Template":    {Properties: map[string]*definition{"name": str}, Required: []string{"name"}},
		in + "ThingSpec": {
			Properties: map[string]*definition{
				"name": str, "kind": str, "path": str, "template": ref("Template"), "selector": ref("Template"),
			},
			Required: []string{"name", "kind", "path", "template", "selector"},
		},
	}}}
	for name, want := range map[string]string{
		"Thing":     "[spec]",      // manifests lack a status
		"ThingSpec": "[name path]", // kind may be left out, template may be null, selector may be left out
		"Template":  "[name]",
	} {
		got, err := b.always(in + name)
		if err != nil {
			t.Fatal(err)
		}
		if text := "[" + strings.Join(got, " ") + "]"; text != want {
			t.Errorf("%s always has %s, want %s", name, text, want)
		}
	}
}

func TestOptions(t *testing.T) {
	d, err := source(t).options("api/thing/v1", "PlainOptions")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"command": "array", "ports": "array", "tty": "boolean", "kind": "string", "apiVersion": "string"} {
		if p := d.Properties[name]; p == nil || p.Type != want {
			t.Errorf("%s is %+v, want %s", name, p, want)
		}
	}
	if _, err := source(t).options("api/thing/v1", "ThingSpec"); err == nil {
		t.Error("a struct with structs is taken for plain")
	}
}

func TestEncodeIsDeterministic(t *testing.T) {
	s := &set{Version: "v1.0.0", definitions: map[string]*definition{}}
	for _, name := range []string{"c", "a", "b"} {
		s.definitions[name] = &definition{Type: "object", Properties: map[string]*definition{"y": {}, "x": {}}}
	}
	first, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := s.encode()
		if err != nil || !bytes.Equal(compress(first), compress(again)) {
			t.Fatalf("another run differs: %v\n%s\n%s", err, first, again)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range releases() {
		if len(minorOf(v)) != len("1.30") || stagingOf("api", v)[:3] != "v0." {
			t.Errorf("%s: minor %s, staging %s", v, minorOf(v), stagingOf("api", v))
		}
	}
}
