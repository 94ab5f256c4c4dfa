package court

import (
	"context"
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// An Opinion is what both judges say of one rule on one request.
type Opinion struct {
	Rule *Rule
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

// Compared tells whether both judges have been asked: the rule is native, and the
// interpreter knows its kind.
func (o Opinion) Compared() bool {
	return o.Rule.Target == translate.Native && o.Rule.Source != nil
}

// Agree tells whether the native outcome is what the interpreter's status asks
// for: a violation is denied, what errs is denied or errs, all else is admitted.
// Where there is nothing to compare, nobody disagrees.
func (o Opinion) Agree() bool {
	if !o.Compared() {
		return true
	}
	switch o.Status {
	case interp.Fail:
		return o.Native == vap.Deny
	case interp.Error:
		return o.Native == vap.Deny || o.Native == vap.Error
	}
	return o.Native != vap.Deny && o.Native != vap.Error
}

// Violated tells whether either judge finds a violation, or cannot decide.
func (o Opinion) Violated() bool {
	return o.Native == vap.Deny || o.Native == vap.Error || o.Status == interp.Fail || o.Status == interp.Error
}

// Hear asks both judges about a request. There is an opinion for each of the
// rules, in their order.
func (c *Court) Hear(ctx context.Context, r *Request) ([]Opinion, error) {
	out := make([]Opinion, len(c.Rules))
	for i, rule := range c.Rules {
		out[i] = Opinion{Rule: rule, Native: vap.NoMatch, Status: interp.None, Kyverno: interp.None}
	}
	verdicts, err := c.native.Review(ctx, r.native, r.NamespaceLabels)
	if err != nil {
		return nil, err
	}
	for _, v := range verdicts {
		c.note(out, v)
	}
	for _, b := range c.benches {
		b.hear(ctx, r, out)
	}
	return out, nil
}

// note keeps the gravest outcome of each rule over its objects and their bindings.
func (c *Court) note(out []Opinion, v vap.Verdict) {
	members := c.members[v.Policy]
	for i, m := range v.Members(c.texts[v.Policy]) {
		if i >= len(members) || members[i] < 0 {
			continue
		}
		o := &out[members[i]]
		if o.Rule.Target != translate.Native {
			continue
		}
		if graver(m.Outcome, o.Native) {
			o.Native, o.NativeMessage = m.Outcome, m.Message
		}
		o.Refused = o.Refused || v.Refused && (m.Outcome == vap.Deny || m.Outcome == vap.Error)
	}
}

// Ask puts the request before native policies that are no translation. The outcome
// is the gravest of all policies and bindings.
func (r *Request) Ask(ctx context.Context, judge *vap.Judge) (outcome vap.Outcome, message string, err error) {
	verdicts, err := judge.Review(ctx, r.native, r.NamespaceLabels)
	outcome = vap.NoMatch
	for _, v := range verdicts {
		if graver(v.Outcome, outcome) {
			outcome, message = v.Outcome, v.Message
		}
	}
	return outcome, message, err
}

// graver orders outcomes: what does not match, allows, errs, denies.
func graver(a, b vap.Outcome) bool {
	order := []vap.Outcome{vap.NoMatch, vap.Allow, vap.Error, vap.Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}

func (b bench) hear(ctx context.Context, r *Request, out []Opinion) {
	if b.policy.Validating != nil {
		return
	}
	seen := map[string]int{}
	for _, res := range b.interp.Judge(ctx, r.interp()) {
		places := b.rules[res.Rule]
		n := seen[res.Rule]
		if n >= len(places) {
			continue
		}
		seen[res.Rule]++
		o := &out[places[n]]
		o.Status, o.Kyverno, o.Message, o.Code = res.Status, res.Kyverno, res.Message, res.Code
	}
}
