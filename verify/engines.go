package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// Engines judge by one policy, natively and by the interpreter.
type Engines struct {
	Policy *policy.Policy
	// Native are the rules that have a native form, by the names that Kyverno
	// reports, in the order of the source and its expansion.
	Native []string
	// Objects are what the policy was translated to.
	Objects []vap.Objects
	// Translation is what became of each rule.
	Translation translate.Result

	worlds  []world
	members map[string]vap.Translation // of each emitted policy
}

// A world is the two judges with the objects that rules look up.
type world struct {
	params []*unstructured.Unstructured
	judge  *vap.Judge
	interp *interp.Interpreter
}

// A Setting is what engines are made for.
type Setting struct {
	Translate translate.Options
	// Params are the ConfigMaps and other objects that rules look up. ConfigMaps
	// that are not there are made up.
	Params []*unstructured.Unstructured
	// Seed makes them.
	Seed uint64
	// Alter, where not nil, changes the objects before they judge, as tests do to
	// see that a broken translation is found.
	Alter func([]vap.Objects)
}

// NewEngines translates a policy and makes both engines. An error says why the
// translation has no objects that could judge.
func NewEngines(p *policy.Policy, s Setting) (e *Engines, err error) {
	result := translate.Policies([]*policy.Policy{p}, s.Translate)
	objects, found := vap.EmitAll(result.Drafts, vap.EmitOptions{ExcludeNamespaces: []string{}})
	if found.HasErrors() {
		return nil, fmt.Errorf("the translation cannot be emitted: %w", asError(found))
	}
	if s.Alter != nil {
		s.Alter(objects)
	}
	e = &Engines{Policy: p, Objects: objects, Translation: result, members: map[string]vap.Translation{}}
	e.Native = nativeRules(p, result)
	for _, params := range configMaps(p, s.Params, readHints(p.Source), s.Seed) {
		w := world{params: params}
		if w.judge, err = e.compile(params); err != nil {
			return nil, err
		}
		objects := &interp.Offline{}
		for _, u := range params {
			objects.Objects = append(objects.Objects, u.Object)
		}
		w.interp = interp.New([]*policy.Policy{p}, s.Translate.Exceptions, objects, interp.Limits{})
		e.worlds = append(e.worlds, w)
	}
	return e, nil
}

func asError(ds diag.List) error {
	for _, d := range ds {
		if d.Severity == diag.Error {
			return fmt.Errorf("%s: %s", d.Pos, d.Message)
		}
	}
	return nil
}

func (e *Engines) compile(params []*unstructured.Unstructured) (*vap.Judge, error) {
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, o := range e.Objects {
		translation, ok, err := vap.TranslationOf(o.Policy.Annotations)
		if !ok || err != nil {
			return nil, fmt.Errorf("object %s does not say what it was made from: %w", o.Policy.Name, err)
		}
		e.members[o.Policy.Name] = translation
		policies = append(policies, o.Policy)
		bindings = append(bindings, o.Bindings...)
	}
	return vap.NewJudge(policies, bindings, vap.JudgeOptions{Params: params})
}

// Refused is what an API server of the release would refuse the objects for.
func (e *Engines) Refused(s Setting) []string {
	var out []string
	add := func(object string, errs field.ErrorList) {
		for _, err := range errs { // without the value, which may be an expression of many lines
			out = append(out, fmt.Sprintf("%s: %s: %s", object, err.Field, strings.Join(strings.Fields(err.Detail), " ")))
		}
	}
	for _, o := range e.Objects {
		add(o.Policy.Name, vap.Validate(o.Policy, s.Translate.Release))
		for _, b := range o.Bindings {
			add("binding "+b.Name, vap.ValidateBinding(b))
		}
	}
	return out
}

// nativeRules are the names of the rules and expansions that are native. An
// expansion goes where its rule goes.
func nativeRules(p *policy.Policy, result translate.Result) []string {
	var out []string
	for _, rule := range policy.Expand(p) {
		for _, r := range result.Rules {
			if r.Rule != nil && r.Rule.Name == rule.Origin && r.Target == translate.Native {
				out = append(out, rule.Name)
			}
		}
	}
	return out
}

// An Opinion is what both engines say of one rule on one request.
type Opinion struct {
	Rule          string
	Native        vap.Outcome
	NativeMessage string
	Interp        interp.Status
	InterpMessage string
}

// Agree tells whether the native outcome is what the interpreter's status asks
// for: a violation is denied, what errs is denied or an error, and everything
// else is admitted.
func (o Opinion) Agree() bool {
	switch o.Interp {
	case interp.Fail:
		return o.Native == vap.Deny
	case interp.Error:
		return o.Native == vap.Deny || o.Native == vap.Error
	}
	return o.Native != vap.Deny && o.Native != vap.Error
}

// Judge asks both engines about a request. There is an opinion for each native
// rule, in the order of Native.
func (e *Engines) Judge(ctx context.Context, r *Request) ([]Opinion, error) {
	w := e.worlds[r.world%len(e.worlds)]
	verdicts, err := w.judge.Review(ctx, r.admission(), r.NamespaceLabels)
	if err != nil {
		return nil, err
	}
	out := make([]Opinion, len(e.Native))
	for i, name := range e.Native {
		out[i] = Opinion{Rule: name, Native: vap.NoMatch, Interp: interp.None}
	}
	for _, v := range verdicts {
		translation := e.members[v.Policy]
		for i, m := range v.Members(translation) {
			o := opinionOf(out, translation.Members[i].Rule)
			if o != nil && graver(m.Outcome, o.Native) {
				o.Native, o.NativeMessage = m.Outcome, m.Message
			}
		}
	}
	for _, res := range w.interp.Judge(ctx, r.interp()) {
		if o := opinionOf(out, res.Rule); o != nil {
			o.Interp, o.InterpMessage = res.Status, res.Message
		}
	}
	return out, nil
}

// Params are the objects that rules look up when they judge a request.
func (e *Engines) Params(r *Request) []*unstructured.Unstructured {
	return e.worlds[r.world%len(e.worlds)].params
}

func opinionOf(list []Opinion, rule string) *Opinion {
	i := slices.IndexFunc(list, func(o Opinion) bool { return o.Rule == rule })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// graver orders outcomes: what does not match, allows, errs, denies.
func graver(a, b vap.Outcome) bool {
	order := []vap.Outcome{vap.NoMatch, vap.Allow, vap.Error, vap.Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}
