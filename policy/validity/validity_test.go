package validity_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/policy/validity"
	"github.com/kvap/kvap/schema"
)

// known are the kinds of the newest release, and those that projects publish.
func known(t *testing.T) *schema.Set {
	t.Helper()
	set, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return set.WithPublished()
}

// What the files of testdata say at the ends of their lines is found, as errors in one and as
// warnings in the other, and nothing else.
func TestWritten(t *testing.T) {
	kinds := known(t)
	for name, severity := range map[string]diag.Severity{"refused.yaml": diag.Error, "warned.yaml": diag.Warning} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			_, found := validity.Written(t.Context(), name, data, kinds.Resources)
			found = slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Severity > severity })
			for _, want := range expectations(string(data)) {
				i := slices.IndexFunc(found, want.is)
				if i < 0 {
					t.Errorf("%s:%d: no %s %s", name, want.line, want.code, want.text)
					continue
				}
				if found[i].Severity != severity {
					t.Errorf("%s: %v", found[i].Severity, found[i])
				}
				found = slices.Delete(found, i, i+1)
			}
			for _, d := range found {
				t.Errorf("unexpected: %v", d)
			}
		})
	}
}

type expectation struct {
	line       int
	code, text string
}

func (e expectation) is(d diag.Diagnostic) bool {
	return d.Line == e.line && d.Code.String() == e.code && strings.Contains(d.Message, e.text)
}

func expectations(text string) (out []expectation) {
	mark := regexp.MustCompile(`### (KV\d{3})(?:: (.*))?$`)
	number := 0
	for line := range strings.Lines(text) {
		number++
		if m := mark.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			out = append(out, expectation{number, m[1], m[2]})
		}
	}
	return out
}

// A kind that the cluster does not serve is a warning: it may come.
func TestUnserved(t *testing.T) {
	const text = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unserved}
spec:
  background: false
  rules:
    - name: kinds
      match: {any: [{resources: {kinds: [Pod, Pod/exec, Pod/*, "*", "*/scale"]}}, {resources: {kinds: [Unheard, v2/Pod, Pod/foo, Unheard/*]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {team: red}}}}
`
	kinds := known(t)
	_, found := validity.Written(t.Context(), "unserved.yaml", []byte(text), func(group, version, kind string) []schema.Resource {
		return slices.DeleteFunc(kinds.Resources(group, version, kind), func(r schema.Resource) bool { return r.Guessed })
	})
	var got []string
	for _, d := range found {
		if d.Code == diag.UnservedKind && d.Severity == diag.Warning {
			_, rest, _ := strings.Cut(d.Message, "no kind ")
			name, _, _ := strings.Cut(rest, ",")
			got = append(got, name)
		}
	}
	if want := []string{"Unheard", "v2/Pod", "Pod/foo", "Unheard/*"}; !slices.Equal(got, want) {
		t.Errorf("unserved are %v, want %v: %v", got, want, found)
	}
}

// Every code of policies as they are written has an example that yields it, but for those of
// updates and of clusters.
func TestExamplesYieldTheirCodes(t *testing.T) {
	kinds := known(t)
	for _, code := range diag.Codes() {
		if code < 600 || code > 699 {
			continue
		}
		text, ok := diag.Example(code)
		if !ok {
			if !slices.Contains([]diag.Code{diag.UnservedKind, diag.ImmutableRule, diag.StaleTarget}, code) {
				t.Errorf("%s has no example", code)
			}
			continue
		}
		_, ds := validity.Written(t.Context(), "example.yaml", []byte(text), kinds.Resources)
		if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == code && d.Severity == diag.Error }) {
			t.Errorf("the example of %s yields %v:\n%s", code, ds, text)
		}
	}
}

// Of an update of generate rules is said what Kyverno says.
func TestChange(t *testing.T) {
	const before = `{name: one, match: {any: [{resources: {kinds: [Secret]}}]}, generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, namespace: team, name: made, data: {data: {a: b}}}}`
	const second = `{name: two, match: {any: [{resources: {kinds: [Secret]}}]}, generate: {apiVersion: v1, kind: ConfigMap, namespace: team, name: other, data: {data: {a: b}}}}`
	const validates = `{name: three, match: {any: [{resources: {kinds: [Secret]}}]}, validate: {deny: {}}}`
	replace := func(old, with string) string { return strings.Replace(before, old, with, 1) }
	for _, c := range []struct {
		what, before, after string
		code                diag.Code
		severity            diag.Severity
	}{
		{"nothing", before, before, 0, 0},
		{"the data", before, replace("a: b", "a: c"), 0, 0},
		{"synchronize", before, replace("synchronize: true", "synchronize: false"), 0, 0},
		{"a rule more", before, before + ", " + second, 0, 0},
		{"a rule more of another type", before, before + ", " + validates, 0, 0},
		{"the name", before, replace("name: one", "name: uno"), diag.ImmutableRule, diag.Error},
		{"the match", before, replace("[Secret]", "[Secret, Pod]"), diag.ImmutableRule, diag.Error},
		{"the match of what is not kept in step", second, strings.Replace(second, "[Secret]", "[Secret, Pod]", 1), 0, 0},
		{"exclude", before, replace("generate:", "exclude: {any: [{resources: {names: [x]}}]}, generate:"), diag.ImmutableRule, diag.Error},
		{"preconditions", before, replace("generate:", "preconditions: {all: []}, generate:"), diag.ImmutableRule, diag.Error},
		{"the target's name", before, replace("name: made", "name: new"), diag.StaleTarget, diag.Warning},
		{"the target's name and the rule's", before, strings.Replace(replace("name: made", "name: new"), "name: one", "name: uno", 1), diag.StaleTarget, diag.Warning},
		{"the source", before, replace("data: {data: {a: b}}", "clone: {namespace: team, name: x}"), diag.StaleTarget, diag.Warning},
		{"a rule less", before + ", " + second, before, diag.StaleTarget, diag.Warning},
		{"the last rule", before + ", " + validates, validates, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			found := validity.Change(rules(t, c.before), rules(t, c.after))
			if c.code == 0 && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[0].Code != c.code || found[0].Severity != c.severity {
				t.Errorf("got %v, want %v", found, c.code)
			}
		})
	}
}

// rules is a policy with some rules.
func rules(t *testing.T, text string) *policy.Policy {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: ["+text+"]}}"))
	if ds.HasErrors() || len(f.Policies) != 1 {
		t.Fatal(ds)
	}
	return f.Policies[0]
}
