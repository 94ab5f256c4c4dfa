package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A kyvernoResult is what policies of Kyverno's kinds in CEL, made of one policy, say of its
// recorded cases.
type kyvernoResult struct {
	name               string
	rules, said        int // of the policy, and those that the new policies have
	left               []string
	cases, same, exact int // of the same effect, and of the same status
	deviant, tooLarge  int // as the table of deviations says; not judged
	wrong              []string
	unjudged           error
}

// runKyverno tells whether all that comes out says what is recorded.
func runKyverno(w io.Writer, c config, compiler *compiler, subjects []recordedPolicy) (bool, error) {
	subjects = slices.DeleteFunc(subjects, func(s recordedPolicy) bool { _, inCEL := s.(validatingRecord); return inCEL })
	found, err := readFound(c)
	if err != nil {
		return false, err
	}
	subjects = append(subjects, found...)
	results := make([]kyvernoResult, len(subjects))
	cores.Each(len(subjects), func(i int) { results[i] = examineKyverno(subjects[i], compiler) })
	var all kyvernoResult
	ok := true
	for _, r := range results {
		all.rules, all.said, all.cases, all.same = all.rules+r.rules, all.said+r.said, all.cases+r.cases, all.same+r.same
		all.exact, all.deviant, all.tooLarge = all.exact+r.exact, all.deviant+r.deviant, all.tooLarge+r.tooLarge
		if r.unjudged != nil {
			ok = false
			fmt.Fprintf(w, "%s: not judged: %v\n", r.name, r.unjudged)
		}
		for _, why := range r.left {
			fmt.Fprintf(w, "%s: left: %s\n", r.name, why)
		}
		for i, text := range r.wrong {
			if c.verbose && (c.max == 0 || i < c.max) {
				fmt.Fprintf(w, "%s: %s\n", r.name, text)
			}
		}
	}
	fmt.Fprintf(w, "kyverno: %d of %d rules; cases %d, same effect %d, of these the same status %d, deviations %d, different %d; too large for the interpreter %d\n",
		all.said, all.rules, all.cases, all.same, all.exact, all.deviant, all.cases-all.same, all.tooLarge)
	changed, err := mutatingToKyverno(w, c, compiler)
	return ok && all.same == all.cases && changed, err
}

