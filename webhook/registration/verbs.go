package registration

import (
	"slices"

	"github.com/kvap/kvap/policy"
)

// Validates tells whether a policy has rules that the validating webhook is for:
// those that validate, those that verify images, and those that start work elsewhere when
// an object is admitted.
func Validates(p *policy.Policy) bool {
	if _, more := p.VerifiesMore(); more {
		return false
	}
	return p.Admission && (p.Validating != nil || p.InCEL() && p.StartsWork() || slices.ContainsFunc(p.Rules, validates))
}

// Mutates tells whether a policy has rules that change what is admitted.
func Mutates(p *policy.Policy) bool {
	if _, more := p.VerifiesMore(); more {
		return false
	}
	return p.Admission && (p.ImagePolicy() != nil && p.PinsImages() || p.Mutating != nil && !p.Mutating.ChangesOthers() || slices.ContainsFunc(p.Rules, mutates))
}

// Triggers tells whether a policy has rules that start work elsewhere.
func Triggers(p *policy.Policy) bool {
	return p.Admission && p.StartsWork()
}

func validates(r *policy.Rule) bool {
	return r.Validate != nil || r.StartsWork() || verifies(r)
}

func mutates(r *policy.Rule) bool {
	return r.Mutate != nil && !r.Mutate.Existing || verifies(r) && r.PinsImages()
}

// verifies tells of a rule about images that asks for nothing which is not verified here.
func verifies(r *policy.Rule) bool {
	_, more := r.VerifiesMore()
	return r.VerifyImages != nil && !more
}
