package incluster

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/schema"
)

// builtinFormats are the formats of the fields of built-in kinds and of those that projects publish, for rules that are judged
// in a cluster: two quantities of a request are equal there by their values, as natively.
func builtinFormats() (func(group, version, kind string, field []string) interp.Format, error) {
	builtin, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		return nil, err
	}
	return judge.Formats(builtin.WithPublished()), nil
}
