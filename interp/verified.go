package interp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Verified is what ImageValidatingPolicies have found of the images of one request, by the texts
// that the object has of them. Policies share it: an image that must be verified is so where any
// of them did it.
type Verified struct {
	mu     sync.Mutex
	images map[string]*imageFindings
	beside *Verified
}

// imageFindings is what checks of an image came to.
type imageFindings struct {
	proven bool
	why    []string // of those that did not prove it
}

// Beside is for policies that count for themselves only, as those in shadow: they see what v has,
// and write nothing into it.
func (v *Verified) Beside() *Verified { return &Verified{beside: v} }

// note keeps what a check came to; err is nil where it has proven the image.
func (v *Verified) note(image string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.images == nil {
		v.images = map[string]*imageFindings{}
	}
	f := v.images[image]
	if f == nil {
		f = &imageFindings{}
		v.images[image] = f
	}
	if err == nil {
		f.proven = true
		return
	}
	if text := err.Error(); len(f.why) < maxReasons && !slices.Contains(f.why, text) {
		f.why = append(f.why, text)
	}
}

// maxReasons is how many are kept of why an image is not proven.
const maxReasons = 10

// of is what is known of an image; checked is false where nobody asked.
func (v *Verified) of(image string) (proven, checked bool, why []string) {
	if v == nil {
		return false, false, nil
	}
	v.mu.Lock()
	f := v.images[image]
	if f != nil {
		proven, checked, why = f.proven, true, f.why
	}
	v.mu.Unlock()
	if proven || v.beside == nil {
		return proven, checked, why
	}
	other, asked, more := v.beside.of(image)
	return other, checked || asked, append(why, more...)
}

// Settle fails what passed though one of its images must be verified and was not by any policy
// that shares v. Judge does so for a request without a Verified; who shares one calls it when all
// policies were judged.
func (v *Verified) Settle(results []RuleResult) {
	for i := range results {
		r := &results[i]
		if r.Status != Pass {
			continue
		}
		for _, image := range r.awaits {
			proven, checked, why := v.of(image)
			if proven {
				continue
			}
			r.Status, r.Kyverno = Fail, Fail
			r.Message = fmt.Sprintf("image %s is not verified: no policy performed a signature or attestation check on it", image)
			if checked {
				r.Message = joinMessages(fmt.Sprintf("image %s failed signature or attestation verification", image), strings.Join(why, "; "))
			}
			break
		}
	}
}
