package suite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Runner runs suites.
type Runner struct {
	Translate translate.Options
	Schemas   *schema.Set
	// Rewrite, where set, makes choices that are about the policies themselves.
	Rewrite func([]*policy.Policy)
	// Registry tells what is proven of images, and Metadata what registries know of those that
	// a suite says nothing of; nil where no registry is at hand.
	Registry interp.Registry
	Metadata func(ctx context.Context, reference string) (map[string]any, error)
	// Defaults fills resources in as an API server does, which the Kyverno command line does not.
	Defaults bool
}

// Run runs a suite. Where there is an error among the diagnostics, something that
// it names could not be used; if nothing could be, there are no rows.
func (r Runner) Run(ctx context.Context, s *Suite) (Results, diag.List) {
	out := Results{Suite: s}
	m, found := s.load()
	for _, d := range found {
		if d.Severity == diag.Error && d.Code == diag.BadSuite {
			return out, found
		}
	}
	if r.Rewrite != nil {
		r.Rewrite(m.policies)
	}
	for _, file := range slices.Sorted(maps.Keys(m.files)) {
		if r.Schemas == nil {
			break
		}
		if next, ds := r.Schemas.WithCRDFile(file, m.files[file]); !ds.HasErrors() {
			r.Schemas, r.Translate.Schemas = next, next
		}
	}
	found = append(found, m.deployed.Dependent(r.Translate.Release.String(), r.differences)...)
	run := &run{runner: r, suite: s, material: m, sessions: map[string]*session{}, bound: m.deployed.Bound(), alone: map[string]*judge.Judges{}}
	for i, row := range s.Results {
		pos := s.place("results", i)
		rows := run.row(ctx, row)
		for j := range rows {
			rows[j].Pos, rows[j].Policy, rows[j].Rule, rows[j].Expected = pos, row.Policy, row.Rule, row.Expected()
			if rows[j].Kind == "" {
				rows[j].Kind = row.Kind
			}
		}
		out.Rows = append(out.Rows, rows...)
	}
	if len(s.Checks) > 0 {
		out.Rows = append(out.Rows, RowResult{Pos: s.Pos, Verdict: NotJudged, Reason: "checks are assertions on the responses of Kyverno's engine"})
	}
	return out, append(found, run.found...)
}

func (r Runner) differences(p *admissionregistrationv1.ValidatingAdmissionPolicy) []apiserver.Difference {
	return apiserver.Differences(p, r.Translate.Release)
}

// A run is one suite on its way.
type run struct {
	runner Runner
	suite  *Suite
	material
	found    diag.List
	sessions map[string]*session      // by policy and mocked values
	bound    judge.Deployed           // the native policies, each with a binding
	alone    map[string]*judge.Judges // of one of them, or of all where the name is empty
}

// row judges one row: a result for each resource that it means.
func (r *run) row(ctx context.Context, row Row) []RowResult {
	if why := row.unsupported(); why != "" {
		return r.each(row, RowResult{Verdict: NotJudged, Reason: why})
	}
	if c := r.deleting(row.Policy); c != nil {
		return r.deletes(ctx, row, c)
	}
	p, native := r.policy(row.Policy), r.isNative(row.Policy)
	switch {
	case r.mutations.Has(row.Policy) && (row.NativeMutating || p == nil):
		return r.mutateNatively(ctx, row)
	case native && (row.NativePolicy || p == nil):
		return r.natively(ctx, row)
	case p == nil && r.unreadKind(row.Policy) != "":
		return r.each(row, RowResult{Verdict: NotJudged, Reason: fmt.Sprintf("the kind %s is not read", r.unreadKind(row.Policy))})
	case p == nil:
		return r.each(row, RowResult{Verdict: Excluded, Reason: fmt.Sprintf("the suite's policies define no %s", row.Policy)})
	case !p.InCEL() && !slices.ContainsFunc(policy.Expand(p), func(rule *policy.Rule) bool { return row.means(rule.Name) }):
		return r.each(row, RowResult{Verdict: Excluded, Reason: fmt.Sprintf("the policy has no rule %s", row.Rule)})
	}
	if p.Validating != nil && p.Validating.Mode == "JSON" {
		return r.payload(ctx, row, p)
	}
	judge := r.judge
	if m := p.Mutating; m != nil {
		if m.Existing && (m.ChangesOthers() || len(r.suite.TargetResources) > 0) {
			return r.targets(ctx, row, p)
		}
		judge = r.mutate
	}
	if p.Generating != nil {
		judge = r.generate
	}
	for _, rule := range p.Rules {
		switch {
		case !row.means(rule.Name) || rule.Type() == "validate":
		case rule.VerifyImages != nil && r.runner.Registry != nil:
		case rule.Mutate != nil && rule.Mutate.Existing:
			return r.targets(ctx, row, p)
		case rule.Mutate != nil:
			judge = r.mutate
		case rule.Generate != nil:
			judge = r.generate
		default:
			return r.each(row, RowResult{Verdict: NotJudged, Reason: fmt.Sprintf("rules of type %s are not judged", ruleType(rule))})
		}
	}
	return r.over(row, func(o manifest.Object) []RowResult { return judge(ctx, row, p, o) })
}

