package cel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A form is a shape for tests: fields that are always there, and others.
type form struct {
	always, sometimes map[string]*form
	elem              *form
}

func (f *form) Field(name string) (Shape, bool) {
	if s, ok := f.always[name]; ok {
		return s.shape(), true
	}
	return f.sometimes[name].shape(), false
}

func (f *form) Elem() Shape { return f.elem.shape() }

func (f *form) shape() Shape {
	if f == nil {
		return nil
	}
	return f
}

func podForm() *form {
	container := &form{always: map[string]*form{"name": nil}, sometimes: map[string]*form{"image": nil}}
	containers := &form{elem: container}
	return &form{always: map[string]*form{
		"metadata": {always: map[string]*form{"name": nil}, sometimes: map[string]*form{"labels": {elem: &form{}}}},
		"spec":     {always: map[string]*form{"containers": containers}, sometimes: map[string]*form{"initContainers": containers, "hostNetwork": nil, "securityContext": {}}},
	}}
}

func podSurroundings(t *testing.T, null bool) Surroundings {
	return Surroundings{
		Roots: []Root{{"object", podForm(), null}, {"params", nil, false}},
		Variables: func(name string) (Value, bool) {
			switch name {
			case "all":
				return parse(t, `object.spec.containers + object.spec.?initContainers.orValue([])`), true
			case "sc":
				return parse(t, `object.spec.securityContext`), true
			case "maybe":
				return parse(t, `object.spec.?securityContext`), true
			}
			return Value{}, false
		},
	}
}

