package celpolicy_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
)

// The generate rules of public policies make the same objects in both forms, for the objects of
// their tests: created, updated and deleted.
func TestGenerationsOfCorpus(t *testing.T) {
	const corpus = "../../shared/corpus"
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the corpus is not beside the repository")
	}
	schemas := generatingSchemas(t)
	rules, converted, policies, requests, made, deleted, more := 0, 0, 0, 0, 0, 0, 0
	for _, part := range []string{"generate", "cli", "conformance"} {
		for dir, files := range foldersOf(t, filepath.Join(corpus, part)) {
			objects := objectsIn(files)
			for name, text := range files {
				if file, _ := policy.Parse(name, text); !slices.ContainsFunc(file.Policies, generates) {
					continue
				}
				c := regenerated(t, text, schemas)
				policies++
				for _, r := range c.compiled.Rules {
					if r.Type() != "generate" || r.Source == nil {
						continue
					}
					rules++
					if why, left := c.Left[r]; left || len(r.Generating) == 0 {
						t.Logf("left: %s %s: %v %s%s", strings.TrimPrefix(filepath.Join(dir, name), corpus), r.Name(), r.Codes, r.Reason, why.Message)
						continue
					}
					converted++
				}
				all := triggeringRequests(schemas, objects)
				requests += len(all)
				x, y, z := c.compare(t, judge.World(objects, schemas), all)
				made, deleted, more = made+x, deleted+y, more+z
			}
		}
	}
	t.Logf("%d of %d generate rules in %d files are converted; %d requests make %d objects and %d times delete them, and %d times the policies alone do",
		converted, rules, policies, requests, made, deleted, more)
	if converted < 100 || made < 100 {
		t.Errorf("%d rules are converted, which make %d objects", converted, made)
	}
}

func generates(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool { return r.Generate != nil })
}

// foldersOf are the files of each test below a folder, which are those of a folder and its own.
func foldersOf(t *testing.T, root string) map[string]map[string][]byte {
	t.Helper()
	out := map[string]map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		dir, name := filepath.Split(path)
		if base := filepath.Base(dir); base == "chainsaw-test" || base == "kyverno-test" {
			dir, name = filepath.Dir(filepath.Clean(dir)), base+"/"+name
		}
		dir = filepath.Clean(dir)
		if out[dir] == nil {
			out[dir] = map[string][]byte{}
		}
		out[dir][name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objectsIn are the objects of files that a cluster may have, of any kind but those of tests and policies.
func objectsIn(files map[string][]byte) (out []map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range bytes.Split(files[name], []byte("\n---")) {
			var o map[string]any
			if yaml.Unmarshal(document, &o) != nil {
				continue
			}
			meta, _ := o["metadata"].(map[string]any)
			kind, _ := o["kind"].(string)
			apiVersion, _ := o["apiVersion"].(string)
			if name, _ := meta["name"].(string); name == "" || kind == "" || apiVersion == "" || strings.Contains(apiVersion, "kyverno.io") {
				continue
			}
			meta["uid"], meta["resourceVersion"] = "u-"+kind, "1"
			out = append(out, o)
		}
	}
	return out
}
