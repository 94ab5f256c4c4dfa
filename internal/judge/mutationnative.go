package judge

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Changer holds what native policies make of objects to what the interpreter makes of them
// by the source.
type Changer struct {
	natives   *nativeMutations
	source    *interp.Interpreter
	collapsed []mutating.KeyedList // in which the natives keep what the source drops
	leftOut   []string             // namespaces that bindings leave out
}

// A Changed is what both made of an object.
type Changed struct {
	Native  apiserver.Outcome // NoMatch, Allow, Error or Unknown
	Message string            // of the error
	// Different says how the two differ; it is empty where they do not.
	Different string
	// Confused tells that the objects are the same but for elements of a list that have the same
	// key, of which ElementsOfOneKey tells: Kyverno's merge drops all but one of them, and natively
	// they stay, or the API server refuses the object for them.
	Confused bool
	// Changed tells that the interpreter has changed the object.
	Changed bool
	// LeftOut tells that the bindings leave out the namespace of the request.
	LeftOut bool
	// Interpreted and Made are what the interpreter and the natives made of the object, where
	// neither is an error.
	Interpreted, Made map[string]any
}

// Paths are where the two objects differ.
func (c Changed) Paths() (out []string) {
	for _, op := range (&interp.MutationResult{Before: c.Interpreted, After: c.Made}).Patch() {
		out = append(out, op.Path)
	}
	return out
}

// NewChanger makes a changer of native objects, and of the interpreter of their source.
func NewChanger(objects []mutating.Objects, source *interp.Interpreter, o apiserver.JudgeOptions) (*Changer, error) {
	var made DeployedMutations
	var collapsed []mutating.KeyedList
	for _, one := range objects {
		made.Policies, made.Bindings = append(made.Policies, one.Policy), append(made.Bindings, one.Bindings...)
		collapsed = append(collapsed, one.Draft.Collapsed...)
	}
	natives, err := made.natives(o)
	return &Changer{natives: natives, source: source, collapsed: collapsed}, err
}

// By is the changer with another interpreter of the source.
func (c *Changer) By(source *interp.Interpreter) *Changer {
	out := *c
	out.source = source
	return &out
}

// Change lets both change the object of a request, as an API server has read it. On
// operations on which none changes anything there is nothing to say.
func (c *Changer) Change(ctx context.Context, request *interp.Request) (out Changed) {
	out.Native = apiserver.NoMatch
	if operation := request.Admission["operation"]; operation != "CREATE" && operation != "UPDATE" {
		return out
	}
	read := *request
	read.Admission = maps.Clone(request.Admission)
	for _, field := range []string{"object", "oldObject"} {
		if object, ok := read.Admission[field].(map[string]any); ok {
			if decoded, err := apiserver.Decoded(asNamespace(object)); err == nil {
				read.Admission[field] = decoded
			}
		}
	}
	namespace, _ := request.Admission["namespace"].(string)
	out.LeftOut = slices.Contains(c.leftOut, namespace)
	want := c.source.Mutate(ctx, &read)
	out.Changed = want.Changed()
	fails := ""
	for _, r := range want.Rules {
		switch {
		case r.Status == interp.Unknown:
			out.Native = apiserver.Unknown
			return out
		case r.Status == interp.Error && fails == "":
			fails = r.Rule + ": " + r.Message
		}
	}
	after, err := apiserver.Decoded(want.After)
	if err != nil && fails == "" { // no API server takes what the rules made
		fails = err.Error()
	}
	object, err := c.native(ctx, &read, &out)
	switch {
	case err != nil:
		out.Different = err.Error()
	case out.Native == apiserver.Unknown:
	case (fails != "") != (out.Native == apiserver.Error):
		out.Different = "the interpreter: " + fails + "\nnative: " + out.Message
	case fails == "":
		out.Different = textdiff.Values(numbers(after), numbers(object))
		out.Interpreted, out.Made = plainNumbers(after), plainNumbers(object)
	}
	if out.Different != "" && fails == "" && err == nil && c.told(&out, read.Admission["object"], after, object) {
		out.Confused, out.Different = true, ""
	}
	return out
}

// told tells of a difference in nothing but elements of lists that have the same key, of which
// the policies have told.
func (c *Changer) told(out *Changed, before any, after, object map[string]any) bool {
	same := sameKeys(c.collapsed, before, object)
	if same.refused {
		return true
	}
	return out.Native != apiserver.Error && textdiff.Values(numbers(same.without(after)), numbers(same.without(object))) == ""
}

// native is what the native policies make of a request.
func (c *Changer) native(ctx context.Context, r *interp.Request, out *Changed) (map[string]any, error) {
	object, verdicts, err := c.natives.mutate(ctx, r)
	for _, v := range verdicts {
		if v.Outcome.Graver(out.Native) {
			out.Native, out.Message = v.Outcome, v.Message
		}
	}
	return object, err
}

