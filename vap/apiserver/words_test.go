package apiserver

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// TestWords has the library and the API server say what is read from their words, so
// that it fails when they say it otherwise.
func TestWords(t *testing.T) {
	env, err := celgo.NewEnv(celgo.Variable("s", celgo.StringType))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, function, arguments string }{
		{"s == 1", "_==_", "(string, int)"},
		{"1.0 != 1", "_!=_", "(double, int)"},
		{"1 in s", "@in", "(int, string)"},
		{"s[0]", "_[_]", "(string, int)"},
		{"size(1)", "size", "(int)"},
		{"s.startsWith(1)", "startsWith", "string.(int)"},
		{"unknown == 1", "", ""},
	} {
		_, issues := env.Compile(tt.text)
		if issues.Err() == nil {
			t.Errorf("%s: no error", tt.text)
			continue
		}
		p := problems(issues)[0]
		if p.Function != tt.function || p.arguments != tt.arguments {
			t.Errorf("%s: read %q of %q from: %s", tt.text, p.Function, p.arguments, p.Message)
		}
	}

	d := teamDraft()
	p := emit(t, d, vap.EmitOptions{}).Policy
	p.Spec.Validations[0].Expression = "true &&\n  object.metadata.nme == ''"
	p.Spec.Validations[0].MessageExpression = ""
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apischema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	warnings := NewTypeChecker(podSchema{}, mapper).Shown(p)
	if len(warnings) == 0 {
		t.Fatal("the type checker warns of nothing")
	}
	if kinds := strings.Join(WarnedKinds(warnings[0].Warning), "; "); kinds != "/v1, Kind=Pod" {
		t.Errorf("read the kinds %q from: %s", kinds, warnings[0].Warning)
	}
	if first, ok := FirstProblem(warnings[0].Warning); !ok || first.LineColumn != (LineColumn{2, 18}) || first.Message != "undefined field 'nme'" {
		t.Errorf("read %+v from: %s", first, warnings[0].Warning)
	}

	p.Spec.Validations[0].Expression = "'a' + 1 == 2"
	errs := NewChecker(cel.Latest).Validate(p)
	if len(errs) == 0 {
		t.Fatal("the compiler complains of nothing")
	}
	if got := FirstMessage(errs[0].Detail); !strings.HasPrefix(got, "1:5: found no matching overload for '_+_'") {
		t.Errorf("read %q from: %s", got, errs[0].Detail)
	}
	if got := FirstMessage("must be\n  such"); got != "must be such" {
		t.Errorf("got %q", got)
	}
}
