package controller

import (
	"context"
	"slices"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A compiler compiles all policies, and of those that are as before nothing anew.
type compiler struct {
	options   Options
	mutations bool // rules that mutate become native
	merging   translate.Merging

	cache      *compile.Cache
	schemas    *schema.Set
	policies   []*policy.Policy
	exceptions []*policy.Exception
	taken      []string
	result     compile.Result
}

// compile compiles as the command line does, with one pack for what matches alike, guards,
// kvap's own params, and names that nobody else has taken. Where the context ends meanwhile
// there is no result: it does so when the process ends or another replica leads. What a
// policy costs is bounded, and what those of one namespace cost together, so that none holds
// up the others.
func (c *compiler) compile(ctx context.Context, s policyList, schemas *schema.Set) (compile.Result, error) {
	in := compile.Input{Exceptions: s.exceptions}
	var found diag.List
	for _, source := range s.sources {
		if source.policy != nil {
			in.Policies = append(in.Policies, source.policy)
			found = append(found, source.found...)
		}
	}
	in.Found = found
	if c.schemas != schemas || !slices.Equal(c.exceptions, s.exceptions) {
		c.cache = nil
	}
	if c.cache != nil && slices.Equal(c.policies, in.Policies) && slices.Equal(c.taken, s.taken) {
		return c.result, nil
	}
	if c.cache == nil {
		c.cache = compile.NewCache()
	}
	c.schemas, c.policies, c.exceptions, c.taken = schemas, in.Policies, slices.Clone(s.exceptions), s.taken
	c.result = compile.Policies(in, compile.Options{
		Translate: translate.Options{
			Release: c.options.Release, Schemas: schemas,
			Pack: translate.PackMatch, Guard: translate.GuardAuto, Params: translate.ParamsKvap, OwnNamespace: c.options.Namespace,
			Mutations: c.mutations, Merging: c.merging, Repeatable: c.options.Fallback != NoFallback{},
		},
		Emit:           vap.EmitOptions{ExcludeNamespaces: c.options.ExcludeNamespaces, Taken: s.taken},
		Cache:          c.cache,
		Stopped:        func() bool { return ctx.Err() != nil },
		Steps:          compile.SharedSteps(in.Policies),
		NamespaceLimit: c.options.NamespaceLimit,
	})
	if c.result.Stopped {
		c.cache, c.policies = nil, nil
		return compile.Result{}, ctx.Err()
	}
	return c.result, nil
}
