package controller

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A compiler compiles all policies, and of those that are as before nothing anew.
type compiler struct {
	release cel.Release
	exclude []string

	cache      *compile.Cache
	schemas    *schema.Set
	policies   []*policy.Policy
	exceptions []*policy.Exception
	result     compile.Result
}

// compile is as the command line compiles, with one pack for what matches alike,
// guards, and kvap's own params.
func (c *compiler) compile(s shelf, schemas *schema.Set) compile.Result {
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
	if c.cache != nil && slices.Equal(c.policies, in.Policies) {
		return c.result
	}
	if c.cache == nil {
		c.cache = compile.NewCache()
	}
	c.schemas, c.policies, c.exceptions = schemas, in.Policies, slices.Clone(s.exceptions)
	c.result = compile.Policies(in, compile.Options{
		Translate: translate.Options{
			Release: c.release, Schemas: schemas,
			Pack: translate.PackMatch, Guard: translate.GuardAuto, Params: translate.ParamsKvap,
		},
		Emit:  vap.EmitOptions{ExcludeNamespaces: c.exclude},
		Cache: c.cache,
	})
	return c.result
}
