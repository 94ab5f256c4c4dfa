package convert

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// An Input is what is judged by: policies and their exceptions, and native
// objects as a cluster has them.
type Input struct {
	Compilation
	Sources  []input.Source
	Deployed judge.Deployed
	// Mutations are native policies that mutate, and Unjudged says so, for those who do not
	// judge by them.
	Mutations judge.DeployedMutations
	Unjudged  diag.List
	Params    []map[string]any // of the native policies
}

// Read reads some paths and a kustomize folder, if there is one. What enforces
// nothing, or is refused by an API server of the release, is left out.
func Read(paths []string, kustomize string, stdin io.Reader, release cel.Release) (*Input, error) {
	sources, found, err := input.Sources(paths, kustomize, stdin)
	if err != nil {
		return nil, err
	}
	in := gather(sources, found)
	in.check(release)
	return in, nil
}

// ReadToCompare reads sources as Read does, save that native policies without a binding count
// everywhere. Their names are returned.
func ReadToCompare(sources []input.Source, found diag.List, release cel.Release) (in *Input, unbound []string) {
	in = gather(sources, found)
	for _, p := range in.Deployed.Policies {
		if len(in.Deployed.BindingsOf(p.Name)) == 0 {
			unbound = append(unbound, p.Name)
			in.Found = append(in.Found, diag.Notef(in.Deployed.Pos(p), diag.MissingObject,
				"the ValidatingAdmissionPolicy %s has no binding here; it is compared as if bound to everything, unless the other side binds it, and its action is not compared", p.Name))
		}
	}
	for _, p := range in.Mutations.Policies {
		if !in.Mutations.Binds(p.Name) {
			unbound = append(unbound, p.Name)
		}
	}
	in.Deployed, in.Mutations = in.Deployed.Bound(), in.Mutations.Bound()
	in.check(release)
	return in, unbound
}

// gather reads what is in the sources.
func gather(sources []input.Source, found diag.List) *Input {
	in := &Input{Sources: sources, Compilation: Compilation{Found: found}}
	for _, s := range sources {
		if mayHoldNative(s.Data) {
			in.parseNative(s)
			continue
		}
		in.parse(s)
	}
	in.dropRepeated()
	return in
}

// check leaves out what enforces nothing or is refused, and reads params.
func (in *Input) check(release cel.Release) {
	in.Found = append(in.Found, in.Deployed.Check(apiserver.NewChecker(release), release.String())...)
	in.Found = append(in.Found, in.Deployed.Dependent(release.String(), func(p *admissionregistrationv1.ValidatingAdmissionPolicy) []apiserver.Difference {
		return apiserver.Differences(p, release)
	})...)
	in.readParams()
}

// mayHoldNative tells a file of native objects from others before it is parsed.
func mayHoldNative(data []byte) bool {
	return len(data) < input.SizeLimit && bytes.Contains(data, []byte(judge.DeployedGroup))
}

// parseNative reads a file that may have native objects among others. What is wrong
// with the file itself, the parser of policies says.
func (in *Input) parseNative(s input.Source) {
	objects, _ := manifest.Read(s.Name, s.Data)
	taken := map[int]bool{} // lines
	for _, o := range objects {
		if judge.IsDeployedMutation(o) {
			in.Found, in.Unjudged = append(in.Found, in.Mutations.Add(o)...), append(in.Unjudged, in.Deployed.Add(o)...)
			taken[o.Pos.Line] = true
			continue
		}
		if judge.IsDeployed(o) {
			in.Found = append(in.Found, in.Deployed.Add(o)...)
			taken[o.Pos.Line] = true
		}
	}
	before := len(in.Found)
	s.Found = s.Found && len(taken) == 0
	in.parse(s)
	notes := slices.DeleteFunc(slices.Clone(in.Found[before:]), func(d diag.Diagnostic) bool {
		return d.Code == diag.OtherKind && taken[d.Line]
	})
	in.Found = append(in.Found[:before], notes...)
}

// readParams looks for the params of native policies among the sources.
func (in *Input) readParams() {
	if !in.Deployed.HasParams() {
		return
	}
	for _, s := range in.Sources {
		if len(s.Data) < input.SizeLimit {
			objects, _ := manifest.Read(s.Name, s.Data) // as in parseNative
			in.Params = append(in.Params, in.Deployed.Params(objects)...)
		}
	}
}

// Empty tells that there is nothing to judge by, and that nothing else says why.
func (in *Input) Empty() bool {
	return in.Compilation.Empty() && len(in.Deployed.Policies) == 0 && !in.Found.HasErrors()
}

// Unclaimed are notes on native objects with which nothing can be compared: they do
// not say what they were made from, or that is not among the input.
func (in *Input) Unclaimed() (found diag.List) {
	for _, p := range in.Deployed.Policies {
		from := in.Deployed.Sources(p)
		switch {
		case len(from) == 0:
			found = append(found, diag.Warnf(in.Deployed.Pos(p), diag.OtherKind,
				"the ValidatingAdmissionPolicy %s does not say which policy it was made from, so there is nothing to compare it with; kvap eval judges by it alone", p.Name))
		case !slices.ContainsFunc(in.Policies, func(source *policy.Policy) bool { return in.Deployed.HasRuleOf(p, source) }):
			found = append(found, diag.Warnf(in.Deployed.Pos(p), diag.MissingObject,
				"the ValidatingAdmissionPolicy %s was made from rules of %s that are not among the input, so there is nothing to compare it with; name the file of that policy as it was written",
				p.Name, strings.Join(from, " and ")))
		}
	}
	return found
}

// NoPolicy is the end of a run that found nothing to convert: likely it was
// pointed at the wrong place, and nobody should take that for success. found is what
// -v shows, and verbose tells that it is shown already.
func NoPolicy(paths []string, kustomize string, found diag.List, verbose bool) error {
	names := input.Names(paths, kustomize)
	if found.HasErrors() {
		return exit.Usage(fmt.Errorf("no policy in %s could be read", names))
	}
	hint := ""
	if !verbose && slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Severity == diag.Note }) {
		hint = "; -v says what was passed over"
	} else if len(found) == 0 && slices.ContainsFunc(paths, input.LeadsToFolder) {
		hint = "; of a folder, files that end in .yaml, .yml or .json are read, and no hidden folders"
	}
	return exit.Usage(fmt.Errorf("there is no policy in %s%s", names, hint))
}
