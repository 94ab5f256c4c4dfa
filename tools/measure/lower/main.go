package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := run(out, os.Args[1:])
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lower:", err)
		os.Exit(1)
	}
}

// run compiles what it finds at paths: folders of policies, files, and packs of many policies.
func run(out io.Writer, paths []string) error {
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		return err
	}
	o := translate.Options{Release: cel.Default, Schemas: types.WithPublished(), Mutations: true}
	p := printer{out: out, options: compile.Options{Translate: o, Cache: compile.NewCache()}}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return p.read(name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A printer prints the expressions of policies.
type printer struct {
	out     io.Writer
	options compile.Options
}

// read compiles the policies of a file.
func (p printer) read(name string) error {
	switch {
	case strings.HasSuffix(name, ".jsonl.gz") && filepath.Base(name) == "policies.jsonl.gz":
		return p.readPack(name)
	case filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml":
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte("kyverno.io/")) {
		return err
	}
	return p.print(name, text)
}

// readPack compiles the policies of a pack: one in a line.
func (p printer) readPack(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for lines := json.NewDecoder(plain); ; {
		var line struct{ Dir, Policy string }
		if err := lines.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := p.print(line.Dir, []byte(line.Policy)); err != nil {
			return err
		}
	}
}

// print compiles a text, of which other documents than policies are left out.
func (p printer) print(name string, text []byte) error {
	parsed, _ := policy.Parse(name, text)
	if len(parsed.Policies) == 0 {
		return nil
	}
	result := compile.Policies(compile.Input{Policies: parsed.Policies, Exceptions: parsed.Exceptions}, p.options)
	for _, o := range result.Objects {
		for i, x := range validating(&o.Policy.Spec) {
			if _, err := fmt.Fprintf(p.out, "%s %s %d\t%q\n", name, o.Policy.Name, i, x); err != nil {
				return err
			}
		}
	}
	for _, o := range result.Mutating {
		for i, x := range mutating(&o.Policy.Spec) {
			if _, err := fmt.Fprintf(p.out, "%s %s %d\t%q\n", name, o.Policy.Name, i, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// validating are the expressions of a policy that validates, without those that are empty.
func validating(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) (out []string) {
	for _, c := range s.MatchConditions {
		out = append(out, c.Expression)
	}
	for _, v := range s.Variables {
		out = append(out, v.Expression)
	}
	for _, v := range s.Validations {
		out = append(out, v.Expression, v.MessageExpression)
	}
	return slices.DeleteFunc(out, isEmpty)
}

// mutating are those of one that mutates.
func mutating(s *admissionregistrationv1.MutatingAdmissionPolicySpec) (out []string) {
	for _, c := range s.MatchConditions {
		out = append(out, c.Expression)
	}
	for _, v := range s.Variables {
		out = append(out, v.Expression)
	}
	for _, m := range s.Mutations {
		if m.ApplyConfiguration != nil {
			out = append(out, m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			out = append(out, m.JSONPatch.Expression)
		}
	}
	return slices.DeleteFunc(out, isEmpty)
}

func isEmpty(text string) bool { return text == "" }
