package suite

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// targets judges a row of a rule that changes existing objects: the resources of the
// suite trigger it, and the row names a trigger, or one of the target resources and
// what becomes of it.
func (r *run) targets(ctx context.Context, row Row, p *policy.Policy) (out []RowResult) {
	for _, name := range r.wanted(row) {
		found := false
		for _, o := range r.resources {
			for _, result := range r.target(ctx, row, p, o, name) {
				found = true
				if !slices.Contains(out, result) { // as where several resources trigger the same
					out = append(out, result)
				}
			}
		}
		if !found {
			out = append(out, RowResult{Resource: row.Kind + "/" + name, Verdict: Excluded, Reason: "the row names no trigger of the rule, and no target that it changes"})
		}
	}
	return out
}

// target judges what one resource triggers, as far as it is about a name.
func (r *run) target(ctx context.Context, row Row, p *policy.Policy, o manifest.Object, name string) (out []RowResult) {
	in, world, request, err := r.triggering(ctx, row, p, o)
	if err != nil {
		if row.selects(o, name) {
			out = append(out, RowResult{Resource: o.Title(), Kind: o.Kind(), Verdict: NotJudged, Reason: err.Error()})
		}
		return out
	}
	for _, t := range in.Triggered(ctx, request.Interp()) {
		if p.Mutating == nil && !row.means(t.Rule) || t.Kyverno == interp.None {
			continue
		}
		if row.selects(o, name) && row.patched() == "" {
			out = append(out, r.targetResult(row, o, t.Rule, string(t.Status), t.Message))
		}
		for _, m := range in.MutateExisting(ctx, request.Interp(), p.FullName(), t.Rule, world) {
			of := manifest.Object{Value: m.Before}
			if !row.selects(of, name) || row.selects(o, name) && row.patched() == "" {
				continue
			}
			result := r.targetResult(row, of, t.Rule, string(m.Status), m.Message)
			if result.Verdict == Passed && row.patched() != "" {
				r.compare(&result, row.patched(), m.After)
			}
			out = append(out, result)
		}
	}
	return out
}

func (r *run) targetResult(row Row, o manifest.Object, rule, status, message string) RowResult {
	out := RowResult{Resource: o.Title(), Kind: o.Kind(), Form: rule, Interp: status, Message: message, Verdict: Passed, Reason: "Ok (webhook)"}
	if want := row.Expected(); status != want {
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, status)
	}
	return out
}
