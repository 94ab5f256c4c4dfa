package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// readNative takes the native policies and bindings of a file: they need no
// translation, and are judged as they are. All else there is read by another.
func (m *material) readNative(file string, data []byte) (found diag.List) {
	if !strings.Contains(string(data), judge.DeployedGroup) {
		return nil
	}
	objects, _ := manifest.Read(file, data) // what is no YAML has been told
	for _, o := range objects {
		switch {
		case judge.IsDeployedMutation(o):
			found = append(found, m.mutations.Add(o)...)
		case judge.IsDeployed(o):
			found = append(found, m.deployed.Add(o)...)
		}
	}
	m.objects = append(m.objects, m.deployed.Params(objects)...)
	return found
}

// natively judges a row of a native policy: by the policy of that name, or by those
// that were made from rules of a policy of that name, which is not there itself.
func (r *run) natively(ctx context.Context, row Row) []RowResult {
	judges, err := r.nativeJudges(row)
	if err != nil {
		return r.each(row, RowResult{Verdict: NotJudged, Reason: err.Error()})
	}
	return r.over(row, func(o manifest.Object) []RowResult {
		out := RowResult{Resource: o.Title(), Kind: o.Kind()}
		request, err := r.request(&session{}, row.Policy, row.Rule, row.Operation, o)
		var opinions []judge.Opinion
		if err == nil {
			opinions, err = judges.Judge(ctx, request)
		}
		if err != nil {
			out.Verdict, out.Reason = NotJudged, err.Error()
			return []RowResult{out}
		}
		outcome := apiserver.NoMatch
		for _, op := range opinions {
			if row.meansNative(op) && op.Native.Graver(outcome) {
				outcome, out.Message = op.Native, op.NativeMessage
			}
		}
		out.weighNative(row.Expected(), outcome)
		return []RowResult{out}
	})
}

// mutateNatively judges a row of a native policy that mutates: whether it changed the resource, and
// what came of it. As on the Kyverno command line, it sees what mutate rules made of the resource.
func (r *run) mutateNatively(ctx context.Context, row Row) []RowResult {
	bound := r.mutations.Bound()
	one := bound.Named(row.Policy)
	mutator, err := one.Mutator(judge.ClusterState{Objects: slices.Concat(r.objects, r.deployed.Params(r.resources)), AllNamespaces: true})
	if err != nil {
		return r.each(row, RowResult{Verdict: NotJudged, Reason: err.Error()})
	}
	return r.over(row, func(o manifest.Object) []RowResult {
		out := RowResult{Resource: o.Title(), Kind: o.Kind()}
		request, err := r.request(&session{}, row.Policy, row.Rule, row.Operation, o)
		if err == nil {
			request, err = r.mutated(ctx, request, o, r.firstInCEL())
		}
		var object map[string]any
		outcome := apiserver.NoMatch
		if err == nil {
			var verdicts []apiserver.MutatingVerdict
			object, verdicts, err = mutator.Mutate(ctx, request)
			for _, v := range verdicts {
				if v.Outcome.Graver(outcome) {
					outcome, out.Message = v.Outcome, v.Message
				}
			}
		}
		if err != nil {
			out.Verdict, out.Reason = NotJudged, err.Error()
			return []RowResult{out}
		}
		out.weighNative(row.Expected(), outcome)
		if name := row.patched(); name != "" && out.Verdict == Passed && outcome == apiserver.Allow {
			r.compare(&out, name, object)
		}
		return []RowResult{out}
	})
}

// firstInCEL is the first of the policies that the Kyverno command line runs behind native ones.
func (r *run) firstInCEL() *policy.Policy {
	for _, p := range inOrder(r.policies) {
		if p.Mutating != nil {
			return p
		}
	}
	return nil
}

// nativeJudges judge by the policy that the row names, as a whole, or by the rules
// that native policies were made from.
func (r *run) nativeJudges(row Row) (*judge.Judges, error) {
	by, name := r.bound, ""
	if whole, ok := r.bound.Whole(row.Policy); ok && row.Rule == "" {
		by, name = whole, row.Policy
	}
	if j, ok := r.alone[name]; ok {
		return j, nil
	}
	objects := slices.Concat(r.objects, r.deployed.Params(r.resources))
	j, err := judge.New(compile.Result{}, nil, judge.ClusterState{Objects: objects, Deployed: by, AllNamespaces: true})
	r.alone[name] = j
	return j, err
}

// meansNative tells whether the row is about a rule that a native policy was made
// from. A rule in the row is a matter of policies that say what they were made from.
func (r Row) meansNative(o judge.Opinion) bool {
	if o.Rule.Rule.PolicyName() != r.Policy {
		return false
	}
	return r.Rule == "" || o.Rule.Name == r.Policy || r.means(o.Rule.Name)
}

func (out *RowResult) weighNative(want string, outcome apiserver.Outcome) {
	out.Native = string(outcome)
	switch got := statusOf(outcome); {
	case outcome == apiserver.Unknown:
		out.Verdict, out.Reason = NotJudged, out.Message
	case got == "none" && want == "skip":
		out.Verdict, out.Reason = Passed, "Excluded"
	case got == "none":
		out.Verdict, out.Reason = Excluded, "no policy looks at the resource"
	case got == want:
		out.Verdict, out.Reason = Passed, "Ok"
	default:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got)
	}
}

// isNative tells whether a name is that of a native policy, or of one that native
// policies were made from.
func (r *run) isNative(name string) bool {
	for _, p := range r.deployed.Policies {
		if p.Name == name || slices.Contains(r.deployed.Sources(p), name) {
			return true
		}
	}
	return false
}
