package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// goTypes finds the Go struct behind a definition, in the staging modules of
// one version.
type goTypes struct {
	version  string                          // of k8s.io/kubernetes
	packages map[string]map[string]*goStruct // by folder and type name
}

// A goStruct is what the JSON encoding of a struct follows from.
type goStruct struct {
	fields   map[string]goField // by JSON name
	embedded []string           // inlined structs of the same package
}

// A goField tells whether a field can be missing or null in JSON.
type goField struct {
	pointer   bool
	omitempty bool // or omitzero
	omitzero  bool
	typ       ast.Expr
}

// field is the field of a definition with a JSON name, or false where there is
// no source for it.
func (g *goTypes) field(definition, name string) (goField, bool, error) {
	folder, typ := splitDefinition(definition)
	structs, err := g.load(folder)
	if err != nil {
		return goField{}, false, err
	}
	f, ok := lookup(structs, typ, name)
	return f, ok, nil
}

func lookup(structs map[string]*goStruct, typ, name string) (goField, bool) {
	s := structs[typ]
	if s == nil {
		return goField{}, false
	}
	if f, ok := s.fields[name]; ok {
		return f, true
	}
	for _, e := range s.embedded {
		if f, ok := lookup(structs, e, name); ok {
			return f, true
		}
	}
	return goField{}, false
}

// splitDefinition is api/core/v1 and Pod for io.k8s.api.core.v1.Pod.
func splitDefinition(name string) (folder, typ string) {
	parts := strings.Split(strings.TrimPrefix(name, "io.k8s."), ".")
	last := len(parts) - 1
	return strings.Join(parts[:last], "/"), parts[last]
}

func (g *goTypes) load(folder string) (map[string]*goStruct, error) {
	if structs, ok := g.packages[folder]; ok {
		return structs, nil
	}
	module, sub, _ := strings.Cut(folder, "/")
	dir, err := moduleDir("k8s.io/"+module, stagingOf(module, g.version))
	if err != nil {
		return nil, err
	}
	structs, err := parseStructs(filepath.Join(dir, filepath.FromSlash(sub)))
	if err != nil {
		return nil, err
	}
	g.packages[folder] = structs
	return structs, nil
}

// parseStructs reads the structs of a package. A missing folder has none: some
// definitions have names that are no import paths.
func parseStructs(dir string) (map[string]*goStruct, error) {
	structs := map[string]*goStruct{}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return structs, nil
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the Go types: %w", err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, spec := range d.Specs {
					addStruct(structs, spec.(*ast.TypeSpec))
				}
			}
		}
	}
	return structs, err
}

func addStruct(structs map[string]*goStruct, spec *ast.TypeSpec) {
	typ, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	s := &goStruct{fields: map[string]goField{}}
	structs[spec.Name.Name] = s
	for _, f := range typ.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if id, ok := f.Type.(*ast.Ident); ok && name == "" && len(f.Names) == 0 {
			s.embedded = append(s.embedded, id.Name)
			continue
		}
		_, pointer := f.Type.(*ast.StarExpr)
		s.fields[name] = goField{pointer, strings.Contains(options, "omit"), strings.Contains(options, "omitzero"), f.Type}
	}
}

// options makes a definition of a struct of plain fields. It is for the options
// of CONNECT requests, such as PodExecOptions: the API server shows them to
// admission as objects, but the swagger has only their query parameters.
func (g *goTypes) options(folder, typ string) (*definition, error) {
	structs, err := g.load(folder)
	if err != nil {
		return nil, err
	}
	s := structs[typ]
	if s == nil {
		return nil, fmt.Errorf("%s has no type %s", folder, typ)
	}
	d := &definition{Type: "object", Properties: map[string]*definition{
		"apiVersion": {Type: "string"},
		"kind":       {Type: "string"},
	}}
	for name, f := range s.fields {
		if name != "" {
			if d.Properties[name] = plain(f.typ); d.Properties[name] == nil {
				return nil, fmt.Errorf("%s.%s: its Go type is not plain", typ, name)
			}
		}
	}
	return d, nil
}

func plain(typ ast.Expr) *definition {
	switch t := typ.(type) {
	case *ast.ArrayType:
		return &definition{Type: "array", Items: plain(t.Elt)}
	case *ast.Ident:
		switch t.Name {
		case "string":
			return &definition{Type: "string"}
		case "bool":
			return &definition{Type: "boolean"}
		case "int32", "int64":
			return &definition{Type: "integer", Format: t.Name}
		}
	}
	return nil
}
