package validity

import (
	"context"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Written reads policies that are about to be stored, and says all that is refused, as errors,
// and warned of. A policy for documents that no API server admits (evaluation.mode) is for
// others to judge: nothing of it is refused.
func Written(ctx context.Context, name string, text []byte, kinds Finder) (*policy.File, diag.List) {
	f, read := policy.Parse(name, text)
	found := append(read, Said(Check(ctx, f, kinds), read)...)
	if slices.ContainsFunc(f.Policies, forOthers) {
		for i := range found {
			found[i].Severity = max(found[i].Severity, diag.Warning)
		}
	}
	return f, found.Sort()
}

// forOthers tells of a policy that says by its mode that it is about no requests to an API server.
func forOthers(p *policy.Policy) bool {
	mode := p.Source.Get("spec").Get("evaluation").Get("mode")
	return p.InCEL() && mode != nil && mode.Kind == policy.String && !strings.EqualFold(mode.Str, "Kubernetes")
}
