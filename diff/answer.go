package diff

import (
	"reflect"
	"slices"
	"strings"
)

// An Aspect is in what two answers differ.
type Aspect string

// The aspects, the gravest first.
const (
	// Unpaired is of what only one of the sides has.
	Unpaired Aspect = "unpaired"
	// Verdict is a violation for one side, and none for the other.
	Verdict Aspect = "verdict"
	// Scope is a violation for one side, and a request that the other is not about.
	Scope Aspect = "scope"
	// Object is what mutations make of an object.
	Object Aspect = "object"
	// FailurePolicy is what follows from an error.
	FailurePolicy Aspect = "failurePolicy"
	// Action is what follows from a violation.
	Action Aspect = "action"
	// Message is what the user is told of it.
	Message Aspect = "message"
)

// Aspects are all of them.
func Aspects() []Aspect {
	return []Aspect{Unpaired, Verdict, Scope, Object, FailurePolicy, Action, Message}
}

// An Outcome is what a side says of a request.
type Outcome string

// The outcomes, from the lightest to the gravest.
const (
	Silent   Outcome = "not about it"
	Admits   Outcome = "admits"
	Errs     Outcome = "errs"
	Violated Outcome = "violated"
)

func (o Outcome) rank() int { return slices.Index([]Outcome{Silent, Admits, Errs, Violated}, o) }

// An Answer is what a side says of a request by some of its rules.
type Answer struct {
	Outcome Outcome
	// Open tells that an error admits, for the failure policy is Ignore.
	Open bool
	// Actions are what follows from a violation: Deny, Warn and Audit; nil where nobody said.
	Actions []string
	// Messages are those of what is violated or errs, and Words what of them the author wrote; nil
	// where that cannot be told.
	Messages, Words []string
	// made tells of a native policy that kvap made, which puts behind the words what they are about.
	made bool
	// tells is of a rule whose conditions have messages of their own, behind the rule's.
	tells bool
	// LeftOut tells that the bindings of a native policy name the request's namespace as one that
	// they leave out, and Written that the policy is none of an API server: what Kyverno leaves
	// out, its configuration says, so that the two are not compared there.
	LeftOut, Written bool
	// After is the object behind the mutations; nil where they leave it as it is.
	After map[string]any
}

// refuses tells of a violation, or an error that counts as one.
func (a Answer) refuses() bool { return a.Outcome == Violated || a.Outcome == Errs && !a.Open }

// gravest is the action that decides: what is denied is not also audited.
func (a Answer) gravest() string {
	for _, action := range []string{"Deny", "Warn", "Audit"} {
		if slices.Contains(a.Actions, action) {
			return action
		}
	}
	return ""
}

// with joins what another rule of the side says.
func (a Answer) with(b Answer) Answer {
	out := a
	switch {
	case b.refuses() && !a.refuses(), b.refuses() == a.refuses() && b.Outcome.rank() > a.Outcome.rank():
		out.Outcome, out.Open = b.Outcome, b.Open
	}
	// What is violated decides what follows, not what merely matches.
	switch {
	case b.refuses() == a.refuses():
		out.Actions = union(a.Actions, b.Actions)
	case b.refuses():
		out.Actions = b.Actions
	}
	out.Messages = union(a.Messages, b.Messages)
	out.Words, out.made, out.tells = union(a.Words, b.Words), a.made || b.made, a.tells || b.tells
	if b.After != nil {
		out.After = b.After
	}
	out.LeftOut, out.Written = a.LeftOut || b.LeftOut, a.Written || b.Written
	return out
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// leftOut tells that one side leaves out the request's namespace, where that of the other is up to
// Kyverno's configuration.
func leftOut(a, b Answer) bool {
	return a.LeftOut && a.Outcome == Silent && b.Written || b.LeftOut && b.Outcome == Silent && a.Written
}

// differ says in what two answers about one request differ; change tells that it is an update.
func differ(a, b Answer, change bool) (aspects []Aspect) {
	x, y := a, b // x has the violation, where only one has
	if b.refuses() && !a.refuses() {
		x, y = b, a
	}
	switch {
	case leftOut(a, b):
	case a.refuses() != b.refuses():
		switch {
		case y.Outcome == Errs && x.Outcome == Errs:
			aspects = append(aspects, FailurePolicy)
		case y.Outcome == Silent:
			aspects = append(aspects, Scope)
		case change && x.gravest() != "Deny" && y.gravest() == "Deny":
			// What is denied spares what was wrong before, and what is only told of does not.
			aspects = append(aspects, Action)
		default:
			aspects = append(aspects, Verdict)
		}
	case a.refuses():
		if p, q := a.gravest(), b.gravest(); p != q && p != "" && q != "" {
			aspects = append(aspects, Action)
		}
		if a.Outcome == Violated && b.Outcome == Violated && !sameWords(a, b) {
			aspects = append(aspects, Message)
		}
	}
	if !reflect.DeepEqual(a.After, b.After) {
		aspects = append(aspects, Object)
	}
	return aspects
}

// sameWords tells whether the author's words are the same, or are not known.
func sameWords(a, b Answer) bool {
	if len(a.Words) == 0 || len(b.Words) == 0 || (a.tells || b.tells) && !(a.Written && b.Written) {
		return true
	}
	detailed := func(made bool, long, short string) bool {
		details, ok := strings.CutPrefix(long, short)
		return made && ok && strings.HasPrefix(strings.TrimPrefix(details, "."), " (") && strings.HasSuffix(details, ")")
	}
	return slices.EqualFunc(a.Words, b.Words, func(x, y string) bool {
		return x == y || detailed(a.made, x, y) || detailed(b.made, y, x)
	})
}

// Text is the messages in one.
func (a Answer) Text() string { return strings.Join(a.Messages, "; ") }
