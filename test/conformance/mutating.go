package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A mutateCase is one request with what Kyverno's mutate rules made of it.
type mutateCase struct {
	ID              string            `json:"id"`
	Request         map[string]any    `json:"request"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	Roles           []string          `json:"roles"`
	ClusterRoles    []string          `json:"clusterRoles"`
	Statuses        map[string]string `json:"statuses"` // by rule, or by MutatingPolicy; none where absent
	Object          map[string]any    `json:"object"`   // after all rules; nil where none changed it, or one erred
}

// A mutateResult is what became of the cases of one file of mutate rules.
type mutateResult struct {
	name         string
	cases, agree int
	patched      int
	deviant      map[string]int // of those that agree, by the reason
	wrong        []string
	unjudged     error
	native       nativeMutations
}

// A caseCount counts cases.
type caseCount struct {
	subjects, passed, failed int
	rules, natives           int // of those that mutate
	same, excused, different int // cases that native forms were judged by
}

// add counts a result, and writes it.
func (t *caseCount) add(w io.Writer, c config, r mutateResult) {
	t.subjects++
	t.passed += r.agree
	t.failed += r.cases - r.agree
	fmt.Fprintf(w, "%-60s cases %d  patched %d  agree %d  disagree %d\n", r.name, r.cases, r.patched, r.agree, r.cases-r.agree)
	if r.unjudged != nil {
		t.failed++
		fmt.Fprintf(w, "    not judged: %v\n", r.unjudged)
	}
	r.native.write(w)
	t.passed += r.native.agree
	t.failed += r.native.cases - r.native.agree
	t.rules, t.natives = t.rules+r.native.rules, t.natives+r.native.natives
	t.same, t.excused, t.different = t.same+r.native.agree-r.native.excused, t.excused+r.native.excused, t.different+r.native.cases-r.native.agree
	for i, text := range slices.Concat(r.wrong, r.native.wrong) {
		if c.verbose && (c.max == 0 || i < c.max) {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(text, "\n", "\n      "))
		}
	}
}

// writeNative says how much of what mutates is native.
func (t *caseCount) writeNative(w io.Writer, what string) {
	if t.rules > 0 {
		fmt.Fprintf(w, "%s: %d of %d rules native, %.1f %%; objects: %d the same, %d with elements that are not told apart, %d different\n",
			what, t.natives, t.rules, 100*float64(t.natives)/float64(t.rules), t.same, t.excused, t.different)
	}
}

// mutatingRules judges the mutate rules of a corpus.
func mutatingRules(w io.Writer, c config, natively *mutations) (t caseCount, err error) {
	entries, err := readOthers(c.corpus)
	if err != nil {
		return t, err
	}
	reasons := map[string]int{}
	for _, e := range entries {
		if e.Cases == 0 || !strings.HasPrefix(e.Dir, "mutate/") || !strings.Contains(e.Dir, c.only) {
			continue
		}
		r := e.examine(c.corpus, natively)
		t.add(w, c, r)
		for reason, n := range r.deviant {
			reasons[reason] += n
		}
	}
	t.writeNative(w, "mutate")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "mutate: %d cases deviate: %s\n", reasons[reason], reason)
	}
	return t, nil
}

// An otherEntry is a line of the corpus's list of policies that do not validate.
type otherEntry struct {
	Dir   string
	Files []string
	Cases int
}

func readOthers(corpus string) (entries []otherEntry, err error) {
	text, err := os.ReadFile(filepath.Join(corpus, "index-others.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return entries, json.Unmarshal(text, &entries)
}

// examine judges every case of an entry.
func (e otherEntry) examine(corpus string, natively *mutations) (out mutateResult) {
	out.name, out.deviant = e.Dir, map[string]int{}
	dir := filepath.Join(corpus, filepath.FromSlash(e.Dir))
	var policies []*policy.Policy
	for _, file := range e.Files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			out.unjudged = err
			return out
		}
		f, found := policy.Parse(file, text)
		if found.HasErrors() {
			out.unjudged = fmt.Errorf("%s: %v", file, found)
			return out
		}
		policies = append(policies, f.Policies...)
	}
	objects, err := readObjects(filepath.Join(dir, "configmaps.json"))
	if err != nil {
		out.unjudged = err
		return out
	}
	in := interp.New(policies, nil, &interp.Offline{Objects: objects}, interp.Limits{})
	if out.native, err = natively.of(policies, nil, objects); err != nil {
		out.unjudged = err
		return out
	}
	inNative := interp.New(out.native.policies, nil, &interp.Offline{Objects: objects}, interp.Limits{})
	out.unjudged = readLines(filepath.Join(dir, "cases.jsonl.gz"), func(line []byte) error {
		var mc mutateCase
		if err := kjson.Unmarshal(line, &mc); err != nil {
			return err
		}
		out.judge(in, policies, mc, byRule)
		out.native.judge(inNative, mc)
		return nil
	})
	return out
}

// request is a case as the interpreter reads it.
func (mc mutateCase) request() *interp.Request {
	return &interp.Request{
		Admission: mc.Request, NamespaceLabels: mc.NamespaceLabels, Roles: mc.Roles, ClusterRoles: mc.ClusterRoles,
	}
}

// judge holds one case to what is recorded, by names of rules.
func (out *mutateResult) judge(in *interp.Interpreter, policies []*policy.Policy, mc mutateCase, name func(interp.RuleMutation) string) {
	out.cases++
	if mc.Object != nil {
		out.patched++
	}
	got := in.Mutate(context.Background(), mc.request())
	difference := mc.difference(got, name)
	if difference == "" {
		out.agree++
		return
	}
	if l, ok := deviation.OfMutation(mc.deviation(policies, got)); ok {
		out.agree++
		out.deviant[fmt.Sprintf("%d, %s", l.Number, l.Reason)]++
		return
	}
	out.wrong = append(out.wrong, "case "+mc.ID+": "+difference)
}

// difference says where a mutation is not what is recorded; it is empty where all
// is.
func (mc mutateCase) difference(got *interp.MutationResult, name func(interp.RuleMutation) string) string {
	statuses := map[string]string{}
	var messages []string
	for _, r := range got.Rules {
		if r.Kyverno != interp.None {
			statuses[name(r)] = string(r.Kyverno)
			messages = append(messages, r.Rule+": "+r.Message)
		}
	}
	text := ""
	if d := textdiff.Values(mc.Statuses, statuses); d != "" && len(mc.Statuses)+len(statuses) > 0 {
		text = "statuses (-want +got):\n" + d + strings.Join(messages, "\n") + "\n"
	}
	want := mc.Object
	if want == nil {
		want = got.Before
	}
	if d := textdiff.Values(floats(want), floats(got.After)); d != "" {
		text += "object (-want +got):\n" + d
	}
	return text
}

// floats gives all numbers of data one type.
func floats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = floats(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = floats(item)
		}
		return out
	}
	return v
}

// deviation is a case as the table of deviations sees it.
func (mc mutateCase) deviation(policies []*policy.Policy, got *interp.MutationResult) deviation.MutationDifference {
	m := deviation.MutationDifference{Object: mc.Request["object"], Want: mc.Statuses, Said: map[string]string{}}
	for _, p := range policies {
		m.Rules = append(m.Rules, policy.Expand(p)...)
	}
	for _, r := range got.Rules {
		if r.Status != interp.None {
			m.Said[r.Rule] = string(r.Status)
		}
	}
	return m
}
