package evaluate

import (
	"context"
	"iter"
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
)

// batchSize is how many inputs are held at once: enough for all cores, little
// enough for large objects.
const batchSize = 256

// A judged is an input with what the judges said, or why they were not asked.
type judged struct {
	question question
	id       string
	opinions []judge.Opinion
	mutation *interp.MutationResult // nil without mutate rules
	lacks    []bool                 // of each opinion: it is not about the request, for want of a field, or of an object that was not given
	// incomplete is the path of what an object lacks, as none that an API server hands over.
	incomplete string
	found      diag.List
	unread     bool
}

// judge judges all inputs, in batches, and writes the answers in their order.
func (e *Evaluation) judge(ctx context.Context, inputs iter.Seq2[question, error]) error {
	batch := make([]judged, 0, batchSize)
	flush := func() error {
		cores.Each(len(batch), func(i int) { e.one(ctx, &batch[i]) })
		for _, j := range batch {
			if err := e.note(j); err != nil {
				return err
			}
		}
		batch = batch[:0]
		e.options.Progress("%s judged", report.Count(e.totals.Requests, "request", "requests"))
		return nil
	}
	for in, err := range inputs {
		if err != nil { // what came before the fault counts
			e.Found = append(e.Found, diag.Errorf(in.pos, diag.Unreadable, "%v", err))
			continue
		}
		batch = append(batch, judged{question: in})
		if len(batch) == batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (e *Evaluation) one(ctx context.Context, j *judged) {
	id, request, found := j.question.read()
	j.id, j.found, j.unread = id, found, request == nil
	if j.unread {
		return
	}
	if request.NamespaceLabels == nil && len(e.options.Labels) > 0 {
		request.NamespaceLabels = e.options.Labels
	}
	if j.incomplete = request.Lacks(e.schemas); j.incomplete != "" {
		j.found = append(j.found, diag.Warnf(j.question.pos, diag.IncompleteObject,
			"%s is missing, and no API server asks a policy about such an object; what is said of it holds nowhere", j.incomplete))
	}
	var err error
	if j.opinions, err = e.judges.Judge(ctx, request); err != nil {
		j.found = append(j.found, diag.Errorf(j.question.pos, diag.BadRequest, "%v", err))
		j.unread = true
		return
	}
	j.mutation = e.judges.Mutate(ctx, request, j.opinions)
}

// silent tells that a rule says nothing of a request.
func silent(o judge.Opinion) bool { return o.Native == apiserver.NoMatch && o.Status == interp.None }

// note counts and writes one answer.
func (e *Evaluation) note(j judged) error {
	e.totals.Requests++
	e.tell(j.found)
	if j.unread {
		e.totals.NotJudged++
	}
	if !j.unread && !slices.ContainsFunc(j.opinions, func(o judge.Opinion) bool { return !silent(o) }) {
		e.totals.unmatched++
	}
	violated := false
	j.lacks = make([]bool, len(j.opinions))
	for i, o := range j.opinions {
		if o.Violated() {
			violated = true
			j.lacks[i] = e.noteMissing(o)
		}
		j.lacks[i] = j.lacks[i] || j.incomplete != ""
		if !o.Agree() && !j.lacks[i] {
			e.totals.Disagreements++
		}
	}
	if violated {
		e.totals.Violations++
	}
	return e.out.write(j)
}

// tell keeps what is to be said. A warning about a kind is said once, of the first
// resource of it.
func (e *Evaluation) tell(found diag.List) {
	for _, d := range found {
		if d.Severity != diag.Error && e.told[d.Message] {
			continue
		}
		e.told[d.Message] = true
		e.Found = append(e.Found, d)
	}
}

// noteMissing remembers the objects for want of which a rule erred. Of such a rule
// the two sides need not agree: what they say is not about the request.
func (e *Evaluation) noteMissing(o judge.Opinion) (some bool) {
	if o.Status != interp.Error && o.Native != apiserver.Error {
		return false
	}
	for _, l := range judge.Lookups(o.Rule.Rule) {
		if !l.In(e.objects) {
			e.missing[l.Pos], some = l, true
		}
	}
	return some
}

// reportMissing says which objects were missing.
func (e *Evaluation) reportMissing() {
	places := make([]diag.Pos, 0, len(e.missing))
	for pos := range e.missing {
		places = append(places, pos)
	}
	slices.SortFunc(places, diag.Pos.Compare)
	for _, pos := range places {
		e.Found = append(e.Found, diag.Errorf(pos, diag.MissingObject,
			"the rule reads the %s, which was not given, so it errs; give it with --param FILE", e.missing[pos]))
	}
}
