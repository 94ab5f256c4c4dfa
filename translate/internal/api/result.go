package api

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/generating"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// Refuse takes a rule for one without a native form. What was said of the native
// form no longer counts.
func (r *RuleResult) Refuse(why diag.Diagnostic) {
	r.Target = Webhook
	if unsupportedCode(why.Code) {
		r.Target = Unsupported
	}
	r.Codes, r.Found, r.Drafts, r.Mutating, r.Generating, r.Existing = []diag.Code{why.Code}, diag.List{why}, nil, nil, nil, nil
	r.Forms = slices.Clone(r.Forms)
	for i := range r.Forms {
		r.Forms[i].Places = nil
	}
}

// Changes tells of a rule that changes the object of a request.
func (r *RuleResult) Changes() bool {
	return r.Rule != nil && r.Rule.Mutate != nil && !r.Rule.Mutate.Existing
}

// ChangesOthers tells of a rule that changes objects that are there, when a request triggers it.
func (r *RuleResult) ChangesOthers() bool {
	return r.Rule != nil && r.Rule.Mutate != nil && r.Rule.Mutate.Existing
}

// Generates tells of a rule that makes other objects.
func (r *RuleResult) Generates() bool { return r.Rule != nil && r.Rule.Generate != nil }

// A Target is where a rule is judged.
type Target string

// The targets.
const (
	Native      Target = "native"      // by the API server
	Webhook     Target = "webhook"     // by the embedded webhook
	Unsupported Target = "unsupported" // nowhere
)

// A Result is what became of policies: drafts, and for every rule as written
// where it is judged and why.
type Result struct {
	Drafts      []*vap.Draft
	Mutating    []*mutating.Draft
	Rules       []RuleResult
	Diagnostics diag.List
}

// A RuleResult is what became of one rule as written.
type RuleResult struct {
	Policy *policy.Policy
	Rule   *policy.Rule // nil for a policy in CEL, which is one rule
	Target Target
	Codes  []diag.Code // why it is not native, or what the user must know
	// Found is what there is to say of the rule.
	Found diag.List
	// Doubts are about the rule as it is written, whatever becomes of it.
	Doubts diag.List
	// Drafts enforce the rule.
	Drafts []*vap.Draft
	// Mutating are those that make its changes, of a rule that mutates.
	Mutating []*mutating.Draft
	// Generating are those that make its objects, of a rule that generates.
	Generating []*generating.Draft
	// Existing are those that make the changes of a rule with targets.
	Existing []*mutating.Existing
	// Forms are the rule as Kyverno reports it: as written, and as expanded for the
	// controllers of pods.
	Forms []Form
}

// A Form is a rule by a name that Kyverno reports.
type Form struct {
	Name string
	Rule *policy.Rule // as expanded; nil for a policy in CEL
	// Places are where the drafts have it.
	Places []Place
}

// A Place is a member of a draft.
type Place struct {
	Draft  *vap.Draft
	Member int // index of Draft.Members
}

// CodesOf are the codes of diagnostics, each once.
func CodesOf(ds diag.List) []diag.Code {
	var out []diag.Code
	seen := map[diag.Code]bool{}
	for _, d := range ds {
		if !seen[d.Code] {
			seen[d.Code] = true
			out = append(out, d.Code)
		}
	}
	return out
}

func unsupportedCode(c diag.Code) bool {
	return c == diag.BackgroundOnly || c == diag.NoBody || c == diag.InvalidRule || c == diag.OtherPayload ||
		c == diag.ChangesExisting || c == diag.GuessedResource
}
