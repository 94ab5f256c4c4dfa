package report

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// mostViolators is how many examples are kept of the objects that violate a rule.
const mostViolators = 3

// Violations are the objects that violate a rule.
type Violations struct {
	Count int `json:"count"`
	// Unknown are those on which the rule cannot be evaluated here.
	Unknown int `json:"unknown"`
	// Why is the reason of the first of them.
	Why string `json:"why,omitempty"`
	// Lacking says what kind of reason that is.
	Lacking Ignorance `json:"-"`
	// Unread tells that there may be objects that were not read.
	Unread bool `json:"unread"`
	// Examples are the first few of them.
	Examples []Violator `json:"examples"`
}

// A Violator is an object that violates a rule.
type Violator struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Message   string `json:"message"`
}

// Ignorance is why nobody can tell whether an object violates a rule; empty where one can.
type Ignorance string

// The two kinds: of what a user can give, and of what objects that are there do not tell.
const (
	NotGiven Ignorance = "not given"
	NotTold  Ignorance = "not told"
)

// Add counts an object, which may violate the rule where that is unknown.
func (v *Violations) Add(o Violator, unknown Ignorance) {
	if unknown != "" {
		if v.Unknown++; v.Unknown == 1 {
			v.Why, v.Lacking = o.Message, unknown
		}
		return
	}
	v.Count++
	if len(v.Examples) < mostViolators {
		v.Examples = append(v.Examples, o)
	}
}

// String names the object.
func (o Violator) String() string {
	return o.Kind + " " + titleOf(o.Namespace, o.Name)
}

// String is how many there are, and examples.
func (v Violations) String() string {
	var out []string
	if v.Count > 0 {
		such := ": "
		if v.Count > len(v.Examples) {
			such = ", such as "
		}
		var names []string
		for _, o := range v.Examples {
			names = append(names, o.String())
		}
		out = append(out, doc.Count(v.Count, "object violates it", "objects violate it")+such+strings.Join(names, ", "))
	}
	if v.Unknown > 0 {
		why := v.Why
		if v.Lacking == NotGiven {
			why += " (--param FILE gives what rules look up)"
		}
		out = append(out, fmt.Sprintf("unknown for %s: %s", doc.Count(v.Unknown, "object", "objects"), why))
	}
	if v.Unread {
		out = append(out, "unknown for objects that you may not read")
	}
	return strings.Join(out, "; ")
}

// A Looked is which objects were put before the rules.
type Looked struct {
	Objects int `json:"objects"`
	// Excluded are those of namespaces that bindings leave out.
	Excluded int `json:"excluded"`
	// PassedOver are the resources that may not be read, and objects that cannot be
	// judged.
	PassedOver []string `json:"passedOver"`
}

// mostPassedOver is how many names of what is not judged are kept.
const mostPassedOver = 10

// PassOver notes what was not judged.
func (l *Looked) PassOver(name string) {
	switch n := len(l.PassedOver); {
	case n < mostPassedOver:
		l.PassedOver = append(l.PassedOver, name)
	case n == mostPassedOver:
		l.PassedOver = append(l.PassedOver, "others")
	}
}

// String is how many objects there were, and what is missing.
func (l Looked) String() string {
	s := doc.Count(l.Objects, "object", "objects") + " judged, as if created now"
	notJudged := l.PassedOver
	if l.Excluded > 0 {
		excluded := doc.Count(l.Excluded, "object", "objects") + " of namespaces that bindings leave out"
		notJudged = append([]string{excluded}, notJudged...)
	}
	if len(notJudged) > 0 {
		s += "; not judged: " + strings.Join(notJudged, ", ")
	}
	return s
}

// Violations is how often existing objects violate the policy, as far as it is known.
func (p PlannedPolicy) Violations() (count int) {
	for _, r := range p.Rules {
		if r.Violations != nil {
			count += r.Violations.Count
		}
	}
	return count
}

// violated is how often objects violate the policy; - where no rule was asked, and ?
// where that is not known of some.
func (p PlannedPolicy) violated() string {
	asked, unknown := false, false
	for _, r := range p.Rules {
		asked = asked || r.Violations != nil
		unknown = unknown || r.Violations != nil && (r.Violations.Unknown > 0 || r.Violations.Unread)
	}
	n := p.Violations()
	switch {
	case !asked:
		return "-"
	case unknown && n == 0:
		return "?"
	case unknown:
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

// violatedItems are the rules that objects violate, or may.
func (p Plan) violatedItems() (out []doc.Item) {
	for _, one := range p.Policies {
		for _, r := range one.Rules {
			if r.Violations != nil && (r.Violations.Count+r.Violations.Unknown > 0 || r.Violations.Unread) {
				out = append(out, doc.Item{Of: []string{titleOf(one.Namespace, one.Name), r.Rule}, Text: r.Violations.String()})
			}
		}
	}
	return out
}
