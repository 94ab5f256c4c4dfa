package judge

import (
	"context"
	"slices"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// An Opinion is what both judges say of one rule on one request.
type Opinion struct {
	Rule *compile.Form
	// Native is the outcome of the translation. A rule that has none matches
	// nothing.
	Native        apiserver.Outcome
	NativeMessage string
	// Refused tells that the API server would refuse the request for the object
	// that the rule is part of.
	Refused bool
	// Status is the interpreter's, and Kyverno what it says Kyverno gives: another one where
	// kvap differs knowingly, by the Deviations. Both are None where it has nothing to say.
	Status, Kyverno interp.Status
	Deviations      []int
	Message         string // the interpreter's
	// Exceptions are those that made the rule skip, as namespace/name, and Properties what reports
	// tell of the result besides; both are the interpreter's.
	Exceptions []string
	Properties map[string]string
	// Code is set for what the interpreter does not support.
	Code diag.Code
	// Compared tells whether both judges have been asked: the rule is native, and its
	// source is there.
	Compared bool
	// Open tells that an error of the native policy admits, for its failure policy is Ignore.
	Open bool
	// Lacks is what would have to be given for the judges to tell; nil where they can.
	Lacks *Lookup
	// LeftOut tells that the bindings of deployed objects leave out the request's
	// namespace, so that there is nothing to compare.
	LeftOut bool
	// Mutation is what a mutate rule did; nil before Mutate. Changes is what the rules of its
	// policy made of the object, natively too; nil where they are not native, or do nothing.
	Mutation *interp.RuleMutation
	Changes  *Changed
}

// Agree tells whether both judges give the same verdict. Where there is nothing to
// compare, nobody disagrees.
func (o Opinion) Agree() bool {
	switch {
	case !o.Compared || o.LeftOut && o.Native == apiserver.NoMatch:
		return true
	case o.Native == apiserver.Unknown || o.Status == interp.Unknown:
		return true
	case o.Rule.Rule.Mutates():
		return o.Changes == nil || o.Changes.Different == ""
	}
	ignored := o.Status == interp.Error && o.Rule.Rule.Policy.FailurePolicy == policy.Ignore
	return Same(o.Status, o.Native) && !(ignored && o.Native == apiserver.Deny)
}

// Same tells whether a native outcome is what a status asks for: a violation is
// denied, what errs is denied or errs, and all else is admitted.
func Same(status interp.Status, native apiserver.Outcome) bool {
	switch status {
	case interp.Fail:
		return native == apiserver.Deny
	case interp.Error:
		return native == apiserver.Deny || native == apiserver.Error
	}
	return native != apiserver.Deny && native != apiserver.Error
}

// Violated tells whether either judge finds a violation, or errs where that denies: where the
// failure policy is not Ignore.
func (o Opinion) Violated() bool {
	return o.Native == apiserver.Deny || o.Status == interp.Fail ||
		o.Native == apiserver.Error && !o.Open || o.Status == interp.Error && o.Rule.Rule.Policy.FailurePolicy != policy.Ignore
}

// Judge puts a request before both judges. There is an opinion for each of the
// rules, in their order.
func (j *Judges) Judge(ctx context.Context, r *Request) ([]Opinion, error) {
	out := make([]Opinion, len(j.Rules))
	for i, rule := range j.Rules {
		out[i] = Opinion{Rule: rule, Native: apiserver.NoMatch, Status: interp.None, Kyverno: interp.None, Compared: j.standings[i].compared}
	}
	request, verified := j.asked(r), &interp.Verified{}
	natives := j.natives
	if r.document {
		natives = nil
	}
	for _, n := range natives {
		verdicts, err := r.Review(ctx, n.Judge)
		if err != nil {
			return nil, err
		}
		var undecided map[bound]apiserver.Verdict
		if request.NamespaceUnknown {
			if undecided, err = n.undecided(ctx, r); err != nil {
				return nil, err
			}
		}
		for _, v := range verdicts {
			if selected, is := undecided[bound{v.Policy, v.Binding}]; is {
				n.members[v.Policy].noteUndecided(selected, out)
			} else {
				n.members[v.Policy].note(v, r.native.Namespace, j.knowsNamespace(r), out)
			}
		}
	}
	// What one policy has verified of images counts for the others.
	request.Verified = verified
	results := make([][]interp.RuleResult, len(j.interpreters))
	for i, in := range j.interpreters {
		results[i] = in.Judge(ctx, request)
	}
	for i, in := range j.interpreters {
		verified.Settle(results[i])
		in.note(results[i], out)
	}
	j.sumUp(out)
	j.forget(r, out)
	return out, nil
}

// note keeps the gravest outcome of each rule over its objects and their bindings.
// Of one that reads what is not known of the namespace there is none.
func (m members) note(v apiserver.Verdict, namespace string, known bool, out []Opinion) {
	for i, member := range v.Members(m.text) {
		if m.rules[i] < 0 {
			continue
		}
		if !known && m.readNamespace[i] && member.Outcome != apiserver.NoMatch {
			member.Outcome = apiserver.Unknown
		}
		o := &out[m.rules[i]]
		o.LeftOut = o.LeftOut || slices.Contains(m.leftOut, namespace)
		if member.Outcome.Graver(o.Native) {
			o.Native, o.NativeMessage, o.Open = member.Outcome, member.Message, m.open
		}
		o.Refused = o.Refused || v.Refused && (member.Outcome == apiserver.Deny || member.Outcome == apiserver.Error)
	}
}

// noteUndecided notes that nobody knows the outcome of rules that are about a request where its
// namespace has some labels.
func (m members) noteUndecided(v apiserver.Verdict, out []Opinion) {
	for i, member := range v.Members(m.text) {
		if m.rules[i] < 0 || member.Outcome == apiserver.NoMatch {
			continue
		}
		if o := &out[m.rules[i]]; apiserver.Unknown.Graver(o.Native) {
			o.Native = apiserver.Unknown
		}
	}
}

// note keeps what the interpreter says of the rules of its policy.
func (in interpreter) note(results []interp.RuleResult, out []Opinion) {
	seen := map[string]int{}
	for _, res := range results {
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
	for _, place := range in.rules[in.policy.Name] {
		if o := &out[place]; graver(res.Status, o.Status) {
			o.interpreted(res)
		}
	}
}

// graver tells whether a status weighs more than another one.
func graver(s, than interp.Status) bool {
	gravity := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Unknown, interp.Error, interp.Fail}
	return slices.Index(gravity, s) > slices.Index(gravity, than)
}

func (o *Opinion) interpreted(res interp.RuleResult) {
	o.Status, o.Kyverno, o.Message, o.Code, o.Deviations = res.Status, res.Kyverno, res.Message, res.Code, res.Deviations
	o.Exceptions, o.Properties = res.Exceptions, res.Properties
	if o.Status == interp.Fail && o.Kyverno == interp.Error && len(o.Deviations) == 0 {
		o.Deviations = []int{2}
	}
}
