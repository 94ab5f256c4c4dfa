package interp

import (
	"context"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp/internal/expr"
)

// Query is what a JMESPath expression finds in data, with nothing else in sight, as
// the projections of a GlobalContextEntry do.
func Query(ctx context.Context, expression string, data any, w World) (any, error) {
	e, err := parseQuery(expression, diag.Pos{})
	if err != nil {
		return nil, err
	}
	found, err := expr.Eval(ctx, e, expr.Value{Data: data}, expr.Surroundings{World: w})
	return found.Data, err
}
