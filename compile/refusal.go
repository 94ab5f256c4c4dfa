package compile

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// refusals are what checks say against members of drafts.
type refusals struct {
	drafts []*vap.Draft
	why    map[*vap.Draft]map[int]diag.Diagnostic // by draft and member
}

func (r *refusals) add(d *vap.Draft, members []int, why diag.Diagnostic) {
	if r.why == nil {
		r.why = map[*vap.Draft]map[int]diag.Diagnostic{}
	}
	if r.why[d] == nil {
		r.why[d] = map[int]diag.Diagnostic{}
	}
	for _, m := range members {
		if _, told := r.why[d][m]; !told {
			r.why[d][m] = why
		}
	}
}

// emission notes the errors of a draft that was not emitted.
func (r *refusals) emission(draft int, found diag.List) {
	d := r.drafts[draft]
	for _, f := range found {
		switch {
		case f.Code == diag.ExpressionTooLong:
			r.add(d, d.MembersAt(f.Pos), diag.Warnf(f.Pos, diag.TooLarge, "%s; the webhook will judge this rule", f.Message))
		case f.Severity == diag.Error:
			r.add(d, d.MembersAt(f.Pos), f)
		}
	}
}

// invalid has the objects validated, and notes what an API server would refuse. An
// object of which it would refuse the guard loses that.
func (r *refusals) invalid(objects []vap.Objects, emitter *vap.Emitter, crew *cores.Crew, checkers *cores.Pool[*apiserver.Checker], cache *Cache) {
	errs, keys := make([]field.ErrorList, len(objects)), make([][sha256.Size]byte, len(objects))
	known := make([]bool, len(objects))
	crew.Each(len(objects), func(i int) { keys[i], errs[i], known[i] = cache.checkedBefore(objects[i]) })
	halves := make([]half, 2*len(objects)) // so that two cores have something to do for a single object
	crew.Each(len(halves), func(i int) {
		if o := objects[i/2]; !known[i/2] {
			halves[i] = validated(o, i%2 == 0, checkers)
		}
	})
	faults := make([]*diag.Diagnostic, len(objects))
	for i, h := range halves {
		errs[i/2] = append(errs[i/2], h.errs...)
		faults[i/2] = cmp.Or(faults[i/2], h.fault)
	}
	var unguarded []vap.Objects // which say in a validation what was said in the guard
	for i, o := range objects {
		if faults[i] != nil {
			keys[i] = [sha256.Size]byte{} // the next time it is to fail again
			r.add(o.Draft, o.Draft.AllMembers(), *faults[i])
		}
		for _, err := range errs[i] {
			if o.IsGuard(err.Field) {
				objects[i] = emitter.Unguarded(o)
				unguarded = append(unguarded, objects[i])
				continue
			}
			pos, members := o.MadeFrom(err.Field)
			r.add(o.Draft, members, diag.Warnf(pos, diag.InvalidObject,
				"the API server would refuse %s: %s; the webhook will judge this rule", err.Field, apiserver.FirstMessage(err.Detail)))
		}
	}
	cache.keepChecked(keys, errs)
	if len(unguarded) > 0 {
		r.invalid(unguarded, emitter, crew, checkers, cache)
	}
}

// A half is what is said against the head of an object, or against the rest.
type half struct {
	errs  field.ErrorList
	fault *diag.Diagnostic
}

func validated(o vap.Objects, head bool, checkers *cores.Pool[*apiserver.Checker]) (h half) {
	h.fault = guard(posOf(o.Draft), func() {
		checker := checkers.Take()
		defer checkers.Give(checker)
		if head {
			h.errs = checker.ValidateHead(o.Policy)
			return
		}
		h.errs = checker.ValidateBody(o.Policy)
		for _, b := range o.Bindings {
			h.errs = append(h.errs, apiserver.ValidateBinding(b)...)
		}
	})
	return h
}

// of is why a rule must be left to the webhook; nil where nothing is said against
// any of its forms.
func (r *refusals) of(rule translate.RuleResult) *diag.Diagnostic {
	for _, d := range rule.Mutating {
		for _, m := range d.AllMembers() {
			if why, ok := r.why[&d.Draft][m]; ok {
				return &why
			}
		}
	}
	for _, f := range rule.Forms {
		for _, p := range f.Places {
			if why, ok := r.why[p.Draft][p.Member]; ok {
				return &why
			}
		}
	}
	return nil
}

// posOf is where the first rule of a draft stands.
func posOf(d *vap.Draft) diag.Pos {
	if len(d.Members) == 0 {
		return diag.Pos{}
	}
	return d.Members[0].Pos
}

// readErrors are the errors of reading, by the policy that they are in.
type readErrors struct {
	files map[string][]span
	all   map[diag.Pos]diag.List // by the place of the policy
}

// A span is a policy's place: up to the next of the file.
type span struct {
	line int
	pos  diag.Pos
}

// errorsOf sorts the errors of reading by policy. Paths begin anew in each document
// of a file, so the lines tell the documents apart.
func errorsOf(in Input) readErrors {
	e := readErrors{map[string][]span{}, map[diag.Pos]diag.List{}}
	for _, p := range in.Policies {
		e.files[p.Pos.File] = append(e.files[p.Pos.File], span{p.Pos.Line, p.Pos})
	}
	for _, spans := range e.files {
		slices.SortStableFunc(spans, func(a, b span) int { return a.line - b.line })
	}
	for _, d := range in.Found {
		if d.Severity != diag.Error {
			continue
		}
		spans := e.files[d.Pos.File]
		i, _ := slices.BinarySearchFunc(spans, d.Pos.Line+1, func(s span, line int) int { return s.line - line })
		if i > 0 {
			owner := spans[i-1].pos
			e.all[owner] = append(e.all[owner], d)
		}
	}
	return e
}

// within are the errors in a rule; where there are none, those in the policy
// around it.
func (e readErrors) within(r *Rule) diag.List {
	for _, outer := range []string{r.Pos().Path, r.Policy.Pos.Path} {
		var out diag.List
		for _, d := range e.all[r.Policy.Pos] {
			rest, inside := strings.CutPrefix(d.Pos.Path, outer)
			if inside && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[') {
				out = append(out, d)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
