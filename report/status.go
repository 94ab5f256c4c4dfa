package report

import (
	"io"
	"strings"
)

// A Status is what a cluster has of policies: those that kvap translates or has
// translated, and the ValidatingAdmissionPolicies that are somebody else's.
type Status struct {
	Policies  []PolicyStatus `json:"policies"`
	Unmanaged []NativeStatus `json:"unmanaged"`
	// Notes are about no policy alone.
	Notes []string `json:"notes"`
}

// A PolicyStatus is the state of one source policy. Its Mode is off, shadow or
// enforce, pending where the controller has not looked at it yet, and empty where
// nothing tells.
type PolicyStatus struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Group     string `json:"group"` // of the kind; empty where the source is not in the cluster
	Mode      string `json:"mode"`
	// Stage is where the policy is on its way from Kyverno: none, shadow, enforced or
	// adopted, with the verb that is under way; empty where kvap migrate was not there.
	Stage      string       `json:"stage"`
	Created    string       `json:"created"` // RFC 3339: of the source, else of its oldest object
	Conditions []Condition  `json:"conditions"`
	Rules      []RuleStatus `json:"rules"`
	// Exceptions are the PolicyExceptions from it that are in force.
	Exceptions []ActiveException `json:"exceptions"`
}

// An ActiveException is a PolicyException that is in force.
type ActiveException struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Rules     []string `json:"rules"`   // that it is from, with wildcards; empty for all
	Expires   string   `json:"expires"` // RFC 3339; empty for never
}

// A Condition is a fact about a policy: True, False or Unknown, and why.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// A RuleStatus is a rule as written, with what enforces it.
type RuleStatus struct {
	Name     string          `json:"rule"`
	Target   Target          `json:"target"`
	Codes    []string        `json:"codes"`
	Objects  []string        `json:"objects"` // ValidatingAdmissionPolicies
	Bindings []BindingStatus `json:"bindings"`
	Action   string          `json:"action"`   // the actions of the bindings, with commas between
	Enforced string          `json:"enforced"` // True, False or Unknown
	Cost     string          `json:"cost"`     // empty where nobody has estimated it
	Reason   string          `json:"reason"`   // in words, of a rule that is not native
	Warnings []TypeWarning   `json:"warnings"`
}

// A BindingStatus is a binding with the params that it finds.
type BindingStatus struct {
	Name    string   `json:"name"`
	Object  string   `json:"object"` // the policy that it binds
	Actions []string `json:"actions"`
	Params  []string `json:"params"` // for instance ConfigMap team/limits
	Problem *Problem `json:"problem,omitempty"`
}

// A Problem is what is wrong with an object, and what follows from it.
type Problem struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// A TypeWarning is what a cluster's type checker says of an expression. Known tells
// of a false alarm: with the types that values have at run time there is none.
type TypeWarning struct {
	Object   string `json:"object"`
	FieldRef string `json:"fieldRef"`
	Warning  string `json:"warning"`
	Known    bool   `json:"known"`
	Rule     string `json:"rule"`
	Path     string `json:"path"` // in the source policy
	File     string `json:"file"` // of the source; empty where it was read from a cluster
}

// A NativeStatus is a ValidatingAdmissionPolicy that kvap did not make. Missing
// tells that only bindings name it.
type NativeStatus struct {
	Name     string          `json:"name"`
	Missing  bool            `json:"missing"`
	Created  string          `json:"created"`
	Action   string          `json:"action"`
	Bindings []BindingStatus `json:"bindings"`
	Problems []Problem       `json:"problems"`
	Warnings []TypeWarning   `json:"warnings"`
}

// Title is the name as users write it.
func (p PolicyStatus) Title() string { return titleOf(p.Namespace, p.Name) }

// Condition is the status of a condition, Unknown where there is none.
func (p PolicyStatus) Condition(kind string) string {
	for _, c := range p.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return "Unknown"
}

// Findings tells whether something is wrong: a policy that is not ready, or a
// native one with a problem or a warning that is no known false alarm.
func (s Status) Findings() bool {
	for _, p := range s.Policies {
		if p.Condition("Ready") == "False" {
			return true
		}
	}
	for _, n := range s.Unmanaged {
		if len(n.Problems) > 0 || countUnknown(n.Warnings) > 0 {
			return true
		}
	}
	return false
}

// countUnknown counts the warnings that are no known false alarms.
func countUnknown(list []TypeWarning) (n int) {
	for _, w := range list {
		if !w.Known {
			n++
		}
	}
	return n
}

// WriteNames writes a line for each policy, as kubectl takes it.
func (s Status) WriteNames(w io.Writer) error {
	var b strings.Builder
	for _, p := range s.Policies {
		b.WriteString(strings.ToLower(p.Kind))
		if p.Group != "" {
			b.WriteString("." + p.Group)
		}
		b.WriteString("/" + p.Name + "\n")
	}
	for _, n := range s.Unmanaged {
		if !n.Missing {
			b.WriteString("validatingadmissionpolicy.admissionregistration.k8s.io/" + n.Name + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
