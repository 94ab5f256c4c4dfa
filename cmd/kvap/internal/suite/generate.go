package suite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// generate judges one resource by the generate rules that a row means: what it is to
// them, and what they generate for it.
func (r *run) generate(ctx context.Context, row Row, p *policy.Policy, o manifest.Object) []RowResult {
	base := RowResult{Resource: o.Title(), Kind: o.Kind()}
	in, world, request, err := r.triggering(ctx, row, p, o)
	if err != nil {
		base.Verdict, base.Reason = NotJudged, err.Error()
		return []RowResult{base}
	}
	var out []RowResult
	for _, t := range in.GenerateTriggers(ctx, request.Interp()) {
		if p.Generating == nil && !row.means(t.Rule) || t.Kyverno == interp.None {
			continue
		}
		result, done := base, interp.Generation{RuleResult: t.RuleResult}
		if t.Status == interp.Pass {
			if g := in.Generate(ctx, request.Interp(), p.FullName(), t.Rule, world); g != nil {
				done = *g
			}
		}
		result.Form, result.Message, result.Interp = t.Rule, done.Message, string(done.Status)
		r.weighGenerated(&result, row, done)
		out = append(out, result)
	}
	if out == nil {
		base.unlooked(row.Expected())
		out = append(out, base)
	}
	return out
}

// triggering are the interpreter of a policy with the values that are mocked for a
// resource, the world that it looks at, and the request that makes the resource.
func (r *run) triggering(ctx context.Context, row Row, p *policy.Policy, o manifest.Object) (*interp.Interpreter, *interp.Offline, *judge.Request, error) {
	s := r.session(p, o.Meta("name"))
	if s.err != nil {
		return nil, nil, nil, s.err
	}
	request, err := r.request(s, p.Name, r.origin(p, row), row.Operation, o)
	if err == nil {
		request, err = r.mutated(ctx, request, o, nil)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	objects := slices.Concat(r.withNamespaces(), s.objects, objectsOf(r.existing))
	for _, name := range row.cloned() {
		sources, err := r.expected(name)
		if err != nil {
			return nil, nil, nil, err
		}
		objects = append(objects, objectsOf(sources)...)
	}
	world := r.world(objects)
	return interp.New([]*policy.Policy{s.policy}, r.exceptions, world, interp.Limits{}), world, request, nil
}

func objectsOf(list []manifest.Object) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, o := range list {
		out[i] = o.Value
	}
	return out
}

// cloned are the files with the objects that rules copy.
func (r Row) cloned() []string {
	if r.CloneSourceResource == "" {
		return r.CloneSources
	}
	return append([]string{r.CloneSourceResource}, r.CloneSources...)
}

// weighGenerated holds a rule's status and the objects to what the row expects: each
// object in its file is generated, and as it stands there.
func (r *run) weighGenerated(out *RowResult, row Row, done interp.Generation) {
	want, got := row.Expected(), string(done.Status)
	switch {
	case done.Code != 0:
		out.Verdict, out.Reason = NotJudged, done.Message
		return
	case got != want:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got)
		return
	}
	out.Verdict, out.Reason = Passed, "Ok (webhook)"
	for _, name := range row.generated() {
		all, err := r.expected(name)
		if err != nil {
			out.Verdict, out.Reason = Failed, err.Error()
			return
		}
		for _, e := range all {
			i := slices.IndexFunc(done.Targets, func(t interp.Generated) bool { return r.client().Same(e, manifest.Object{Value: t.Object}) })
			if i < 0 {
				out.Verdict, out.Reason, out.Message = Failed, fmt.Sprintf("%s is not generated, and stands in %s", e.Title(), filepath.ToSlash(name)), ""
				return
			}
			if r.compare(out, name, withoutOrigin(done.Targets[i].Object, e.Value)); out.Verdict != Passed {
				return
			}
		}
	}
}

// generated are the files with the objects as they should be.
func (r Row) generated() []string {
	if r.GeneratedResource == "" {
		return r.GeneratedResources
	}
	return append([]string{r.GeneratedResource}, r.GeneratedResources...)
}

// withoutOrigin is a generated object without the labels that lead back to the policy,
// which suites do not spell out.
func withoutOrigin(object, expected map[string]any) map[string]any {
	wanted, _ := expected["metadata"].(map[string]any)
	spelt, _ := wanted["labels"].(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	kept := map[string]any{}
	for k, v := range labels {
		_, asked := spelt[k]
		if asked || !strings.HasPrefix(k, "generate.kyverno.io/") && k != "app.kubernetes.io/managed-by" {
			kept[k] = v
		}
	}
	return put(object, []string{"metadata", "labels"}, kept)
}
