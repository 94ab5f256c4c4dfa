package diff

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

var long = flag.Bool("long", false, "search as long as a user would, and break every fixture in many ways")

// parsed is a side of the policies and exceptions in a text.
func parsed(t testing.TB, name string, source []byte) Side {
	t.Helper()
	file, found := policy.Parse(name, source)
	if found.HasErrors() {
		t.Fatal(found)
	}
	return Side{Policies: file.Policies, Exceptions: file.Exceptions}
}

// natively is a side of the native objects in a text.
func natively(t testing.TB, source []byte) Side {
	t.Helper()
	var out Side
	objects, found := manifest.Read("native.yaml", source)
	if found.HasErrors() {
		t.Fatal(found)
	}
	for _, o := range objects {
		switch {
		case judge.IsDeployedMutation(o):
			found = append(found, out.Mutations.Add(o)...)
		case judge.IsDeployed(o):
			found = append(found, out.Deployed.Add(o)...)
		}
	}
	if found.HasErrors() {
		t.Fatal(found)
	}
	out.Params = out.Deployed.Params(objects)
	return out
}

// schemas are those that fixtures are compiled with.
func schemas(t testing.TB) *schema.Set {
	t.Helper()
	set, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return set.WithPublished()
}

// withCRDs are these with the definitions among a fixture's options.
func withCRDs(t testing.TB, set *schema.Set, options []byte) *schema.Set {
	t.Helper()
	var o struct {
		CRDs []map[string]any `json:"crds"`
	}
	if err := yaml.Unmarshal(options, &o); err != nil {
		t.Fatal(err)
	}
	for _, crd := range o.CRDs {
		text, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		with, found := set.WithCRDs(text)
		if found.HasErrors() {
			t.Fatal(found)
		}
		set = with
	}
	return set
}

// only are the policies of a side with the rules that the other one has a form of.
func only(t testing.TB, of, has Side) Side {
	t.Helper()
	names := map[ruleName]bool{}
	for _, g := range has.groups() {
		for _, r := range g.rules {
			names[ruleName{g.name, r}] = true
		}
	}
	out := Side{Exceptions: of.Exceptions}
	for _, p := range of.Policies {
		if p.InCEL() {
			if name := p.Name; names[ruleName{p.FullName(), name}] || names[ruleName{p.FullName(), mutations}] {
				out.Policies = append(out.Policies, p)
			}
			continue
		}
		keep := func(r *policy.Rule) bool {
			return names[ruleName{p.FullName(), r.Origin}] || r.Mutate != nil && names[ruleName{p.FullName(), mutations}]
		}
		some := false
		for _, r := range p.Rules {
			some = some || keep(r)
		}
		if some {
			out.Policies = append(out.Policies, parsed(t, "only.yaml", policy.Marshal(p.Only(keep))).Policies...)
		}
	}
	return out
}

// A fixture says the same as what it is translated to.
func TestFixturesSayTheSame(t *testing.T) {
	set := schemas(t)
	requests := 40
	if *long {
		requests = DefaultRequests
	}
	compared := 0
	for at, f := range fixtures.All() {
		if f.Cases == nil || at%6 != 0 && !*long || strings.Contains(string(f.Options), "existing-violations") { // which asks for another verdict
			continue
		}
		native := natively(t, f.Want)
		file, _ := policy.Parse("policy.yaml", f.Policy)
		old := only(t, Side{Policies: file.Policies, Exceptions: file.Exceptions}, native)
		if len(old.Policies) == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			got, err := Compare(context.Background(), old, native, Options{Schemas: withCRDs(t, set, f.Options), Seed: 1, Requests: requests, Params: given(t, f.Context)})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Comparisons {
				compared++
				tell(t, c)
			}
		})
	}
	t.Logf("%d comparisons", compared)
}

// A native policy says the same in Kyverno's kind of the same form, which another judge judges.
func TestFixturesInCEL(t *testing.T) {
	set := schemas(t)
	compared := 0
	for at, f := range fixtures.All() {
		if f.Cases == nil || at%16 != 0 && !*long {
			continue
		}
		native := natively(t, f.Want)
		old := Side{Params: native.Params}
		var written []byte
		for _, p := range native.Deployed.Policies {
			if p.Spec.ParamKind != nil {
				continue
			}
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p.Spec)
			if err != nil {
				t.Fatal(err)
			}
			spec["autogen"] = map[string]any{"podControllers": map[string]any{"controllers": []any{}}}
			text, err := yaml.Marshal(map[string]any{"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": map[string]any{"name": p.Name}, "spec": spec})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "oldObject") { // which, where there is none, is empty for Kyverno and null here
				continue
			}
			one := *p
			one.Annotations = nil
			old.Deployed.Policies = append(old.Deployed.Policies, &one)
			old.Deployed.Bindings = append(old.Deployed.Bindings, native.Deployed.BindingsOf(p.Name)...)
			written = append(append(written, "---\n"...), text...)
		}
		if len(old.Deployed.Policies) == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			got, err := Compare(context.Background(), old, parsed(t, "cel.yaml", written), Options{
				Schemas: withCRDs(t, set, f.Options), Seed: 1, Requests: 40, Params: given(t, f.Context), Ignore: []Aspect{Action},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Comparisons {
				compared++
				c.Differences = slices.DeleteFunc(c.Differences, elsewhere)
				tell(t, c)
			}
		})
	}
	t.Logf("%d comparisons", compared)
}

// elsewhere tells of a request that Kyverno and an API server put before such a policy in different
// forms: of a deletion Kyverno's object is empty and not null, and of native policies no native one
// is asked.
func elsewhere(d Difference) bool {
	return d.Request != nil && (d.Request.Operation == "DELETE" || d.Request.Group == "admissionregistration.k8s.io")
}

// tell complains of each difference.
func tell(t *testing.T, c Comparison) {
	t.Helper()
	if c.Error != "" {
		t.Errorf("%v: %s", c.Old.Rules, c.Error)
	}
	for _, d := range c.Differences {
		if d.Aspect == Message && strings.Contains(d.New.Text(), "{{") { // what CEL cannot fill in stays as it is written
			continue
		}
		t.Errorf("%v, %v by %s: %s: %+v, %+v: %s", c.Old, c.New, c.By, d.Aspect, d.Old, d.New, d.Request)
	}
}

// given are the objects that rules of a fixture look up.
func given(t testing.TB, source []byte) (out []*unstructured.Unstructured) {
	t.Helper()
	objects, found := manifest.Read("context.yaml", source)
	if found.HasErrors() {
		t.Fatal(found)
	}
	for _, o := range objects {
		for _, value := range o.Objects() {
			out = append(out, &unstructured.Unstructured{Object: value})
		}
	}
	return out
}
