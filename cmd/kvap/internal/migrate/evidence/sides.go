package evidence

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// A side is what one of both says of a rule on a request.
type side struct {
	violated bool
	message  string
	unknown  string // why it is not known what it says
	silent   bool   // it has nothing to do with the request
}

// noteEvent compares both sides on one rule.
func (l *Ledger) noteEvent(place int, e *event, at string) {
	ours, theirs := l.ours(place, e), l.theirs(place, e)
	t := l.rows[place].of(Audit)
	switch {
	case ours.silent && !theirs.violated, theirs.silent && !ours.violated:
		return
	case ours.unknown != "" && (theirs.violated || ours.violated):
		t.cannotTell(ours.unknown)
	case theirs.unknown != "" && (theirs.violated || ours.violated):
		t.cannotTell(theirs.unknown)
	case ours.unknown != "" || theirs.unknown != "":
		return
	case ours.violated == theirs.violated:
		t.agree(ours.violated)
	case judge.Asks(l.rows[place].form):
		t.cannotTell(askedTwice)
	default:
		t.disagree(true, func() report.Disagreement {
			return report.Disagreement{Subject: e.subject(), At: at, Sides: []report.Voice{
				ours.voice(l.rows[place].title()), theirs.voice("Kyverno's webhook"),
			}}
		})
	}
}

// theirs is what Kyverno says of a rule on a request.
func (l *Ledger) theirs(place int, e *event) side {
	found, times := e.theirs(l.rows[place]), l.Times[l.rows[place].form.Rule.PolicyName()]
	switch {
	case found.violated:
	case times.Never != "":
		found.unknown = times.Never
	case e.Received.Before(times.Kyverno):
		found.unknown = "Kyverno did not have the policy, or another one, at that time"
	}
	return found
}

func (s side) voice(who string) report.Voice {
	v := report.Voice{Who: who, Says: "admits", Message: s.message}
	if s.violated {
		v.Says = "violated"
	}
	return v
}

// title is what takes Kyverno's place.
func (r *row) title() string {
	if len(r.form.Places) > 0 || r.form.Rule.Target == translate.Native {
		return "native policy"
	}
	return "kvap's webhook"
}

// ours is what takes Kyverno's place on a request: native policies, or kvap's webhook.
func (l *Ledger) ours(place int, e *event) side {
	found := side{silent: true}
	for _, n := range l.natives {
		if !n.judges(place, e.ObjectRef.Resource) || !n.about(e) {
			continue
		}
		found.silent = false
		switch one := n.says(place, e); {
		case one.violated:
			return one
		case one.unknown != "":
			found.unknown = one.unknown
		}
	}
	if !found.silent {
		return found
	}
	f := l.rows[place].form
	for _, w := range e.webhook {
		if w.Policy == f.Rule.PolicyName() && w.Rule == f.Name {
			return w.says(f)
		}
	}
	switch {
	case e.passedOver(".webhook.kvap.dev"):
		return side{unknown: "kvap's webhook did not answer"}
	case l.native(place): // but not asked about such a request
	case f.Rule.Target == translate.Native:
		return side{unknown: "no native policy that was made from the rule is given"}
	case !l.webhook:
		return side{unknown: "kvap's webhook is not heard of in the log"}
	case e.Received.Before(l.Times[f.Rule.PolicyName()].Webhook):
		return side{unknown: "kvap's webhook did not judge by the policy, or by another one, at that time"}
	}
	return side{silent: true}
}

// couldNotAsk is why an error is held against nobody: who is asked may answer the next time, and
// what is watched may be read by then.
const couldNotAsk = "kvap's webhook could not judge a rule that asks for something else"

// askedTwice is why two verdicts are held against nobody. Kyverno asks the API server, and kvap's
// webhook answers from what it watches, which is late by milliseconds: of two Ingresses that are
// made one after the other, a rule that lists them sees the first, or does not. No log tells which:
// each API server has one of its own.
const askedTwice = "each side asks for what the rule reads at its own moment, and may get another answer"