// readFound reads the policies of the corpus that people have in their own repositories. Their
// verdicts are for the policies as published. Those that cannot be read are left out.
func readFound(c config) (out []recordedPolicy, err error) {
	err = readLines(filepath.Join(c.corpus, "realworld", "policies.jsonl.gz"), func(line []byte) error {
		var one struct {
			Dir, Policy string
			ConfigMaps  []map[string]any
			Cases       []recordedCase
		}
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		name := "realworld/" + one.Dir
		_, wrong := policy.Parse(name, []byte(one.Policy)) // of some, Kyverno takes none either
		if !wrong.HasErrors() && strings.Contains(name, c.only) {
			out = append(out, generated{id: "", m: material{
				file: name, source: []byte(one.Policy), objects: one.ConfigMaps, cases: one.Cases,
			}})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// examineKyverno judges as published, and enforcing where that may be another policy.
func examineKyverno(s recordedPolicy, c *compiler) (out kyvernoResult) {
	out.name = s.name()
	if g, ok := s.(generated); ok && g.id == "" {
		out.name = g.m.file
	}
	m, err := s.load()
	if err != nil {
		out.unjudged = err
		return out
	}
	p, err := out.round(c, m, func(c recordedCase) map[string]string { return c.Verdicts })
	if err == nil && m.classes != nil && !allEnforce(p) {
		rules, said, left := out.rules, out.said, out.left
		if m.source, err = enforcing(m.source); err == nil {
			_, err = out.round(c, m, recordedCase.enforced)
		}
		out.rules, out.said, out.left = rules, said, left
	}
	out.unjudged = err
	return out
}

func (out *kyvernoResult) round(c *compiler, m material, want func(recordedCase) map[string]string) (*policy.Policy, error) {
	parsed, found := policy.Parse(m.file, m.source)
	if found.HasErrors() || len(parsed.Policies) != 1 {
		return nil, fmt.Errorf("%d policies, %v", len(parsed.Policies), found)
	}
	options := c.options
	options.Guard, options.Library = translate.GuardNever, true
	compiled := compile.Policies(compile.Input{Policies: parsed.Policies, Exceptions: parsed.Exceptions},
		compile.Options{Translate: options, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}}})
	converted := celpolicy.Convert(compiled, celpolicy.Options{Version: "v1"})
	out.rules, out.said, out.left = len(compiled.Rules), 0, nil
	var rules []*compile.Rule
	for _, r := range compiled.Rules {
		why, left := converted.Left[r]
		switch {
		case left:
			out.left = append(out.left, why.Error())
		case r.Target == translate.Native:
			rules = append(rules, r)
		default:
			out.left = append(out.left, fmt.Sprintf("%s: %v %s", r.Name(), r.Codes, r.Reason))
		}
	}
	out.said = len(rules)
	var objects []any
	for _, one := range converted.Policies {
		for _, o := range one.Objects {
			objects = append(objects, o)
		}
	}
	text, err := vap.Marshal(objects...)
	if err != nil {
		return nil, err
	}
	made, found := policy.Parse("made.yaml", text)
	if found.HasErrors() {
		return nil, fmt.Errorf("what is made cannot be read: %w\n%s", found.Err(), text)
	}
	in := interp.New(made.Policies, nil, judge.World(m.objects, c.options.Schemas), interp.Limits{})
	for _, rc := range m.cases {
		out.judge(c, in, rules, rc, want(rc))
	}
	return parsed.Policies[0], nil
}

// judge holds the gravest status of what was made to the gravest that is recorded for its rules.
func (out *kyvernoResult) judge(c *compiler, in *interp.Interpreter, rules []*compile.Rule, rc recordedCase, recorded map[string]string) {
	admission, err := interp.AdmissionOf(rc.Request)
	if err != nil {
		out.unjudged = err
		return
	}
	request := judge.Recorded(rc.Request, admission)
	request.NamespaceLabels, request.Roles, request.ClusterRoles = rc.NamespaceLabels, rc.Roles, rc.ClusterRoles
	if request.Lacks(c.options.Schemas) != "" { // which no API server makes
		return
	}
	want, got, message := interp.None, interp.None, ""
	errs := false
	for _, r := range rules {
		for _, f := range r.Forms {
			status := interp.Status(orNone(recorded[f.Name]))
			errs = errs || status == interp.Error
			want = graver(want, status)
		}
	}
	for _, said := range in.Judge(context.Background(), request.Interp()) {
		if graver(got, said.Status) != got {
			got, message = said.Status, said.Message
		}
	}
	if strings.Contains(message, "the policy is too large") { // for the interpreter, which bounds what it compiles
		out.tooLarge++
		return
	}
	out.cases++
	open := false // what errs is admitted
	for _, r := range rules {
		open = r.Policy.FailurePolicy == policy.Ignore
	}
	denied := want == interp.Fail || want == interp.Error && !open
	denies := got == interp.Fail || got == interp.Error // Kyverno denies under Ignore too what errs
	switch {
	case got == want && denied == denies:
		out.same, out.exact = out.same+1, out.exact+1
	case denied == denies && (got != interp.Error || errs):
		out.same++
	case slices.ContainsFunc(rules, func(r *compile.Rule) bool {
		return slices.ContainsFunc(r.Forms, func(f *compile.Form) bool {
			return excused(f.Source, rc, orNone(recorded[f.Name]), string(got))
		})
	}):
		out.same, out.deviant = out.same+1, out.deviant+1
	default:
		out.wrong = append(out.wrong, fmt.Sprintf("case %s: want %s, got %s: %s", rc.ID, want, got, message))
	}
}

func graver(s, t interp.Status) interp.Status {
	order := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Unknown, interp.Error, interp.Fail}
	if slices.Index(order, t) > slices.Index(order, s) {
		return t
	}
	return s
}
