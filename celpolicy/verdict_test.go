package celpolicy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A converted is a fixture in Kyverno's kinds.
type converted struct {
	compiled compile.Result
	celpolicy.Conversion
	made    []*policy.Policy
	schemas *schema.Set
}

// convertFixture converts a fixture by its own options.
func convertFixture(t *testing.T, f fixtures.Fixture) converted {
	t.Helper()
	options := struct {
		Release  string             `json:"release"`
		CRDs     []any              `json:"crds"`
		Existing translate.Existing `json:"existing"`
	}{Release: cel.Latest.String()}
	if err := yaml.Unmarshal(f.Options, &options); err != nil {
		t.Fatal(err)
	}
	release, err := cel.ParseRelease(options.Release)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := schema.Builtin(release.String())
	if err != nil {
		t.Fatal(err)
	}
	schemas = schemas.WithPublished()
	for _, crd := range options.CRDs {
		text, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		schemas, _ = schemas.WithCRDs(text)
	}
	file, found := policy.Parse("policy.yaml", f.Policy)
	out := converted{schemas: schemas}
	out.compiled = compile.Policies(compile.Input{Policies: file.Policies, Exceptions: file.Exceptions, Found: found}, compile.Options{
		Translate: translate.Options{Release: release, Schemas: schemas, Existing: options.Existing, Guard: translate.GuardNever, Mutations: true, Targets: true, Library: true},
		Emit:      vap.EmitOptions{ExcludeNamespaces: []string{}},
	})
	out.Conversion = celpolicy.Convert(out.compiled, celpolicy.Options{Version: "v1"})
	out.made = parsed(t, out.Conversion)
	return out
}

// parsed are the objects of a conversion, written and read again.
func parsed(t *testing.T, c celpolicy.Conversion) []*policy.Policy {
	t.Helper()
	var objects []any
	for _, one := range c.Policies {
		for _, o := range one.Objects {
			objects = append(objects, o)
		}
	}
	text, err := vap.Marshal(objects...)
	if err != nil {
		t.Fatal(err)
	}
	made, found := policy.Parse("made.yaml", text)
	if found.HasErrors() {
		t.Fatalf("%v\n%s", found, text)
	}
	return made.Policies
}

// What comes out of a fixture denies a case if and only if one of its rules does.
func TestVerdicts(t *testing.T) {
	for _, f := range fixtures.All() {
		if f.Cases == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			c := convertFixture(t, f)
			cases, err := fixtures.ParseCases(f.Cases)
			if err != nil {
				t.Fatal(err)
			}
			for _, complete := range []bool{false, asksOthers(f)} { // an object that is not there is null to the library, where a failing call is an error
				world := judge.World(contextOf(t, f), c.schemas)
				world.Complete = complete
				in := interp.New(c.made, nil, world, interp.Limits{})
				for _, x := range cases {
					c.judge(t, in, x)
				}
			}
		})
	}
}

// asksOthers tells of a fixture that only Kyverno's CEL library has a form for: all its rules have one.
func asksOthers(f fixtures.Fixture) bool {
	return strings.HasPrefix(f.Name, "other-") && f.Name != "other-kinds"
}

// What only the library can ask for is left by none of its rules.
func TestLibrary(t *testing.T) {
	for _, f := range fixtures.All() {
		if !asksOthers(f) {
			continue
		}
		for _, r := range convertFixture(t, f).compiled.Rules {
			if r.Target != translate.Native {
				t.Errorf("%s: %s: %s", f.Name, r.Name(), r.Reason)
			}
		}
	}
}

func contextOf(t *testing.T, f fixtures.Fixture) (out []map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal(f.Context, &out); err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		if o["kind"] == "Namespace" { // as every API server has one
			o["status"] = map[string]any{"phase": "Active"}
		}
	}
	return out
}

func (c converted) judge(t *testing.T, in *interp.Interpreter, x fixtures.Case) {
	t.Helper()
	data, err := x.Request()
	if err != nil {
		t.Fatal(err)
	}
	admission, err := interp.ParseAdmission(data)
	if err != nil {
		t.Fatal(err)
	}
	var native admissionv1.AdmissionRequest
	if err := json.Unmarshal(data, &native); err != nil {
		t.Fatal(err)
	}
	request := judge.Recorded(&native, admission)
	request.NamespaceLabels, request.Roles, request.ClusterRoles = x.NamespaceLabels, x.Roles, x.ClusterRoles
	want, errs := interp.None, false
	for _, one := range c.Policies {
		for _, r := range one.Rules {
			for _, form := range r.Forms {
				status := interp.Status(x.Want[form.Name])
				if status == interp.Error && r.Policy.FailurePolicy == policy.Ignore && enforced(r) {
					continue
				}
				want, errs = graver(want, status), errs || status == interp.Error
			}
		}
	}
	got, message := interp.None, ""
	for _, said := range in.Judge(t.Context(), request.Interp()) {
		if graver(got, said.Status) != got {
			got, message = said.Status, said.Message
		}
	}
	if strings.Contains(message, "the policy is too large") { // for the interpreter, which bounds what it compiles
		return
	}
	denies := func(s interp.Status) bool { return s == interp.Fail || s == interp.Error }
	if denies(got) != denies(want) || want == interp.Fail && got == interp.Error && !errs {
		t.Errorf("%s: got %s, want %s: %s", x.Note, got, want, message)
	}
}

// enforced tells that a violation of the rule is denied: nothing else depends on whether it errs.
func enforced(r *compile.Rule) bool {
	return r.Policy.Action == policy.Enforce || r.Source.Validate != nil && r.Source.Validate.Action == policy.Enforce
}

func graver(s, t interp.Status) interp.Status {
	order := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Unknown, interp.Error, interp.Fail}
	if slices.Index(order, t) > slices.Index(order, s) {
		return t
	}
	return s
}
