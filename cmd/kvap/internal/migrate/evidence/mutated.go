package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json" // whole numbers are not fractions

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/vap/apiserver"
)

// Where an API server notes what mutating webhooks were asked, and what they changed: the first
// at any level of the log, also where there was no answer, of which the last tells, and the
// second where it has the requests too.
const (
	mutationKey   = "mutation.webhook.admission.k8s.io/"
	patchKey      = "patch.webhook.admission.k8s.io/"
	passedOverKey = "failed-open." + mutationKey
)

// A call is one call of a mutating webhook, as the log has it.
type call struct {
	round, index int
	Webhook      string           `json:"webhook"`
	Mutated      bool             `json:"mutated"`
	Patch        *json.RawMessage `json:"patch"`
	// unclear is why what Kyverno made of the object is not known; empty where it is.
	unclear string
}

const (
	unanswered = "Kyverno's webhook did not answer, or refused the request"
	filledIn   = "what API servers fill in before they ask webhooks is not in the log, and the object is another one without it"
)

// calls are the calls of mutating webhooks, in their order.
func (e *event) calls() ([]call, error) {
	found := map[string]call{}
	for key, text := range e.Annotations {
		at := key[strings.LastIndex(key, "/")+1:]
		prefix := strings.TrimSuffix(key, at)
		if !slices.Contains([]string{mutationKey, patchKey, passedOverKey}, prefix) {
			continue
		}
		one := found[at]
		if _, err := fmt.Sscanf(at, "round_%d_index_%d", &one.round, &one.index); err != nil {
			return nil, fmt.Errorf("the annotation %s is not what an API server writes: %w", key, err)
		}
		if prefix == passedOverKey {
			one.unclear = unanswered
		} else if err := json.Unmarshal([]byte(text), &one); err != nil {
			return nil, fmt.Errorf("the annotation %s is not what an API server writes: %w", key, err)
		}
		found[at] = one
	}
	var out []call
	for _, one := range found {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b call) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.index, b.index)) })
	if last := len(out) - 1; last >= 0 && e.Refused() && !out[last].Mutated { // it may be why
		out[last].unclear = unanswered
	}
	return out, nil
}

// kyverno tells whether a call was of one of Kyverno's webhooks for resources.
func (c call) kyverno() bool {
	return slices.ContainsFunc([]string{"mutate.kyverno.svc", "mpol.validate.kyverno.svc", "nmpol.validate.kyverno.svc"}, func(name string) bool {
		return strings.HasPrefix(c.Webhook, name)
	})
}

