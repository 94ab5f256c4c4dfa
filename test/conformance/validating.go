package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
)

// A validatingRecord is a ValidatingPolicy. Its cases have one status, the gravest
// of all its forms.
type validatingRecord struct{ corpus, dir string }

func (v validatingRecord) name() string { return "validatingpolicy/" + v.dir }

func (v validatingRecord) load() (m material, err error) {
	dir := filepath.Join(v.corpus, "validatingpolicy", filepath.FromSlash(v.dir))
	m.file, m.whole, m.classes = v.name()+"/policy.yaml", true, map[string]string{}
	if m.source, err = os.ReadFile(filepath.Join(dir, "policy.yaml")); err != nil {
		return m, err
	}
	err = readLines(filepath.Join(dir, "cases.jsonl.gz"), func(line []byte) error {
		var c struct {
			recordedCase
			Status map[string]string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		c.Verdicts = c.Status
		m.cases = append(m.cases, c.recordedCase)
		return nil
	})
	return m, err
}

// readValidating finds the ValidatingPolicies of a corpus, in the order of their
// folders.
func readValidating(corpus, only string) (out []recordedPolicy, err error) {
	root := filepath.Join(corpus, "validatingpolicy")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cases.jsonl.gz" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if v := (validatingRecord{corpus, filepath.ToSlash(dir)}); strings.Contains(v.name(), only) {
			out = append(out, v)
		}
		return err
	})
	if os.IsNotExist(err) {
		return nil, nil
	}
	return out, err
}

// gravest is one opinion for all forms of a policy: what each judge says of the
// form that it finds the worst.
func gravest(opinions []judge.Opinion) []judge.Opinion {
	if len(opinions) == 0 {
		return nil
	}
	order := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Unknown, interp.Error, interp.Fail}
	out := opinions[0]
	for _, o := range opinions[1:] {
		if o.Native.Graver(out.Native) {
			out.Native, out.NativeMessage = o.Native, o.NativeMessage
		}
		if slices.Index(order, o.Kyverno) > slices.Index(order, out.Kyverno) {
			out.Status, out.Kyverno, out.Message = o.Status, o.Kyverno, o.Message
		}
	}
	return []judge.Opinion{out}
}
