package interp

import (
	"slices"

	"github.com/kvap/kvap/interp/internal/expr"
)

// A reading is how values are compared: as kvap does, or as Kyverno does where kvap differs
// on purpose. The zero reading is kvap's, and notes nothing.
type reading struct {
	kyverno bool
	differs *[]int // the deviations that made a comparison come out otherwise
	formats formats
	at      []string // the field that patterns are held to
}

// choose gives what a comparison comes to, of kvap's outcome and Kyverno's. The number is
// that of the deviation.
func (r reading) choose(number int, ours, theirs bool) bool {
	if ours == theirs {
		return ours
	}
	if r.differs != nil && !slices.Contains(*r.differs, number) {
		*r.differs = append(*r.differs, number)
	}
	if r.kyverno {
		return theirs
	}
	return ours
}

// under is r where patterns are held to a field.
func (r reading) under(at []string) reading {
	r.at = at
	return r
}

// compare tells whether a condition's operator holds between its key and its value. To
// Kyverno, texts of the request are patterns to operators of membership (deviation 9), and
// whatever is not the policy's is read in every way that it may be (deviation 15).
func (r reading) compare(key operand, operator string, value operand) (bool, error) {
	ours, err := compareFields(key, operator, value)
	if key.from.Origin == expr.OfPolicy && value.from.Origin == expr.OfPolicy {
		return ours, err
	}
	theirs, theirErr := compareExactly(key, operator, value)
	if err != nil || theirErr != nil {
		if err == nil || theirErr == nil {
			r.choose(15, true, false)
		}
		if r.kyverno {
			return theirs, theirErr
		}
		return ours, err
	}
	number := 15
	if isMembership(operator) && (key.hasWildcards() || value.hasWildcards()) {
		number = 9
	}
	return r.choose(number, ours, theirs), nil
}

// judgeBoth judges by a rule as kvap does and, where the request asks for it and a
// comparison came out otherwise than Kyverno's, once more as Kyverno does.
func (r *rule) judgeBoth(a *preparedRequest) (out verdict, deviations []int) {
	var differs []int
	known := a.formatsFor(r.Rule)
	a.reading = reading{differs: &differs, formats: known}
	defer func() { a.reading = reading{} }()
	out = r.judge(a)
	if len(differs) == 0 || !a.request.Exact {
		return out, nil
	}
	again := *a
	again.ctx = unobserved(a.ctx)
	again.size = &meter{left: a.limits.context()}
	again.reading = reading{kyverno: true}
	exact := r.judge(&again)
	if exact.kyverno == out.kyverno {
		return out, nil
	}
	out.kyverno = exact.kyverno
	slices.Sort(differs)
	return out, differs
}
