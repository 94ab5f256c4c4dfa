package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/migrate/compare"
	"github.com/kvap/kvap/policy"
)

// asksCluster tells that nobody has named policies: the cluster's are meant, and the PATHs
// are what is judged by them.
func (f evalFlags) asksCluster(paths []string) bool {
	given := len(f.resources)+len(f.requests)+len(f.documents) > 0
	return f.kustomize == "" && (len(paths) == 0) == given
}

// errNothingToJudge is of PATHs that are policies, with nothing beside them.
var errNothingToJudge = errors.New("eval needs something to judge: --resource FILE or --requests FILE; without policies among the PATHs, these are judged by the cluster's")

// holdPolicies tells whether some files may have policies.
func holdPolicies(sources []input.Source) bool {
	return slices.ContainsFunc(sources, func(s input.Source) bool { return policy.MayHold(s.Data) })
}

// prepareCluster compiles what a cluster has, with all native policies in it as they are. Of
// those that deny a request, an API server names one.
func (f evalFlags) prepareCluster(cmd *cobra.Command) (*evaluation, error) {
	choices, err := f.Choices()
	if err != nil {
		return nil, err
	}
	e := &evaluation{labels: f.labels, told: map[string]bool{}, missing: map[diag.Pos]judge.Lookup{}}
	if err := e.readObjects(slices.Concat(f.param, f.context), cmd.InOrStdin()); err != nil {
		return nil, err
	}
	if e.registry, err = f.registry(); err != nil {
		return nil, err
	}
	c, err := clusterFlags{kubeconfig: f.kubeconfig, timeout: f.timeout}.connect()
	if err != nil {
		return nil, err
	}
	if choices, err = f.ChoicesFor(c.Release, choices); err != nil {
		return nil, err
	}
	there, left, err := compare.Whole(commandContext(cmd), compare.Options{
		Cluster: c, Translate: choices.Translate, Counts: func(namespace string) bool { return excepts(f.exempt, namespace) },
	})
	if err != nil {
		return nil, comparisonError(err)
	}
	for _, err := range left {
		e.found = append(e.found, diag.Errorf(diag.Pos{}, diag.Unreadable, "left out: %v", err))
	}
	e.schemas, choices.Translate.Schemas = there.Schemas, there.Schemas
	e.found = append(e.found, there.Found...)
	e.objects = append(e.objects, there.Known...)
	choices.Rewrite(there.Policies)
	e.judges, err = judge.Compile(compile.Input{Policies: there.Policies, Exceptions: there.Exceptions, Found: there.Found},
		compile.Options{Translate: choices.Translate}, judge.Cluster{Objects: e.objects, World: e.world(), Deployed: there.Deployed})
	if err != nil {
		return nil, exit.Usage(err)
	}
	e.out, e.failOn = f.newOutput(cmd.OutOrStdout()), f.failOn
	return e, nil
}
