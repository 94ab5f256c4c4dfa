package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// mutate judges one resource by the mutate rules that a row means: what they came to,
// and the object behind all rules of their policy. As on the Kyverno command line, a
// policy sees what the policies in front of it made of the resource.
func (r *run) mutate(ctx context.Context, row Row, p *policy.Policy, o manifest.Object) []RowResult {
	base := RowResult{Resource: o.Title(), Kind: o.Kind()}
	refuse := func(err error) []RowResult {
		base.Verdict, base.Reason = NotJudged, err.Error()
		return []RowResult{base}
	}
	s := r.session(p, o.Meta("name"))
	if s.err != nil {
		return refuse(s.err)
	}
	made, err := r.request(s, p.Name, r.origin(p, row), row.Operation, o)
	request := made
	if err == nil {
		request, err = r.mutated(ctx, made, o, p)
	}
	if err != nil {
		return refuse(err)
	}
	if s.judges.LacksNamespace(request) {
		namespace, _ := request.Admission()["namespace"].(string)
		return refuse(errors.New(judge.NamespaceNotGiven(namespace)))
	}
	done := s.judges.Mutate(ctx, request, nil)
	if done == nil { // there is nothing that changes the object
		base.unlooked(row.Expected())
		return []RowResult{base}
	}
	natively, isNative := s.judges.Changes(ctx, request)[p.FullName()]
	if p.Mutating != nil && row.patched() != "" {
		whole := *done
		if whole.After, err = r.behindAll(ctx, made, o); err != nil {
			return refuse(err)
		}
		done = &whole
	}
	var out []RowResult
	for _, m := range done.Rules {
		if p.Mutating == nil && !row.means(m.Rule) || m.Kyverno == interp.None {
			continue
		}
		result := base
		result.Form, result.Message, result.Interp = m.Rule, m.Message, string(m.Status)
		r.weighMutation(&result, row, m, done)
		if isNative {
			result.Native = string(natively.Native)
		}
		switch {
		case !isNative || result.Verdict != Passed:
		case natively.Different != "":
			result.Verdict, result.Reason = Failed, "the native form makes another object (-interpreter +native):\n"+natively.Different
		default:
			result.Reason = "Ok"
		}
		out = append(out, result)
	}
	if out == nil {
		base.unlooked(row.Expected())
		out = append(out, base)
	}
	return out
}

// mutated is the request with the object that mutate rules make of it: those of the
// policies in front of one, or of all where that is nil.
func (r *run) mutated(ctx context.Context, request *judge.Request, o manifest.Object, front *policy.Policy) (*judge.Request, error) {
	for _, p := range inOrder(r.policies) {
		if p == front {
			break
		}
		if !mutates(p) {
			continue
		}
		s := r.session(p, o.Meta("name"))
		if s.err != nil {
			return nil, s.err
		}
		done := s.judges.Mutate(ctx, request, nil)
		if done == nil || !done.Changed() {
			continue
		}
		var err error
		if request, err = request.With(done.After); err != nil {
			return nil, fmt.Errorf("what the policy %s makes of the resource is no %s: %w", p.Name, o.Kind(), err)
		}
	}
	return request, nil
}

// mutates tells of a policy that changes the object of a request.
func mutates(p *policy.Policy) bool {
	return p.Mutating != nil && !p.Mutating.ChangesOthers() || slices.ContainsFunc(p.Rules, func(rule *policy.Rule) bool { return rule.Mutate != nil && !rule.Mutate.Existing })
}

// weighMutation holds a rule's status and the object to what the row expects.
func (r *run) weighMutation(out *RowResult, row Row, m interp.RuleMutation, done *interp.MutationResult) {
	want, got := row.Expected(), string(m.Kyverno)
	switch {
	case m.Code != 0:
		out.Verdict, out.Reason = NotJudged, m.Message
	case got != want:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got)
	default:
		out.Verdict, out.Reason = Passed, "Ok (webhook)"
		if name := row.patched(); name != "" {
			r.compare(out, name, done.After)
		}
	}
}

// patched is the file with the resource as it should be.
func (r Row) patched() string {
	if r.PatchedResources != "" {
		return r.PatchedResources
	}
	return r.PatchedResource
}