// over judges each resource that a row means.
func (r *run) over(row Row, judge func(manifest.Object) []RowResult) (out []RowResult) {
	for _, name := range r.wanted(row) {
		matched := false
		for _, o := range r.resources {
			if row.selects(o, name) {
				matched = true
				out = append(out, judge(o)...)
			}
		}
		if !matched {
			out = append(out, RowResult{Resource: strings.Join([]string{row.Kind, name}, "/"), Verdict: Excluded, Reason: "the resource is not among those of the suite"})
		}
	}
	return out
}

func ruleType(r *policy.Rule) string {
	if t := r.Type(); t != "" {
		return t
	}
	return "none"
}

// unsupported is why a row cannot be judged by what it asks for.
func (r Row) unsupported() string {
	if r.wrong {
		return "the row has an error"
	}
	return ""
}

// each is one result for each resource that the row lists by name.
func (r *run) each(row Row, result RowResult) []RowResult {
	names := r.wanted(row)
	if len(names) == 0 {
		names = []string{""}
	}
	out := make([]RowResult, len(names))
	for i, name := range names {
		out[i] = result
		out[i].Resource = strings.Trim(row.Kind+"/"+name, "/")
	}
	return out
}

func (r *run) policy(name string) *policy.Policy {
	for _, p := range r.policies {
		if hasName(p, name) {
			return p
		}
	}
	return nil
}

// deleting is the DeletingPolicy of a name.
func (r *run) deleting(name string) *policy.Cleanup {
	for _, c := range r.cleanups {
		if c.Deleting != nil && (name == c.Name || name == c.Namespace+"/"+c.Name) {
			return c
		}
	}
	return nil
}

// unreadKind is the kind of a policy that is not read; "" where there is none of the
// name.
func (r *run) unreadKind(name string) string {
	for _, u := range r.unread {
		if name == u.Name || name == u.Namespace+"/"+u.Name {
			return u.Kind
		}
	}
	return ""
}

// means tells whether the row is about a rule: the one that it names, or what that
// one is expanded to.
func (r Row) means(rule string) bool {
	return rule == r.Rule || rule == "autogen-"+r.Rule || rule == "autogen-cronjob-"+r.Rule
}

// wanted are the resources of a row, each name once in the row's order: those that
// it lists, else all of its kind.
func (r *run) wanted(row Row) []string {
	names := slices.Clone(row.names())
	for _, s := range row.ResourceSpecs {
		names = append(names, strings.Trim(s.Namespace+"/"+s.Name, "/"))
	}
	if len(names) > 0 {
		return names
	}
	for _, o := range r.resources {
		if row.ofKind(o) && (row.Namespace == "" || namespaceOf(o) == row.Namespace) {
			names = append(names, namespaceOf(o)+"/"+o.Meta("name"))
		}
	}
	return slices.Compact(names)
}

// namespaceOf is where the Kyverno command line puts an object that names no
// namespace, whatever its kind.
func namespaceOf(o manifest.Object) string {
	if n := o.Meta("namespace"); n != "" {
		return n
	}
	return "default"
}

func (r Row) ofKind(o manifest.Object) bool {
	return r.Kind == "" || r.Kind == o.Kind()
}

// selects tells whether a resource has the kind, namespace and name that the row
// wants. The name may have the namespace in front.
func (r Row) selects(o manifest.Object, name string) bool {
	if !r.ofKind(o) || r.Namespace != "" && namespaceOf(o) != r.Namespace {
		return false
	}
	return name == o.Meta("name") || name == namespaceOf(o)+"/"+o.Meta("name")
}

// A session is a policy with the values that are mocked for a resource.
type session struct {
	mocking
	judges *judge.Judges
	// targets are those of the rules as the API server would have them, by name.
	targets map[string]translate.Target
	err     error
}

// session compiles a policy for a resource, once for all that have the same values.
func (r *run) session(p *policy.Policy, resource string) *session {
	shared := r.values.forResource(p.Name, resource)
	k := fmt.Sprintf("%p %s", p, valueKey(shared))
	if s, ok := r.sessions[k]; ok {
		return s
	}
	s := &session{targets: map[string]translate.Target{}}
	r.sessions[k] = s
	if s.mocking, s.err = mock(p, r.values, resource); s.err != nil {
		return s
	}
	options := compile.Options{Translate: r.runner.Translate}
	objects := slices.Concat(r.objects, s.objects)
	cluster := judge.ClusterState{Objects: objects, World: r.world(objects), Deployed: r.bound.From(p.FullName()), AllNamespaces: true}
	in := compile.Input{Policies: []*policy.Policy{s.policy}, Exceptions: r.exceptions}
	if s.judges, s.err = judge.Compile(in, options, cluster); s.err != nil {
		return s
	}
	s.note(s.judges.Compiled)
	if len(s.replaced) > 0 {
		in.Policies = []*policy.Policy{p}
		s.note(compile.Policies(in, options))
	}
	return s
}

// note keeps where the rules are judged.
func (s *session) note(c compile.Result) {
	for _, rule := range c.Rules {
		for _, form := range rule.Forms {
			s.targets[form.Name] = rule.Target
		}
	}
}
