package judge

import (
	"context"
	"slices"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// An Opinion is what both judges say of one rule on one request.
type Opinion struct {
	Rule *compile.Form
	// Native is the outcome of the translation. A rule that has none matches
	// nothing.
	Native        vap.Outcome
	NativeMessage string
	// Refused tells that the API server would refuse the request for the object
	// that the rule is part of.
	Refused bool
	// Status is the interpreter's, and Kyverno what it says Kyverno gives: another
	// one in the one place where kvap differs knowingly. Both are None where it has
	// nothing to say.
	Status, Kyverno interp.Status
	Message         string // the interpreter's
	// Code is set for what the interpreter does not support.
	Code diag.Code
}

// Compared tells whether both judges have been asked: the rule is native.
func (o Opinion) Compared() bool { return o.Rule.Rule.Target == translate.Native }

// Agree tells whether both judges give the same verdict. Where there is nothing to
// compare, nobody disagrees.
func (o Opinion) Agree() bool {
	return !o.Compared() || Same(o.Status, o.Native)
}

// Same tells whether a native outcome is what a status asks for: a violation is
// denied, what errs is denied or errs, and all else is admitted.
func Same(status interp.Status, native vap.Outcome) bool {
	switch status {
	case interp.Fail:
		return native == vap.Deny
	case interp.Error:
		return native == vap.Deny || native == vap.Error
	}
	return native != vap.Deny && native != vap.Error
}

// Violated tells whether either judge finds a violation, or cannot decide.
func (o Opinion) Violated() bool {
	return o.Native == vap.Deny || o.Native == vap.Error || o.Status == interp.Fail || o.Status == interp.Error
}

// Judge puts a request before both judges. There is an opinion for each of the
// rules, in their order.
func (j *Judges) Judge(ctx context.Context, r *Request) ([]Opinion, error) {
	out := make([]Opinion, len(j.Rules))
	for i, rule := range j.Rules {
		out[i] = Opinion{Rule: rule, Native: vap.NoMatch, Status: interp.None, Kyverno: interp.None}
	}
	verdicts, err := j.native.Review(ctx, r.native, r.NamespaceLabels)
	if err != nil {
		return nil, err
	}
	for _, v := range verdicts {
		j.members[v.Policy].note(v, out)
	}
	for _, in := range j.interpreters {
		in.note(ctx, r, out)
	}
	return out, nil
}

// note keeps the gravest outcome of each rule over its objects and their bindings.
func (m members) note(v vap.Verdict, out []Opinion) {
	for i, member := range v.Members(m.text) {
		if m.rules[i] < 0 {
			continue
		}
		o := &out[m.rules[i]]
		if member.Outcome.Graver(o.Native) {
			o.Native, o.NativeMessage = member.Outcome, member.Message
		}
		o.Refused = o.Refused || v.Refused && (member.Outcome == vap.Deny || member.Outcome == vap.Error)
	}
}

// note keeps what the interpreter says of the rules of its policy.
func (in interpreter) note(ctx context.Context, r *Request, out []Opinion) {
	seen := map[string]int{}
	for _, res := range in.Judge(ctx, r.interp()) {
		places := in.rules[res.Rule]
		if len(places) == 0 && in.policy.Validating != nil {
			in.noteWhole(res, out)
			continue
		}
		n := seen[res.Rule]
		if n >= len(places) {
			continue
		}
		seen[res.Rule]++
		out[places[n]].interpreted(res)
	}
}

// noteWhole keeps what is said of a form of a ValidatingPolicy that is not told
// apart, for it has no native form: of all of them, the gravest counts.
func (in interpreter) noteWhole(res interp.RuleResult, out []Opinion) {
	gravity := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Error, interp.Fail}
	for _, place := range in.rules[in.policy.Name] {
		if o := &out[place]; slices.Index(gravity, res.Status) > slices.Index(gravity, o.Status) {
			o.interpreted(res)
		}
	}
}

func (o *Opinion) interpreted(res interp.RuleResult) {
	o.Status, o.Kyverno, o.Message, o.Code = res.Status, res.Kyverno, res.Message, res.Code
}

// Ask puts the request before native policies that are no translation. The outcome
// is the gravest of all policies and bindings.
func (r *Request) Ask(ctx context.Context, judge *vap.Judge) (outcome vap.Outcome, message string, err error) {
	verdicts, err := judge.Review(ctx, r.native, r.NamespaceLabels)
	outcome = vap.NoMatch
	for _, v := range verdicts {
		if v.Outcome.Graver(outcome) {
			outcome, message = v.Outcome, v.Message
		}
	}
	return outcome, message, err
}
