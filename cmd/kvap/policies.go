package main

import (
	"bytes"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// A policyInput is what is judged by: policies and their exceptions, and native
// objects as a cluster has them.
type policyInput struct {
	compilation
	sources  []input.Source
	deployed judge.Deployed
	// mutations are native policies that mutate, and unjudged says so, for those who do not
	// judge by them.
	mutations judge.DeployedMutations
	unjudged  diag.List
	params    []map[string]any // of the native policies
}

// readPolicies reads some paths and a kustomize folder, if there is one. What enforces
// nothing, or is refused by an API server of the release, is left out.
func readPolicies(paths []string, kustomize string, stdin io.Reader, release cel.Release) (*policyInput, error) {
	sources, found, err := input.Sources(paths, kustomize, stdin)
	if err != nil {
		return nil, err
	}
	in := &policyInput{sources: sources, compilation: compilation{found: found}}
	for _, s := range sources {
		if mayHoldNative(s.Data) {
			in.parseNative(s)
			continue
		}
		in.parse(s)
	}
	in.dropRepeated()
	in.found = append(in.found, in.deployed.Check(apiserver.NewChecker(release), release.String())...)
	in.found = append(in.found, in.deployed.Dependent(release.String(), func(p *admissionregistrationv1.ValidatingAdmissionPolicy) []apiserver.Difference {
		return apiserver.Differences(p, release)
	})...)
	in.readParams()
	return in, nil
}

// mayHoldNative tells a file of native objects from others before it is parsed.
func mayHoldNative(data []byte) bool {
	return len(data) < input.SizeLimit && bytes.Contains(data, []byte(judge.DeployedGroup))
}

// parseNative reads a file that may have native objects among others. What is wrong
// with the file itself, the parser of policies says.
func (in *policyInput) parseNative(s input.Source) {
	objects, _ := manifest.Read(s.Name, s.Data)
	taken := map[int]bool{} // lines
	for _, o := range objects {
		if judge.IsDeployedMutation(o) {
			in.found, in.unjudged = append(in.found, in.mutations.Add(o)...), append(in.unjudged, in.deployed.Add(o)...)
			taken[o.Pos.Line] = true
			continue
		}
		if judge.IsDeployed(o) {
			in.found = append(in.found, in.deployed.Add(o)...)
			taken[o.Pos.Line] = true
		}
	}
	before := len(in.found)
	s.Found = s.Found && len(taken) == 0
	in.parse(s)
	notes := slices.DeleteFunc(slices.Clone(in.found[before:]), func(d diag.Diagnostic) bool {
		return d.Code == diag.OtherKind && taken[d.Line]
	})
	in.found = append(in.found[:before], notes...)
}

// readParams looks for the params of native policies among the sources.
func (in *policyInput) readParams() {
	if !in.deployed.HasParams() {
		return
	}
	for _, s := range in.sources {
		if len(s.Data) < input.SizeLimit {
			objects, _ := manifest.Read(s.Name, s.Data) // as in parseNative
			in.params = append(in.params, in.deployed.Params(objects)...)
		}
	}
}

// empty tells that there is nothing to judge by, and that nothing else says why.
func (in *policyInput) empty() bool {
	return in.compilation.empty() && len(in.deployed.Policies) == 0 && !in.found.HasErrors()
}

// unclaimed are notes on native objects with which nothing can be compared: they do
// not say what they were made from, or that is not among the input.
func (in *policyInput) unclaimed() (found diag.List) {
	for _, p := range in.deployed.Policies {
		from := in.deployed.Sources(p)
		switch {
		case len(from) == 0:
			found = append(found, diag.Warnf(in.deployed.Pos(p), diag.OtherKind,
				"the ValidatingAdmissionPolicy %s does not say which policy it was made from, so there is nothing to compare it with; kvap eval judges by it alone", p.Name))
		case !slices.ContainsFunc(in.policies, func(source *policy.Policy) bool { return slices.Contains(from, source.FullName()) }):
			found = append(found, diag.Warnf(in.deployed.Pos(p), diag.MissingObject,
				"the ValidatingAdmissionPolicy %s was made from %s, which is not among the input, so there is nothing to compare it with; give both",
				p.Name, strings.Join(from, " and ")))
		}
	}
	return found
}