// says is what follows from a finding of kvap's webhook. What it cannot judge, the failure policy
// decides.
func (w webhookFinding) says(f *compile.Form) side {
	if w.Status == interp.Error && judge.Asks(f) {
		return side{violated: true, unknown: couldNotAsk}
	}
	return side{violated: w.Status != interp.Error || f.Rule.Policy.FailurePolicy == policy.Fail, message: w.Message}
}

// native tells whether some native policy judges by a rule.
func (l *Ledger) native(place int) bool {
	for _, n := range l.natives {
		if slices.Contains(n.places, place) {
			return true
		}
	}
	return false
}

// judges tells whether the policy judges by a rule what is of a resource.
func (n auditNative) judges(place int, resource string) bool {
	for i, m := range n.text.Members {
		if n.places[i] == place && m.IsAbout(resource) {
			return true
		}
	}
	return false
}

// says is what a native policy found of one of its rules.
func (n auditNative) says(place int, e *event) side {
	if slices.Contains(n.LeftOut, e.ObjectRef.Namespace) {
		return side{unknown: "the bindings leave out the namespace"}
	}
	if e.Received.Before(n.Since) {
		return side{unknown: "the native policy was not there, or another one, at that time"}
	}
	for _, f := range e.failures {
		if f.Policy != n.Policy.Name {
			continue
		}
		if i := f.ExpressionIndex; i >= 0 && i < len(n.text.Validations) && slices.ContainsFunc(n.text.Validations[i].Members(), func(m int) bool { return n.places[m] == place }) {
			return side{violated: true, message: f.Message}
		}
		if slices.ContainsFunc(n.text.Named(f.Message), func(m int) bool { return n.places[m] == place }) {
			return side{violated: true, message: f.Message}
		}
	}
	if !e.whole {
		return side{unknown: "the log names one violation of a request, and it is of another rule"}
	}
	return side{}
}

// about tells whether a native policy is asked about such requests at all.
func (n auditNative) about(e *event) bool {
	m := n.Policy.Spec.MatchConstraints
	return m != nil && slices.ContainsFunc(m.ResourceRules, e.fits) && !slices.ContainsFunc(m.ExcludeResourceRules, e.fits)
}

// fits tells whether a request is one that a resource rule names.
func (e *event) fits(r admissionregistrationv1.NamedRuleWithOperations) bool {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	asked := slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == "*" || slices.Contains(e.Operations(), string(o))
	})
	all := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	named := slices.ContainsFunc(r.Resources, func(pattern string) bool {
		kind, sub, _ := strings.Cut(resource, "/")
		patternKind, patternSub, has := strings.Cut(pattern, "/")
		return pattern == "*/*" || (patternKind == "*" || patternKind == kind) && (has && patternSub == "*" || patternSub == sub)
	})
	return asked && named && all(r.APIGroups, e.ObjectRef.APIGroup) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, e.ObjectRef.Name))
}

// theirs is what Kyverno said of a rule. It denies with all that an enforced rule
// found; of audited rules the log knows nothing.
func (e *event) theirs(r *row) side {
	p := r.form.Rule.Policy
	if p.Namespaced() && p.Namespace != e.ObjectRef.Namespace {
		return side{silent: true}
	}
	yes, known := enforced(r.form)
	switch {
	case e.denied != nil:
		if message, ok := e.denied.rules[p.Name][r.form.Name]; ok {
			return side{violated: true, message: message}
		}
		if !covers(e.denied.webhook, p) {
			return side{unknown: "Kyverno denied the request by another of its webhooks"}
		}
	case e.Refused():
		return side{unknown: "the request was refused by somebody else"}
	case e.passedOver("kyverno.svc"):
		return side{unknown: "Kyverno's webhook did not answer"}
	}
	switch {
	case !known:
		return side{unknown: "the action of the rule depends on the namespace"}
	case !yes:
		return side{unknown: "Kyverno only audits the rule, of which the log says nothing"}
	}
	return side{}
}

