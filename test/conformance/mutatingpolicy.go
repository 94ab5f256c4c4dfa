package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// mutatingPolicies judges the MutatingPolicies of a corpus.
func mutatingPolicies(w io.Writer, c config, natively *mutations) (t caseCount, err error) {
	root := filepath.Join(c.corpus, "mutatingpolicy")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cases.jsonl.gz" {
			return err
		}
		dir, err := filepath.Rel(c.corpus, filepath.Dir(path))
		if name := filepath.ToSlash(dir); strings.Contains(name, c.only) {
			t.add(w, c, examinePolicies(name, filepath.Dir(path), natively))
		}
		return err
	})
	if os.IsNotExist(err) {
		return caseCount{}, nil
	}
	t.writeNative(w, "mutatingpolicy")
	return t, err
}

// examinePolicies judges every case of a folder.
func examinePolicies(name, dir string, natively *mutations) (out mutateResult) {
	out.name = name
	text, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		out.unjudged = err
		return out
	}
	f, found := policy.Parse("policy.yaml", text)
	if found.HasErrors() {
		out.unjudged = fmt.Errorf("%s: %v", name, found)
		return out
	}
	if out.native, err = natively.of(f.Policies, f.Exceptions, nil); err != nil {
		out.unjudged = err
		return out
	}
	engines, natives := map[string]*interp.Interpreter{}, map[string]*interp.Interpreter{}
	out.unjudged = readLines(filepath.Join(dir, "cases.jsonl.gz"), func(line []byte) error {
		var mc mutateCase
		if err := kjson.Unmarshal(line, &mc); err != nil {
			return err
		}
		namespace, _ := mc.Request["namespace"].(string)
		key := fmt.Sprint(namespace, mc.NamespaceLabels)
		if engines[key] == nil {
			engines[key] = interp.New(f.Policies, f.Exceptions, withNamespace(namespace, mc.NamespaceLabels), interp.Limits{})
			natives[key] = interp.New(out.native.policies, f.Exceptions, withNamespace(namespace, mc.NamespaceLabels), interp.Limits{})
		}
		out.judge(engines[key], nil, mc, byPolicy)
		out.native.judge(natives[key], mc)
		return nil
	})
	return out
}

// withNamespace is a cluster that has a namespace and nothing else.
func withNamespace(name string, labels map[string]string) *interp.Offline {
	out := &interp.Offline{Complete: true, Plural: func(_, kind string) string {
		if kind == "Namespace" {
			return "namespaces"
		}
		return ""
	}}
	if name != "" {
		all := map[string]any{"kubernetes.io/metadata.name": name}
		for key, value := range labels {
			all[key] = value
		}
		out.Objects = []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": all}}}
	}
	return out
}

// byPolicy is what the status of a form of a MutatingPolicy counts for: the form that
// matches is the only one.
func byPolicy(r interp.RuleMutation) string {
	if r.Namespace != "" {
		return r.Namespace + "/" + r.Policy
	}
	return r.Policy
}

func byRule(r interp.RuleMutation) string { return r.Rule }
