package convert

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/policy/validity"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A Compilation is what became of the input, in the order of the input.
type Compilation struct {
	compile.Result
	Exceptions []*policy.Exception
	Cleanups   []*policy.Cleanup
	Unread     []*policy.Unread // what nothing of kvap enforces, and somebody may
	Found      diag.List        // of reading and of compiling
	shared     bool             // rules share objects across policies
	// Kyverno is set where policies become those of Kyverno's kinds in CEL: their objects
	// are in it, and not in the Result.
	Kyverno *celpolicy.Conversion
	Cleaned []celpolicy.Cleaned // what became of cleanup policies there
}

// Compile reads and compiles. What cannot be read is in Found, and the rest
// is compiled all the same.
func Compile(sources []input.Source, c Choices) *Compilation {
	done := &Compilation{shared: c.Translate.Pack == translate.PackMatch}
	for _, s := range sources {
		done.parse(s)
	}
	done.dropRepeated()
	c.Rewrite(done.Policies)
	c.Emit.Files = input.NamesBelow(sources)
	done.Result = compile.Policies(compile.Input{Policies: done.Policies, Exceptions: done.Exceptions, Found: done.Found},
		compile.Options{Translate: c.Translate, Emit: c.Emit})
	if c.To == ToKyverno {
		done.toKyverno(c)
	}
	broken := map[diag.Pos]diag.Severity{} // where reading an expression said that it is
	for _, d := range done.Found {
		if d.Code == diag.BadExpression {
			broken[d.Pos] = d.Severity
		}
	}
	for _, d := range done.Diagnostics {
		if said, ok := broken[d.Pos]; d.Code != diag.BadExpression || !ok || d.Severity < said { // else it is told
			done.Found = append(done.Found, d)
		}
	}
	return done
}

// changesPolicies tells of a file of kustomize that does more than list the files of its
// folder.
func changesPolicies(s input.Source) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.Name), ".yaml"), ".yml")
	return name == "kustomization" && regexp.MustCompile(`(?m)\.\./|^(patch\w*|name(Prefix|Suffix)|replacements|components|transformers):`).Match(s.Data)
}

func (done *Compilation) parse(s input.Source) {
	if s.Found && changesPolicies(s) {
		done.Found = append(done.Found, diag.Warnf(diag.Pos{File: s.Name}, diag.OtherKind,
			"kustomize changes or adds policies here, and the files of the folder are read as they are; name %s with -k to read what it makes", path.Dir(s.Name)))
		return
	}
	if s.Found && !policy.MayHold(s.Data) {
		done.Found = append(done.Found, diag.Notef(diag.Pos{File: s.Name}, diag.OtherKind,
			"no document in this file is a policy; it is passed over"))
		return
	}
	f, ds := policy.Parse(s.Name, s.Data)
	if s.Found {
		ds = passOverAssertions(f, ds)
	}
	for _, c := range f.Cleanups {
		if at, err := interp.NewCleanup(c, nil, &interp.Offline{}, interp.Limits{}).BrokenAt(); err != nil {
			ds = append(ds, diag.Errorf(at, diag.BadExpression, "the policy deletes nothing, for this does not compile: %s", validity.FirstIssue(err)))
		}
	}
	for _, p := range f.Policies {
		if at, err := interp.BrokenAt(p, &interp.Offline{}); err != nil {
			ds = append(ds, diag.Errorf(at, diag.BadExpression, "the policy makes nothing, for this does not compile: %s", validity.FirstIssue(err)))
		}
	}
	done.Policies = append(done.Policies, f.Policies...)
	done.Exceptions = append(done.Exceptions, f.Exceptions...)
	done.Cleanups = append(done.Cleanups, f.Cleanups...)
	done.Unread = append(done.Unread, f.Unread...)
	done.Found = append(done.Found, ds...)
}

// passOverAssertions takes out what a test expects of a policy: an object with a
// status and no spec. Folders of policies often hold their tests.
func passOverAssertions(f *policy.File, ds diag.List) diag.List {
	asserts := func(kind string, doc *policy.Node) bool {
		if doc.Get("status") == nil || doc.Get("spec") != nil {
			return false
		}
		ds = slices.DeleteFunc(ds, func(d diag.Diagnostic) bool {
			return slices.Contains([]diag.Code{diag.Missing, diag.UnreadKind, diag.OtherEngine, diag.OnSchedule}, d.Code) && d.Line == doc.Pos.Line && d.Col == doc.Pos.Col
		})
		ds = append(ds, diag.Notef(doc.Pos, diag.OtherKind, "this %s has a status and no spec, as in the assertion of a test; it is passed over", kind))
		return true
	}
	f.Policies = slices.DeleteFunc(f.Policies, func(p *policy.Policy) bool { return asserts(p.Kind, p.Source) })
	f.Cleanups = slices.DeleteFunc(f.Cleanups, func(c *policy.Cleanup) bool { return asserts(c.Kind, c.Source) })
	f.Unread = slices.DeleteFunc(f.Unread, func(u *policy.Unread) bool { return asserts(u.Kind, u.Source) })
	return ds
}

