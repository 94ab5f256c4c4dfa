package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// A Target is the place where a rule is enforced.
type Target string

// The targets.
const (
	Native      Target = "native"      // by the API server itself
	Webhook     Target = "webhook"     // by the embedded webhook
	Unsupported Target = "unsupported" // nowhere
	// The targets of --to kyverno.
	CEL  Target = "cel"  // by a policy of Kyverno's kinds in CEL
	Left Target = "left" // by Kyverno, as it is
)

// A Conversion is what a run of convert did.
type Conversion struct {
	Policies    []Policy     `json:"policies"`
	Totals      Totals       `json:"totals"`
	Diagnostics []Diagnostic `json:"diagnostics"`
	// ExcludedNamespaces are those in which no binding counts.
	ExcludedNamespaces []string `json:"excludedNamespaces"`
	// Meets is how many policy objects requests meet, the most first.
	Meets []Meeting `json:"meets"`
}

// MeetingsShown is how many meetings a summary shows.
const MeetingsShown = 3

// A Meeting is how many policy objects a request on a resource meets at most.
type Meeting struct {
	Group     string `json:"group"`
	Resource  string `json:"resource"`
	Objects   int    `json:"objects"`
	WithMatch int    `json:"withMatch"` // as many as --pack match would come to
}

// A Policy is one source policy.
type Policy struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	File      string `json:"file"`
	Rules     []Rule `json:"rules"`
}

// A Rule is one rule as written in the source.
type Rule struct {
	Name    string      `json:"rule"`
	Type    string      `json:"type"` // validate, mutate, generate, verifyImages; cleanup for a cleanup policy
	Target  Target      `json:"target"`
	Codes   []diag.Code `json:"codes"`   // why it is not native, and how it differs if it is
	Objects []string    `json:"objects"` // the native objects that enforce it and its expanded forms
	Line    int         `json:"line"`
	Reason  string      `json:"reason"` // in words, of a rule that is not native
}

// Totals are the sums over all policies.
type Totals struct {
	Policies    int `json:"policies"`
	Rules       int `json:"rules"`
	Native      int `json:"native"`
	Guessed     int `json:"guessed"` // of the native ones: a wrong guess of the resource enforces nothing
	Webhook     int `json:"webhook"`
	Unsupported int `json:"unsupported"`
	// With --to kyverno there are these alone.
	CEL  int `json:"cel,omitempty"`
	Left int `json:"left,omitempty"`
}

// toKyverno tells of a conversion into Kyverno's kinds in CEL.
func (t Totals) toKyverno() bool { return t.CEL+t.Left > 0 }

// A Diagnostic is a diag.Diagnostic laid flat, with every field always present.
type Diagnostic struct {
	Code     diag.Code     `json:"code"`
	Severity diag.Severity `json:"severity"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Path     string        `json:"path"`
	Message  string        `json:"message"`
}

// New makes a Conversion of policies and diagnostics, in the order given, and
// counts its rules.
func New(policies []Policy, ds diag.List) Conversion {
	c := Conversion{Policies: policies, Totals: Totals{Policies: len(policies)}}
	for _, p := range policies {
		for _, r := range p.Rules {
			c.Totals.count(r.Target)
			if r.Target == Native && slices.Contains(r.Codes, diag.GuessedResource) {
				c.Totals.Guessed++
			}
		}
	}
	for _, d := range ds {
		c.Diagnostics = append(c.Diagnostics, Diagnostic{
			Code: d.Code, Severity: d.Severity, File: d.File, Line: d.Line, Column: d.Col, Path: d.Path, Message: d.Message,
		})
	}
	return c
}

func (t *Totals) count(target Target) {
	t.Rules++
	switch target {
	case Native:
		t.Native++
	case Webhook:
		t.Webhook++
	case CEL:
		t.CEL++
	case Left:
		t.Left++
	default:
		t.Unsupported++
	}
}

// String is the totals in a sentence.
func (t Totals) String() string {
	s := fmt.Sprintf("%s, %s: ", doc.Count(t.Policies, "policy", "policies"), doc.Count(t.Rules, "rule", "rules"))
	if t.toKyverno() {
		return s + fmt.Sprintf("%d in CEL, %d left as they are", t.CEL, t.Left)
	}
	s += fmt.Sprintf("%d native", t.Native)
	if t.Guessed > 0 {
		s += fmt.Sprintf(" (%d of a guessed resource: %s)", t.Guessed, diag.GuessedResource)
	}
	s += fmt.Sprintf(", %d webhook", t.Webhook)
	if t.Unsupported > 0 {
		s += fmt.Sprintf(", %d unsupported", t.Unsupported)
	}
	return s
}

// excluded says in which namespaces the native half does not count; "" where there
// are none.
func (c Conversion) excluded() string {
	if len(c.ExcludedNamespaces) == 0 || c.Totals.Native == 0 {
		return ""
	}
	return "bindings leave out the namespaces " + strings.Join(c.ExcludedNamespaces, ", ") + " (--exclude-namespaces)"
}

// busiest says what a request meets, of the three resources with the most; "" where
// none meets more than one object.
func (c Conversion) busiest() string {
	var meets, packed []string
	fewer := false
	for _, m := range c.Meets[:min(MeetingsShown, len(c.Meets))] {
		if m.Objects < 2 {
			break
		}
		meets, packed = append(meets, fmt.Sprintf("%s %d", m.Resource, m.Objects)), append(packed, fmt.Sprint(m.WithMatch))
		fewer = fewer || m.WithMatch < m.Objects
	}
	if len(meets) == 0 {
		return ""
	}
	line := "policy objects that a request meets: " + strings.Join(meets, ", ")
	if fewer {
		line += " (with --pack match: " + strings.Join(packed, ", ") + ")"
	}
	return line
}
