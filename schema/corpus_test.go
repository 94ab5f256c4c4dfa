package schema_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kvap/kvap/schema"
)

// TestCorpus holds the types against recorded requests: every value has the JSON type that
// its Type says. It needs the public corpus beside the repository.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../shared/corpus/policies/*/*/cases.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Skip("no corpus")
	}
	set := builtin(t, "1.36")
	found := map[string]string{} // complaint: first place
	objects := 0
	for _, file := range files {
		for object := range corpusObjects(t, file) {
			group, version := splitAPIVersion(object)
			kind, _ := object["kind"].(string)
			typ := set.Type(schema.GVK{Group: group, Version: version, Kind: kind})
			if typ == nil {
				continue
			}
			objects++
			for _, complaint := range fits(object, typ, kind) {
				if found[complaint] == "" {
					found[complaint] = file
				}
			}
		}
	}
	for _, complaint := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s (%s)", complaint, found[complaint])
	}
	if objects < 1000 {
		t.Errorf("only %d objects of built-in kinds were seen", objects)
	}
}

// corpusObjects yields object and oldObject of each request.
func corpusObjects(t *testing.T, file string) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(unzipped)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var c struct {
				Request struct{ Object, OldObject map[string]any }
			}
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, o := range []map[string]any{c.Request.Object, c.Request.OldObject} {
				if o != nil && !yield(o) {
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func splitAPIVersion(object map[string]any) (group, version string) {
	text, _ := object["apiVersion"].(string)
	if dir, base := filepath.Split(text); dir != "" {
		return dir[:len(dir)-1], base
	}
	return "", text
}

// fits says where a value is not what its type promises.
func fits(v any, t *schema.Type, path string) (complaints []string) {
	if t.Kind == schema.Any || v == nil && t.Nullable {
		return nil
	}
	ok := true
	switch x := v.(type) {
	case bool:
		ok = t.Kind == schema.Bool
	case float64:
		ok = t.Kind == schema.Number || x == math.Trunc(x) && (t.Kind == schema.Int || t.Kind == schema.IntOrString)
	case string:
		ok = t.Kind == schema.String || t.Kind == schema.IntOrString
	case []any:
		if ok = t.Kind == schema.List; ok {
			for _, e := range x {
				complaints = append(complaints, fits(e, t.Elem, path+"[]")...)
			}
		}
	case map[string]any:
		switch t.Kind {
		case schema.Map:
			for _, e := range x {
				complaints = append(complaints, fits(e, t.Elem, path+".*")...)
			}
		case schema.Object:
			return fieldsFit(x, t, path)
		default:
			ok = false
		}
	case nil:
		ok = false
	}
	if !ok {
		complaints = append(complaints, fmt.Sprintf("%s is a %T, which does not fit kind %d", path, v, t.Kind))
	}
	return complaints
}

func fieldsFit(x map[string]any, t *schema.Type, path string) (complaints []string) {
	for name, f := range t.Fields {
		v, ok := x[name]
		if ok {
			complaints = append(complaints, fits(v, f.Type, path+"."+name)...)
		}
	}
	for name := range x {
		if t.Fields[name] == nil && !t.Open {
			complaints = append(complaints, fmt.Sprintf("%s.%s is not known", path, name))
		}
	}
	return complaints
}

func builtin(t testing.TB, release string) *schema.Set {
	t.Helper()
	s, err := schema.Builtin(release)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
