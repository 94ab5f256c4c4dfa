package read_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Who changes what an expression means where the walk is, its Environment, changes a copy of the
// walk: a function that was handed one leaves it as it is.
func TestEnvironmentsAreNotChanged(t *testing.T) {
	files := sources(t, "..")
	fields := fieldsOf(files, "Environment")
	if !slices.Contains(fields, "Facts") {
		t.Fatalf("an Environment has %v", fields)
	}
	seen := 0
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			given := walksGiven(f)
			ast.Inspect(f.Body, func(n ast.Node) bool {
				set, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, to := range set.Lhs {
					if index, ok := to.(*ast.IndexExpr); ok {
						to = index.X
					}
					selector, ok := to.(*ast.SelectorExpr)
					if !ok || !slices.Contains(fields, selector.Sel.Name) {
						continue
					}
					if of, ok := selector.X.(*ast.Ident); ok && given[of.Name] {
						t.Errorf("%s changes %s.%s, of a walk that it was handed", f.Name, of.Name, selector.Sel.Name)
					}
					seen++
				}
				return true
			})
		}
	}
	if seen < 5 {
		t.Errorf("only %d assignments were found", seen)
	}
}

func sources(t *testing.T, root string) (files []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// fieldsOf are the fields of a struct, and its own name, as which it is embedded.
func fieldsOf(files []*ast.File, name string) []string {
	fields := []string{name}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, id := range field.Names {
						fields = append(fields, id.Name)
					}
				}
			}
			return false
		})
	}
	return fields
}

// walksGiven are the walks that a function is handed, but for those in whose place it puts a copy.
func walksGiven(f *ast.FuncDecl) map[string]bool {
	given := map[string]bool{}
	params := slices.Clone(f.Type.Params.List)
	if f.Recv != nil {
		params = append(params, f.Recv.List...)
	}
	for _, p := range params {
		if pointer, ok := p.Type.(*ast.StarExpr); ok && strings.HasSuffix(typeName(pointer.X), "Lowering") {
			for _, id := range p.Names {
				given[id.Name] = true
			}
		}
	}
	for _, statement := range f.Body.List { // l = l.Inside()
		set, ok := statement.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != 1 {
			continue
		}
		call, isCall := set.Rhs[0].(*ast.CallExpr)
		if to, ok := set.Lhs[0].(*ast.Ident); ok && isCall {
			if of, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Inside", "AtTop", "Quietly"}, of.Sel.Name) {
				delete(given, to.Name)
			}
		}
	}
	return given
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