// compare compares an object with the one of its kind, namespace and name in a file.
func (r *run) compare(out *RowResult, name string, got map[string]any) {
	fail := func(format string, args ...any) {
		out.Verdict, out.Reason, out.Message = Failed, fmt.Sprintf(format, args...), ""
	}
	all, err := r.expected(name)
	if err != nil {
		fail("%v", err)
		return
	}
	o := manifest.Object{Value: got}
	i := slices.IndexFunc(all, func(e manifest.Object) bool { return r.client().Same(o, e) })
	if i < 0 {
		fail("%s has no %s", filepath.ToSlash(name), o.Title())
		return
	}
	wanted, err := r.canonical(all[i].Value)
	if err != nil {
		fail("%s: %v", filepath.ToSlash(name), err)
		return
	}
	if got, err = r.canonical(got); err != nil {
		fail("what the rules make is no %s: %v", o.Kind(), err)
		return
	}
	if difference := differ(wanted, got); difference != "" {
		fail("%s differs from %s", o.Title(), filepath.ToSlash(name))
		out.Difference = difference
	}
}

// inOrder are policies as the Kyverno command line runs them: those in CEL come last.
func inOrder(policies []*policy.Policy) []*policy.Policy {
	out := slices.Clone(policies)
	slices.SortStableFunc(out, func(a, b *policy.Policy) int {
		switch {
		case (a.Mutating != nil) == (b.Mutating != nil):
			return 0
		case b.Mutating != nil:
			return -1
		}
		return 1
	})
	return out
}

// behindAll is the object behind all policies, which is what a row about a MutatingPolicy
// has in its file.
func (r *run) behindAll(ctx context.Context, request *judge.Request, o manifest.Object) (map[string]any, error) {
	request, err := r.mutated(ctx, request, o, nil)
	if err != nil {
		return nil, err
	}
	return request.Object(), nil
}

// client makes requests as the Kyverno command line does.
func (r *run) client() judge.Client {
	client := judge.Client{Schemas: r.runner.Schemas, Operation: "CREATE", Namespace: "default", Guess: true}
	if r.runner.Defaults {
		client.Defaults = defaulting.New(r.runner.Schemas)
	}
	return client
}

// expected are the objects in a file.
func (r *run) expected(name string) (all []manifest.Object, err error) {
	found := r.suite.eachFile(name, r.suite.Pos, func(file string, data []byte) diag.List {
		objects, ds := manifest.Read(file, data)
		all = append(all, objects...)
		return ds
	})
	for _, d := range found {
		if d.Severity == diag.Error {
			return nil, errors.New(d.Message)
		}
	}
	return all, nil
}

// canonical is an object in the form that the API server gives it.
func (r *run) canonical(object map[string]any) (map[string]any, error) {
	admission, found := r.client().Request(manifest.Object{Value: object}, manifest.Object{})
	if admission == nil {
		return nil, found[len(found)-1]
	}
	request, err := judge.NewRequest(admission)
	if err != nil {
		return nil, err
	}
	return withoutOwnName(request.Object()), nil
}

// withoutOwnName is a Namespace without the label that every API server gives it, and
// that suites do not spell out; another object is as it was.
func withoutOwnName(object map[string]any) map[string]any {
	const label = "kubernetes.io/metadata.name"
	meta, _ := object["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if object["kind"] != "Namespace" || object["apiVersion"] != "v1" || labels[label] == nil || labels[label] != meta["name"] {
		return object
	}
	labels = maps.Clone(labels)
	delete(labels, label)
	return put(object, []string{"metadata", "labels"}, labels)
}

// differ is how an object differs from what it should be, line by line; empty where
// it does not. Empty maps, empty lists and null say nothing.
func differ(want, got map[string]any) string {
	wanted, err := yaml.Marshal(tidy(want))
	if err != nil {
		return err.Error()
	}
	text, err := yaml.Marshal(tidy(got))
	if err != nil {
		return err.Error()
	}
	return textdiff.Diff(string(wanted), string(text))
}

// tidy is a value without what says nothing; nil where nothing is left.
func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			if kept := tidy(inner); kept != nil {
				out[k] = kept
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var out []any
		for _, inner := range v {
			if kept := tidy(inner); kept != nil {
				out = append(out, kept)
			}
		}
		if len(out) > 0 {
			return out
		}
	default:
		return v
	}
	return nil
}

// pinned is the request with digests in the place of tags, as far as the rules of a policy want
// it. The Kyverno command line does so for rules, and not for an ImageValidatingPolicy.
func (r *run) pinned(ctx context.Context, request *judge.Request, p *policy.Policy) (*judge.Request, error) {
	if p.InCEL() || !p.PinsImages() || r.runner.Registry == nil {
		return request, nil
	}
	done := interp.New([]*policy.Policy{p}, r.exceptions, r.world(r.objects), interp.Limits{}).PinImages(ctx, request.Interp())
	if !done.Changed() {
		return request, nil
	}
	return request.With(done.After)
}
