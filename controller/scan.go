package controller

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/report"
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

// newScanner is what scans the objects that are there; nil where nobody asks for
// reports.
func newScanner(config *rest.Config, o Options, log logr.Logger) (*scan.Scanner, error) {
	if o.Reports == "" {
		return nil, nil
	}
	return scan.New(config, scan.Options{
		Report: report.ObjectOptions{Group: o.Reports, Max: maxResults}, Every: scanEvery, Settle: scanSettle,
	}, log.WithName("scan"))
}

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
