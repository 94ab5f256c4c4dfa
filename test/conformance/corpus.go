package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
)

// An index is the corpus's list of its policies.
type index struct{ Policies []corpusEntry }

// A corpusEntry is one policy with what the corpus says of its rules.
type corpusEntry struct {
	Dir   string
	Rules []struct{ Rule, Class string }
}

// A recordedCase is one request with the recorded statuses by rule.
type recordedCase struct {
	ID              string
	Request         *admissionv1.AdmissionRequest
	NamespaceLabels map[string]string
	Roles           []string
	ClusterRoles    []string
	Verdicts        map[string]string // for the policy as published
	EnforceVerdicts map[string]string // for the policy when it enforces; nil where it is the same
}

// enforced are the statuses for the policy when it enforces.
func (c recordedCase) enforced() map[string]string {
	if c.EnforceVerdicts != nil {
		return c.EnforceVerdicts
	}
	return c.Verdicts
}

// A recordedPolicy is a policy with its recorded cases.
type recordedPolicy interface {
	// name is the folder, or the number of a generated rule.
	name() string
	// load reads what is to be judged.
	load() (material, error)
}

// material is a policy, unparsed, with what it is to be judged by.
type material struct {
	file    string
	source  []byte
	objects []map[string]any  // that rules look up
	classes map[string]string // of rules, as Kyverno reports them; nil where there are none
	cases   []recordedCase
	whole   bool // the recorded status is that of the policy, not of a rule
}

type recorded struct {
	corpus string
	entry  corpusEntry
}

func (r recorded) name() string { return r.entry.Dir }

func (r recorded) load() (m material, err error) {
	dir := filepath.Join(r.corpus, "policies", filepath.FromSlash(r.entry.Dir))
	m.file = r.entry.Dir + "/policy.yaml"
	if m.source, err = os.ReadFile(filepath.Join(dir, "policy.yaml")); err != nil {
		return m, err
	}
	if m.objects, err = readObjects(filepath.Join(dir, "configmaps.json")); err != nil {
		return m, err
	}
	m.classes = map[string]string{}
	for _, rule := range r.entry.Rules {
		m.classes[rule.Rule] = rule.Class
	}
	err = readLines(filepath.Join(dir, "cases.jsonl.gz"), func(line []byte) error {
		var c recordedCase
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		m.cases = append(m.cases, c)
		return nil
	})
	return m, err
}

func readIndex(corpus string) (index, error) {
	var i index
	text, err := os.ReadFile(filepath.Join(corpus, "index.json"))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(text, &i)
}

func readObjects(file string) (objects []map[string]any, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &objects); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return objects, nil
}

// readLines calls do for each line of a gzipped file. Cases are long: an object
// may have hundreds of kilobytes.
func readLines(file string, do func(line []byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	lines := bufio.NewReaderSize(unzipped, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := do(line); err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}

// A generated is one random rule, already read: they are small.
type generated struct {
	id string
	m  material
}

func (g generated) name() string            { return "generated/" + g.id }
func (g generated) load() (material, error) { return g.m, nil }

// generatedRule is the one rule of each generated policy.
const generatedRule = "r"

func readGenerated(corpus string) ([]recordedPolicy, error) {
	var out []recordedPolicy
	err := readLines(filepath.Join(corpus, "generated", "rules.jsonl.gz"), func(line []byte) error {
		var r struct {
			ID     string
			Policy json.RawMessage
			Cases  []struct {
				ID      string
				Request *admissionv1.AdmissionRequest
				Verdict string
			}
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		g := generated{id: r.ID, m: material{file: "generated/" + r.ID, source: r.Policy}}
		for _, c := range r.Cases {
			g.m.cases = append(g.m.cases, recordedCase{
				ID: g.id + "/" + c.ID, Request: c.Request, Verdicts: map[string]string{generatedRule: c.Verdict},
			})
		}
		out = append(out, g)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}
