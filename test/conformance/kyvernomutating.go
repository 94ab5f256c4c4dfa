package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// mutatingToKyverno tells whether MutatingPolicies make of the recorded requests what the rules
// make that they come from.
func mutatingToKyverno(w io.Writer, c config, compiler *compiler) (bool, error) {
	entries, err := readOthers(c.corpus)
	if err != nil {
		return false, err
	}
	natively, err := newMutations(c.release)
	if err != nil {
		return false, err
	}
	var all mutatedToKyverno
	for _, e := range entries {
		if e.Cases == 0 || !strings.HasPrefix(e.Dir, "mutate/") || !strings.Contains(e.Dir, c.only) {
			continue
		}
		one := mutatedToKyverno{max: c.max}
		if err := one.examine(c.corpus, e, compiler, natively); err != nil {
			return false, fmt.Errorf("%s: %w", e.Dir, err)
		}
		all.rules, all.said, all.cases, all.same, all.changed = all.rules+one.rules, all.said+one.said, all.cases+one.cases, all.same+one.same, all.changed+one.changed
		all.confused += one.confused
		for _, text := range one.wrong {
			if c.verbose {
				fmt.Fprintf(w, "%s: %s\n", e.Dir, text)
			}
		}
	}
	fmt.Fprintf(w, "kyverno: %d of %d mutate rules; cases %d, changed %d, the same object %d, with elements that are not told apart %d, different %d\n",
		all.said, all.rules, all.cases, all.changed, all.same-all.confused, all.confused, all.cases-all.same)
	return all.same == all.cases, nil
}

// mutatedToKyverno is what MutatingPolicies make of the cases of one folder.
type mutatedToKyverno struct {
	rules, said          int
	cases, changed, same int
	confused             int // of those that are the same, where natively too elements are not told apart
	wrong                []string
	max                  int // of wrong
}

func (out *mutatedToKyverno) examine(corpus string, e otherEntry, c *compiler, natively *mutations) error {
	dir := filepath.Join(corpus, filepath.FromSlash(e.Dir))
	var in compile.Input
	for _, file := range e.Files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		f, found := policy.Parse(file, text)
		if found.HasErrors() {
			return found.Err()
		}
		in.Policies, in.Exceptions = append(in.Policies, f.Policies...), append(in.Exceptions, f.Exceptions...)
	}
	objects, err := readObjects(filepath.Join(dir, "configmaps.json"))
	if err != nil {
		return err
	}
	native, err := natively.of(in.Policies, in.Exceptions, objects)
	if err != nil {
		return err
	}
	options := c.options
	options.Guard, options.Mutations = translate.GuardNever, true
	compiled := compile.Policies(in, compile.Options{Translate: options, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}}})
	converted := celpolicy.Convert(compiled, celpolicy.Options{Version: "v1"})
	whole := func(p *policy.Policy) bool {
		return !slices.ContainsFunc(compiled.Rules, func(r *compile.Rule) bool {
			_, left := converted.Left[r]
			return r.Policy == p && r.Mutates() && (left || r.Target != translate.Native)
		})
	}
	for _, r := range compiled.Rules {
		if _, left := converted.Left[r]; r.Mutates() {
			out.rules++
			if !left && r.Target == translate.Native {
				out.said++
			}
		}
	}
	var source []*policy.Policy
	for _, p := range in.Policies {
		if whole(p) {
			source = append(source, p)
		}
	}
	var made []any
	for _, one := range converted.Policies {
		for _, o := range one.Objects {
			if whole(one.Of) && strings.HasSuffix(o.Kind, "MutatingPolicy") {
				made = append(made, o)
			}
		}
	}
	text, err := vap.Marshal(made...)
	if err != nil {
		return err
	}
	again, found := policy.Parse("made.yaml", text)
	if found.HasErrors() {
		return errors.Join(found.Err(), errors.New(string(text)))
	}
	world := judge.World(objects, c.options.Schemas)
	before, after := interp.New(source, in.Exceptions, world, interp.Limits{}), interp.New(again.Policies, nil, world, interp.Limits{})
	return readLines(filepath.Join(dir, "cases.jsonl.gz"), func(line []byte) error {
		var mc mutateCase
		if err := kjson.Unmarshal(line, &mc); err != nil {
			return err
		}
		if operation := mc.Request["operation"]; len(made) == 0 || operation == "DELETE" || operation == "CONNECT" {
			return nil
		}
		want, got := before.Mutate(context.Background(), mc.request()), after.Mutate(context.Background(), mc.request())
		out.cases++
		if textdiff.Values(floats(want.Before), floats(want.After)) != "" {
			out.changed++
		}
		if d := textdiff.Values(floats(want.After), floats(got.After)); d == "" {
			out.same++
		} else if native.changer.By(before).Change(context.Background(), mc.request()).Confused {
			out.same, out.confused = out.same+1, out.confused+1
		} else if out.max == 0 || len(out.wrong) < out.max {
			for _, r := range slices.Concat(want.Rules, got.Rules) {
				if r.Status != interp.None && r.Status != interp.Pass {
					d += fmt.Sprintf("%s/%s: %s %s\n", r.Policy, r.Rule, r.Status, r.Message)
				}
			}
			out.wrong = append(out.wrong, "case "+mc.ID+" (-rules +made):\n"+d)
		}
		return nil
	})
}