func TestGuarded(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		null       bool
	}{
		{text: `object.metadata.name == 'a'`, want: `object.metadata.name == 'a'`},
		{text: `object.metadata.name == 'a'`, want: `object != null && object.metadata.name == 'a'`, null: true},
		{text: `object == null || object.metadata.name == 'a'`, want: `object == null || object.metadata.name == 'a'`, null: true},
		{text: `has(object.spec.hostNetwork)`, want: `object != null && has(object.spec.hostNetwork)`, null: true},
		{text: `has(object.spec)`, want: `has(object.spec)`, null: true},
		{text: `!has(object.spec.hostNetwork) || !object.spec.hostNetwork`, want: `!has(object.spec.hostNetwork) || !object.spec.hostNetwork`},
		{text: `!has(object.spec.hostNetwork) || !object.spec.hostNetwork`, want: `object != null && (!has(object.spec.hostNetwork) || !object.spec.hostNetwork)`, null: true},
		{text: `has(object.spec.hostNetwork) && object.spec.hostNetwork`, want: `has(object.spec.hostNetwork) && object.spec.hostNetwork`},
		{text: `has(object.spec.hostNetwork) ? !object.spec.hostNetwork : true`, want: `has(object.spec.hostNetwork) ? !object.spec.hostNetwork : true`},
		{text: `!object.spec.hostNetwork`, want: `has(object.spec.hostNetwork) && !object.spec.hostNetwork`},
		{text: `!(object.spec.hostNetwork && object.metadata.name == 'a')`, want: `has(object.spec.hostNetwork) && !object.spec.hostNetwork || object.metadata.name != 'a'`},
		{text: `object.spec.containers.all(c, c.image.contains(':'))`, want: `object.spec.containers.all(c, has(c.image) && c.image.contains(':'))`},
		{text: `!object.spec.containers.exists(c, c.image.contains(':'))`, want: `object.spec.containers.all(c, has(c.image) && !c.image.contains(':'))`},
		{text: `object.spec.containers.all(c, c.name != 'a')`, want: `object.spec.containers.all(c, c.name != 'a')`},
		{text: `variables.all.all(c, c.image != 'a' && c.name != 'a')`, want: `variables.all.all(c, has(c.image) && c.image != 'a' && c.name != 'a')`},
		{text: `variables.all.all(c, c.image != 'a')`, want: `object != null && variables.all.all(c, has(c.image) && c.image != 'a')`, null: true},
		{text: `has(variables.sc.a)`, want: `has(object.spec.securityContext) && has(variables.sc.a)`},
		{text: `variables.maybe.a.orValue(1) == 1`, want: `variables.maybe.a.orValue(1) == 1`},
		{text: `object.?spec.a.b.orValue(1) == 1`, want: `object.?spec.a.b.orValue(1) == 1`},
		{text: `object.metadata.labels.a == 'a'`, want: `has(object.metadata.labels) && has(object.metadata.labels.a) && object.metadata.labels.a == 'a'`},
		{text: `object.metadata.labels['a'] == 'a'`, want: `has(object.metadata.labels) && 'a' in object.metadata.labels && object.metadata.labels['a'] == 'a'`},
		{text: `object.metadata.labels.exists(k, k == 'a')`, want: `has(object.metadata.labels) && object.metadata.labels.exists(k, k == 'a')`},
		{text: `object.spec.containers[0].image == 'a'`, want: `size(object.spec.containers) > 0 && has(object.spec.containers[0].image) && object.spec.containers[0].image == 'a'`},
		{text: `object.spec.containers.filter(c, c.image != 'a').size() == 0`, want: `object.spec.containers.all(c, has(c.image)) && object.spec.containers.filter(c, c.image != 'a').size() == 0`},
		{text: `object.metadata.name.split('-')[1] == 'a'`, want: `size(object.metadata.name.split('-')) > 1 && object.metadata.name.split('-')[1] == 'a'`},
		{text: `{1: 'a'}[1] == 'a'`, want: `{1: 'a'}[1] == 'a'`},
		{text: `params.x > 1`, want: `has(params.x) && params.x > 1`},
		{text: `authorizer.requestResource.check('get').allowed()`, want: `authorizer.requestResource.check('get').allowed()`},
		{text: `object.spec.hostNetwork == true || object.spec.hostNetwork == false`, want: `has(object.spec.hostNetwork) && (object.spec.hostNetwork == true || object.spec.hostNetwork == false)`},
	} {
		if got := parse(t, tt.text).AsBool().Guarded(podSurroundings(t, tt.null)).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// A guarded expression is true where the expression was, and nothing is missing.
func TestGuardedIsTrue(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	s := Surroundings{Roots: []Root{{"object", nil, true}, {"oldObject", nil, true}}}
	compiled, erred, told := 0, 0, 0
	for seed := range uint64(700) {
		w := &sower{r: rand.New(rand.NewPCG(seed, 3))}
		b := w.bool(3).AsBool()
		p, ok := program(t, e, b)
		if !ok {
			continue
		}
		compiled++
		guarded, ok1 := program(t, e, b.Guarded(s))
		refuted, ok2 := program(t, e, b.GuardedNot(s))
		present, ok3 := program(t, e, b.Present(s))
		if !ok1 || !ok2 || !ok3 {
			t.Fatalf("%s: one of\n%s\n%s\n%s\ndoes not compile", b, b.Guarded(s), b.GuardedNot(s), b.Present(s))
		}
		for range 20 {
			vars := map[string]any{"object": w.object(), "oldObject": w.object()}
			want := outcome(p, vars)
			if want == nil {
				erred++
				if outcome(guarded, vars) == types.False {
					told++
				}
			}
			fits := func() bool {
				want = outcome(p, vars)
				return agreesWith(want, outcome(guarded, vars), types.True) && agreesWith(want, outcome(refuted, vars), types.False) &&
					(want == nil || outcome(present, vars) == types.True)
			}
			ok := false
			for range 50 { // what walks the keys of a map has them in any order
				if ok = fits(); ok {
					break
				}
			}
			if !ok {
				t.Fatalf("%s\nis %v\nguarded %s\nis %v\nrefuted %s\nis %v\npresent %s\nis %v\n%s", b, want, b.Guarded(s), outcome(guarded, vars),
					b.GuardedNot(s), outcome(refuted, vars), b.Present(s), outcome(present, vars), fmt.Sprint(vars))
			}
		}
	}
	if compiled < 300 || told < erred/3 {
		t.Errorf("%d expressions compile; of %d errors, %d are told", compiled, erred, told)
	}
}

func program(t *testing.T, e *celgo.Env, b Bool) (celgo.Program, bool) {
	t.Helper()
	ast, err := compile(e, b.String())
	if err != nil {
		return nil, false
	}
	p, err := e.Program(ast)
	return p, err == nil
}

// agreesWith tells whether got is true exactly where the value is the wanted one.
func agreesWith(value, got ref.Val, wanted ref.Val) bool {
	switch {
	case value == nil:
		return got != types.True
	case value.Type() != types.BoolType:
		return true
	}
	return got == types.Bool(value == wanted)
}