// noteMutations holds what Kyverno's webhook made of an object against what the rules
// make of the same object. Only of an object that is created does the log have the whole.
func (l *Ledger) noteMutations(ctx context.Context, e *event, at string) error {
	if !slices.ContainsFunc(l.rows, func(r *row) bool { return r.form.Rule.Mutates() }) || e.Verb != "create" || e.ObjectRef.Subresource != "" {
		return nil
	}
	calls, err := e.calls()
	if err != nil || !slices.ContainsFunc(calls, call.kyverno) || len(e.RequestObject) == 0 {
		return err
	}
	exchanges, err := replay(calls, e.RequestObject)
	if err != nil && e.ObjectRef.Resource == "pods" {
		exchanges, err = replay(calls, tolerating(e.RequestObject))
	}
	if err != nil {
		exchanges = nil
		for _, c := range calls {
			c.unclear = filledIn
			exchanges = append(exchanges, exchange{call: c, given: e.RequestObject, made: e.RequestObject})
		}
	}
	for _, x := range exchanges {
		if x.kyverno() {
			if err := l.noteExchange(ctx, e, x, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// An exchange is a call, with the object that the webhook was given and the one that it made.
type exchange struct {
	call
	given, made []byte
}

// replay begins with an object, up to a call of which the log does not say what it changed. An
// error is of a change that is none of this object.
func replay(calls []call, object []byte) (exchanges []exchange, err error) {
	for _, c := range calls {
		if c.Mutated && c.Patch == nil {
			break
		}
		given := object
		if c.Patch != nil {
			patch, err := jsonpatch.DecodePatch(*c.Patch)
			if err == nil {
				object, err = patch.Apply(object)
			}
			if err != nil {
				return nil, err
			}
		}
		exchanges = append(exchanges, exchange{call: c, given: given, made: object})
	}
	return exchanges, nil
}

// tolerating is a Pod with the tolerations that API servers add to each that is created, by the
// admission plugin DefaultTolerationSeconds, which they have unless they are told otherwise.
func tolerating(pod []byte) []byte {
	var o map[string]any
	if utiljson.Unmarshal(pod, &o) != nil {
		return pod
	}
	list, _, _ := unstructured.NestedSlice(o, "spec", "tolerations")
	for _, taint := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		if !slices.ContainsFunc(list, func(one any) bool {
			t, _ := one.(map[string]any)
			return (t["key"] == nil || t["key"] == taint) && (t["effect"] == nil || t["effect"] == "NoExecute")
		}) {
			list = append(list, map[string]any{"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
		}
	}
	if unstructured.SetNestedSlice(o, list, "spec", "tolerations") != nil {
		return pod
	}
	out, _ := json.Marshal(o) // it came as JSON
	return out
}

// changedBy are the judges of what one of Kyverno's webhooks changes: by the policies that it
// has, and no others.
func (l *Ledger) changedBy(webhook string) *judge.Judges {
	if l.changing[webhook] == nil {
		l.changing[webhook] = l.judges.ChangingBy(func(p *policy.Policy) bool { return covers(webhook, p) })
	}
	return l.changing[webhook]
}

// noteExchange compares one call of one of Kyverno's webhooks: given an object, it made another.
func (l *Ledger) noteExchange(ctx context.Context, e *event, x exchange, at string) error {
	request, err := e.request(x.given)
	if err != nil {
		return err
	}
	var theirs map[string]any
	if err := utiljson.Unmarshal(x.made, &theirs); err != nil {
		return err
	}
	opinions := make([]judge.Opinion, len(l.rows))
	for i, r := range l.rows {
		opinions[i] = judge.Opinion{Rule: r.form, Native: apiserver.NoMatch, Status: interp.None, Kyverno: interp.None}
	}
	ours := l.changedBy(x.Webhook).Mutate(ctx, request, opinions)
	if ours == nil {
		return nil
	}
	m := mutation{ours: ours, theirs: theirs, all: l.Whole, hidden: e.ObjectRef.Resource == "secrets"}
	// What was filled in on both sides does not matter: the object in front of the rules counts.
	m.theirs = m.transplant(x.given)
	for i, r := range l.rows {
		switch p := r.form.Rule.Policy; {
		case !r.form.Rule.Mutates():
		case !covers(x.Webhook, p):
			m.all = m.all && prefixOf(p) != ofKind(x.Webhook) // it may have it all the same
		case opinions[i].Mutation != nil:
			m.explained = append(m.explained, paths(opinions[i].Mutation.Patch())...)
		}
	}
	for i, r := range l.rows {
		switch o := opinions[i]; {
		case !r.form.Rule.Mutates() || !covers(x.Webhook, r.form.Rule.Policy) || o.Mutation == nil:
		case x.unclear == "":
			m.note(r.of(Audit), o, e.subject(), at)
		case o.Status != interp.None:
			r.of(Audit).cannotTell(x.unclear)
		}
	}
	return nil
}

// request is what Kyverno's webhook was asked, as far as the log has it.
func (e *event) request(object []byte) (*judge.Request, error) {
	asked, err := e.Created(object)
	if err != nil {
		return nil, err
	}
	r, err := judge.NewRequest(asked)
	if err == nil {
		err = r.Complete()
	}
	return r, err
}

// A mutation is what both sides made of one object.
type mutation struct {
	ours      *interp.MutationResult
	theirs    map[string]any
	explained []string // what our rules changed
	all       bool     // all rules by which Kyverno may have changed it are compared
	hidden    bool     // values are not to be told
}

// transplant is the object that Kyverno made, with what the API server filled into ours
// before the rules saw it.
func (m mutation) transplant(given []byte) map[string]any {
	var before map[string]any
	if utiljson.Unmarshal(given, &before) != nil {
		return m.theirs
	}
	filled := (&interp.MutationResult{Before: before, After: m.ours.Before}).Patch()
	if len(filled) == 0 {
		return m.theirs
	}
	text, _ := json.Marshal(filled)     // it came as JSON
	object, _ := json.Marshal(m.theirs) // as above
	patch, err := jsonpatch.DecodePatch(text)
	if err == nil {
		object, err = patch.Apply(object)
	}
	var out map[string]any
	if err != nil || utiljson.Unmarshal(object, &out) != nil {
		return m.theirs
	}
	return out
}

// note compares one rule: all that it changed has to be what Kyverno made of it, and
// where it changed nothing, Kyverno may have changed nothing that no rule explains.
func (m mutation) note(t *tally, o judge.Opinion, subject, at string) {
	patch := o.Mutation.Patch()
	differ := func(path, ours, theirs string) {
		t.disagree(len(patch) > 0, func() report.Disagreement {
			return report.Disagreement{Subject: subject, At: at, Sides: []report.Voice{
				{Who: "Kyverno's rule, interpreted", Says: ours, Message: path}, {Who: "Kyverno's webhook", Says: theirs, Message: path},
			}}
		})
	}
	if o.Status == interp.Error || o.Status == interp.Unknown {
		t.cannotTell(notAtHand)
		return
	}
	for _, path := range paths(patch) {
		ours, theirs := m.at(m.ours.After, path), m.at(m.theirs, path)
		if ours != theirs && m.at(o.Mutation.After, path) != theirs {
			differ(path, "makes it "+m.told(ours), "made it "+m.told(theirs))
			return
		}
	}
	path := m.unexplained()
	switch {
	case len(patch) > 0:
		t.agree(true)
	case path == "" && o.Status == interp.None:
	case path == "":
		t.agree(false)
	case m.all:
		differ(path, "leaves it "+m.told(m.at(m.ours.After, path)), "made it "+m.told(m.at(m.theirs, path)))
	case o.Status != interp.None:
		t.cannotTell("Kyverno's webhook changed something else, by rules that are not among the compared")
	}
}

// unexplained is what Kyverno changed, and none of the rules; "" where there is nothing.
func (m mutation) unexplained() string {
	for _, path := range paths((&interp.MutationResult{Before: m.ours.After, After: m.theirs}).Patch()) {
		if !slices.ContainsFunc(m.explained, func(ours string) bool {
			return ours == path || strings.HasPrefix(path, ours+"/") || strings.HasPrefix(ours, path+"/")
		}) {
			return path
		}
	}
	return ""
}

func paths(patch []interp.PatchOperation) (out []string) {
	for _, op := range patch {
		out = append(out, op.Path)
	}
	return out
}

// at is what an object has at a path, in words.
func (m mutation) at(object map[string]any, path string) string {
	var v any = object
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err != nil || i < 0 || i >= len(in) {
				return empty
			}
			v = in[i]
		default:
			return empty
		}
	}
	data, err := json.Marshal(v)
	if v == nil || err != nil {
		return empty
	}
	return string(data)
}

// told is a value as it may be told.
func (m mutation) told(value string) string {
	const most = 200
	switch {
	case value == empty:
		return value
	case m.hidden:
		return "a value"
	}
	return doc.Cut(value, most)
}

// empty is what is said of a path at which there is nothing.
const empty = "empty"

// noteChange holds what the native form of a policy makes of the object of a request against what
// Kyverno's webhook makes of it by the rules of the policy, which the interpreter does.
func (l *Ledger) noteChange(place int, j judged, o judge.Opinion) {
	c, t := o.Changes, l.rows[place].of(j.Source)
	switch {
	case o.Status == interp.None && c.Different == "":
	case c.LeftOut && c.Native == apiserver.NoMatch:
		t.cannotTell("the bindings leave out the namespace")
	case o.Native == apiserver.Unknown:
		t.cannotTell(o.NativeMessage)
	case c.Different == "":
		t.agree(c.Changed)
	case judge.Lacks(o, l.Known):
		t.cannotTell(notAtHand)
	default:
		t.disagree(c.Changed, func() report.Disagreement {
			ours, theirs := changeSides(c, j.request)
			return report.Disagreement{Subject: j.Subject, At: j.At, Sides: []report.Voice{ours, theirs}, Request: line(j.request)}
		})
	}
}

// changeSides are what both made of an object: at the first path where the two differ, or that one
// of them is an error.
func changeSides(c *judge.Changed, r *judge.Request) (ours, theirs report.Voice) {
	ours, theirs = report.Voice{Who: "the native policies"}, report.Voice{Who: "Kyverno's rules, interpreted"}
	resource, _ := r.Admission()["resource"].(map[string]any)
	m := mutation{hidden: resource["resource"] == "secrets"}
	paths := c.Paths()
	switch {
	case c.Native == apiserver.Error:
		ours.Says, ours.Message = "err", c.Message
		theirs.Says = "make an object of it"
	case len(paths) == 0:
		ours.Says, theirs.Says, theirs.Message = "make an object of it", "err", c.Different
	default:
		ours.Message, theirs.Message = paths[0], paths[0]
		ours.Says = "make it " + m.told(m.at(c.Made, paths[0]))
		theirs.Says = "make it " + m.told(m.at(c.Interpreted, paths[0]))
	}
	return ours, theirs
}
