package controller

import (
	"context"
	"slices"
	"time"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/scan"
	"github.com/kvap/kvap/schema"
)

// The bounds of reports: how often everything is scanned, how long changes of
// policies gather before that, and how many results a report has.
const (
	scanEvery  = time.Hour
	scanSettle = 2 * time.Second
	maxResults = 50
)

// reports has the scanner know the policies that count.
type reports struct {
	scanner *scan.Scanner // nil where nobody asks for reports
	world   scan.World    // nil knows what the scanner has read before
	exclude []string
	last    []*compile.Rule
}

// run scans until the context ends.
func (r *reports) run(ctx context.Context) error {
	if r.scanner == nil {
		return nil
	}
	return r.scanner.Run(ctx)
}

// scan gives the scanner what was compiled, unless that is what it has. The compiler
// gives the same result as long as nothing changes.
func (r *reports) scan(in policyList, result compile.Result, schemas *schema.Set) {
	if r.scanner == nil || r.last != nil && slices.Equal(r.last, result.Rules) {
		return
	}
	r.last = append([]*compile.Rule{}, result.Rules...)
	r.scanner.Set(scan.Policies{Compiled: result, Exceptions: in.exceptions, Schemas: schemas, ExcludeNamespaces: r.exclude, World: r.world})
}