// passedOver tells that a validating webhook was passed over because it did not answer: one
// with a part in its name.
func (e *event) passedOver(part string) bool {
	for key, webhook := range e.Annotations {
		if strings.HasPrefix(key, "failed-open.validating.webhook.admission.k8s.io/") && strings.Contains(webhook, part) {
			return true
		}
	}
	return false
}

// covers tells whether one of Kyverno's webhooks for resources judges by a policy for certain.
// Its name has the kind of the policies in front, and behind it their failure policy:
//
//	validate.kyverno.svc-fail                       ClusterPolicies and Policies
//	mpol.validate.kyverno.svc-ignore                MutatingPolicies, though it changes objects
//	mutate.kyverno.svc-fail-finegrained-shop-teams  the Policy teams of the namespace shop
//
// Policies in CEL with other selectors than the rest have webhooks of which the name does not
// say whose they are.
func covers(webhook string, p *policy.Policy) bool {
	if ofKind(webhook) != prefixOf(p) {
		return false
	}
	if _, name, ok := strings.Cut(webhook, "-finegrained-"); ok {
		return name == strings.TrimPrefix(p.Within()+"-"+p.Name, "-")
	}
	mode := "-fail"
	if p.FailurePolicy == policy.Ignore {
		mode = "-ignore"
	}
	return !standsAlone(p) && strings.HasSuffix(webhook, mode)
}

// ofKind is what stands in front of the name of a webhook.
func ofKind(webhook string) string {
	kind, _, _ := strings.Cut(webhook, "kyverno.svc")
	return strings.TrimSuffix(strings.TrimSuffix(kind, "validate."), "mutate.")
}

// prefixOf is what stands in front of the names of the webhooks for a kind.
func prefixOf(p *policy.Policy) string {
	return map[string]string{
		"ValidatingPolicy": "vpol.", "NamespacedValidatingPolicy": "nvpol.", "MutatingPolicy": "mpol.", "NamespacedMutatingPolicy": "nmpol.",
		"ImageValidatingPolicy": "ivpol.", "NamespacedImageValidatingPolicy": "ivpol.",
	}[p.Kind]
}

// standsAlone tells of a policy that Kyverno has a webhook of its own for, or may have: that of
// one in CEL depends on whether the API server can read its conditions.
func standsAlone(p *policy.Policy) bool {
	conditions := p.MatchConditions
	switch {
	case p.Validating != nil:
		conditions = p.Validating.MatchConditions
	case p.Mutating != nil:
		conditions = p.Mutating.MatchConditions
	}
	about := p.MatchConstraints()
	return len(conditions) > 0 || about != nil && about.MatchPolicy == "Exact" ||
		p.InCEL() && p.Source.Get("spec").Get("webhookConfiguration").Get("timeoutSeconds") != nil
}

// A denial is what Kyverno answers to a request that it does not admit.
type denial struct {
	webhook string                       // its name
	rules   map[string]map[string]string // messages, by policy and rule
}

// parseDenial reads the message of a denial; nil where it is none of Kyverno's.
//
//	admission webhook "validate.kyverno.svc-fail" denied the request:
//
//	resource Pod/default/web was blocked due to the following policies
//
//	policy:
//	  rule: message
func parseDenial(message string) *denial {
	_, rest, ok := strings.Cut(message, `admission webhook "`)
	if !ok {
		return nil
	}
	name, rest, ok := strings.Cut(rest, `" denied the request:`)
	if !ok || !strings.Contains(name, "validate.kyverno.svc") {
		return nil
	}
	_, body, ok := strings.Cut(rest, "due to the following policies")
	if !ok {
		return nil
	}
	d := &denial{webhook: name}
	if err := yaml.Unmarshal([]byte(strings.TrimLeft(body, " ")), &d.rules); err != nil || len(d.rules) == 0 {
		return nil
	}
	return d
}