// admissionOf is a request as native policies that mutate are asked about it: by somebody.
func admissionOf(r *interp.Request) (*admissionv1.AdmissionRequest, error) {
	text, err := json.Marshal(r.Admission)
	if err != nil {
		return nil, err
	}
	out := &admissionv1.AdmissionRequest{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, err
	}
	if out.UserInfo.Username == "" {
		out.UserInfo.Username = nobody
	}
	return out, nil
}

// asNamespace is a Namespace as an API server reads it: in no namespace, and with its name in a
// label. Other objects are as they are.
func asNamespace(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	if object["kind"] != "Namespace" || object["apiVersion"] != "v1" || meta == nil {
		return object
	}
	object, meta = maps.Clone(object), maps.Clone(meta)
	delete(meta, "namespace")
	labels, _ := meta["labels"].(map[string]any)
	if labels = maps.Clone(labels); labels == nil {
		labels = map[string]any{}
	}
	if name, _ := meta["name"].(string); name != "" {
		labels["kubernetes.io/metadata.name"], meta["labels"] = name, labels
	}
	object["metadata"] = meta
	return object
}

// numbers is data with numbers of one type, and without lists that are empty: an API server
// takes them for those that are null, and for those that are not there.
func numbers(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if list, ok := item.([]any); item != nil && (!ok || len(list) > 0) {
				out[key] = numbers(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = numbers(item)
		}
		return out
	}
	return v
}

func plainNumbers(object map[string]any) map[string]any {
	out, _ := numbers(object).(map[string]any)
	return out
}

// A changingPolicy is a policy of which all that mutates is native.
type changingPolicy struct {
	*Changer
	places []int // of its rules among Judges.Rules
}

// changers are the policies whose mutate rules are native: of a policy with some that are not,
// nobody tells what those that are make of an object by themselves.
func (j *Judges) changers(c ClusterState, world interp.World) (out []changingPolicy, err error) {
	for _, p := range j.Compiled.Policies {
		var one changingPolicy
		var objects []mutating.Objects
		whole := true
		for _, r := range j.Compiled.Rules {
			if r.Policy != p || !r.Mutates() {
				continue
			}
			whole = whole && r.Target == translate.Native
			for _, i := range r.Mutating {
				if !slices.ContainsFunc(objects, func(o mutating.Objects) bool { return o.Policy == j.Compiled.Mutating[i].Policy }) {
					objects = append(objects, j.Compiled.Mutating[i])
				}
			}
		}
		for i, f := range j.Rules {
			if f.Rule.Policy == p && mutates(f) {
				one.places = append(one.places, i)
			}
		}
		deployed := c.Mutations.madeFrom(p, j.Compiled.Rules)
		if len(deployed.Policies) == 0 && (!whole || len(objects) == 0) {
			continue
		}
		source := interp.New([]*policy.Policy{p}, j.exceptions, world, interp.Limits{})
		if one.Changer, err = NewChanger(objects, source, c.Options()); err != nil {
			return nil, err
		}
		if len(deployed.Policies) > 0 {
			if one.natives, err = deployed.natives(c.Options()); err != nil {
				return nil, err
			}
			one.leftOut = deployed.leftOut()
		}
		out = append(out, one)
	}
	return out, nil
}

// compareChanges holds the native form of each policy to the interpreter, on the object as it
// is in the request, and notes in the opinions what came of it.
func (j *Judges) compareChanges(ctx context.Context, r *Request, opinions []Opinion) {
	for _, c := range j.changing {
		changed := j.changed(ctx, c, r)
		places := slices.DeleteFunc(slices.Clone(c.places), func(i int) bool { return opinions[i].Status == interp.None })
		if len(places) == 0 && changed.Different != "" {
			places = c.places[:1]
		}
		for _, i := range places {
			o := &opinions[i]
			o.Native, o.NativeMessage, o.Changes = changed.Native, changed.Message, &changed
			if changed.Different != "" {
				o.NativeMessage = "the object (-interpreter +native):\n" + changed.Different
			}
			o.Open = o.Rule.Rule.Policy.FailurePolicy == policy.Ignore
			o.Refused = changed.Native == apiserver.Error && !o.Open
		}
	}
}

// changed is what both make of the object of a request.
func (j *Judges) changed(ctx context.Context, c changingPolicy, r *Request) Changed {
	if c.natives.readsNamespace() && !j.knowsNamespace(r) {
		return Changed{Native: apiserver.Unknown}
	}
	return c.Change(ctx, j.asked(r.unnamed()))
}

// Changes are what the native form of each policy, and the interpreter, make of the object of
// a request, by the name of the policy; of those whose mutate rules are native, and ask for nothing that is
// not known.
func (j *Judges) Changes(ctx context.Context, r *Request) map[string]Changed {
	out := map[string]Changed{}
	for _, c := range j.changing {
		if changed := j.changed(ctx, c, r); changed.Native != apiserver.Unknown {
			out[j.Rules[c.places[0]].Rule.PolicyName()] = changed
		}
	}
	return out
}

// isChange tells of a rule that is native by what it changes.
func isChange(f *compile.Form) bool { return f.Rule.Mutates() && len(f.Rule.Mutating) > 0 }