// dropRepeated leaves out a policy, a cleanup policy or an exception that has been read before, and
// warns where two of one name differ: a cluster holds only one of them.
func (done *Compilation) dropRepeated() {
	type seen struct {
		pos    diag.Pos
		source *policy.Node
	}
	first := map[string]seen{}
	repeats := func(what, within string, pos diag.Pos, source *policy.Node) bool {
		earlier, repeated := first[within+" "+what]
		switch {
		case !repeated:
			first[within+" "+what] = seen{pos, source}
		case string(policy.Marshal(source)) == string(policy.Marshal(earlier.source)):
			done.Found = append(done.Found, diag.Notef(pos, diag.Conflict, "%s is the same as at %s; it is passed over", what, earlier.pos))
			return true
		default:
			done.Found = append(done.Found, diag.Warnf(pos, diag.Conflict,
				"%s is defined at %s already, and differently; a cluster holds one of the two, so rename or remove one", what, earlier.pos))
		}
		return false
	}
	done.Policies = slices.DeleteFunc(done.Policies, func(p *policy.Policy) bool {
		return repeats(p.Kind+" "+p.Name, p.Namespace, p.Pos, p.Source)
	})
	done.Cleanups = slices.DeleteFunc(done.Cleanups, func(c *policy.Cleanup) bool {
		return repeats(c.Kind+" "+c.Name, c.Namespace, c.Pos, c.Source)
	})
	done.Exceptions = slices.DeleteFunc(done.Exceptions, func(e *policy.Exception) bool {
		group, _, _ := strings.Cut(e.Source.Get("apiVersion").Str, "/")
		return repeats("PolicyException "+e.Namespace+"/"+e.Name, group, e.Pos, e.Source)
	})
}

// Relations say which exceptions count, and which are idle.
func (done *Compilation) Relations() diag.List {
	return append(policy.Excepted(done.Policies, done.Exceptions), policy.Idle(done.Policies, done.Exceptions)...)
}

// Empty tells that there is nothing that somebody enforces.
func (done *Compilation) Empty() bool {
	return len(done.Policies)+len(done.Unread) == 0 && (done.Kyverno == nil || len(done.Cleanups) == 0)
}

// DuplicateKeys is how many keys took the place of one before.
func (done *Compilation) DuplicateKeys() (n int) {
	for _, d := range done.Found {
		if d.Code == diag.DuplicateKey {
			n++
		}
	}
	return n
}

// A group is the objects of one policy; policy is nil for an object that policies
// share, or may share one day: so that no file goes when a policy comes.
type group struct {
	policy   *policy.Policy
	cleanup  *policy.Cleanup // in its place
	objects  []vap.Objects
	mutating []mutating.Objects
	kyverno  []celpolicy.Object
}

// all are the objects as they are written, in the order in which they are to be applied.
func (g group) all() (out []any) {
	for _, o := range g.objects {
		out = append(out, o.All()...)
	}
	for _, o := range g.mutating {
		out = append(out, o.All()...)
	}
	for _, o := range g.kyverno {
		out = append(out, o)
	}
	return out
}

// byPolicy groups the objects by the policy that they come from.
func (done *Compilation) byPolicy() []group {
	if done.Kyverno != nil {
		return done.kyvernoGroups()
	}
	owner := make([]*policy.Policy, len(done.Objects))
	shared := make([]bool, len(done.Objects))
	for _, r := range done.Rules {
		for _, i := range r.Objects {
			shared[i] = done.shared && r.Source != nil
			owner[i] = r.Policy
		}
	}
	var groups []group
	at := map[*policy.Policy]int{}
	of := func(p *policy.Policy) *group {
		place, ok := at[p]
		if !ok {
			place = len(groups)
			at[p] = place
			groups = append(groups, group{policy: p})
		}
		return &groups[place]
	}
	for i, o := range done.Objects {
		if shared[i] {
			groups = append(groups, group{objects: []vap.Objects{o}})
			continue
		}
		g := of(owner[i])
		g.objects = append(g.objects, o)
	}
	written := map[int]bool{}
	for _, r := range done.Rules {
		for _, i := range r.Mutating {
			o := done.Mutating[i]
			switch {
			case written[i]:
			case o.Draft.Shared:
				groups = append(groups, group{mutating: []mutating.Objects{o}})
			default:
				g := of(r.Policy)
				g.mutating = append(g.mutating, o)
			}
			written[i] = true
		}
	}
	return groups
}

// Report fills the values that are rendered.
func (done *Compilation) Report() report.Conversion {
	rules := done.rulesOf()
	var policies []report.Policy
	for _, p := range done.Policies {
		row := report.Policy{Name: p.Name, Kind: p.Kind, Namespace: p.Within(), File: p.Pos.File}
		for _, r := range rules[p] {
			row.Rules = append(row.Rules, done.row(r))
		}
		policies = append(policies, row)
	}
	for _, u := range done.Unread { // one rule that nothing of kvap carries out
		policies = append(policies, report.Policy{Name: u.Name, Kind: u.Kind, Namespace: u.Namespace, File: u.Pos.File, Rules: []report.Rule{
			{Name: u.Name, Target: report.Unsupported, Codes: []diag.Code{u.Code}, Line: u.Pos.Line, Reason: u.Reason},
		}})
	}
	return report.New(append(policies, done.cleanupRows()...), done.Found)
}

func (done *Compilation) row(r *compile.Rule) report.Rule {
	row := report.Rule{
		Name: r.Name(), Type: r.Type(), Line: r.Pos().Line, Target: report.Target(r.Target), Codes: r.Codes, Reason: r.Reason,
	}
	if why := r.NotServed(); why != "" {
		row.Target, row.Reason = report.Unsupported, why
	}
	if done.Kyverno != nil {
		return done.kyvernoRow(r, row)
	}
	row.Objects = done.ObjectNames(r)
	return row
}
