package interp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A celDocument is a document of a template with expressions in its texts:
//
//	replicas: ((object.spec.replicas))      the value, of whatever type
//	name: "((object.metadata.name))-copy"   a text
//	note: \((as it stands))                 ((as it stands))
type celDocument struct {
	value  any       // as it stands, of what has no text with an expression in it
	parts  []celPart // of a text
	whole  bool      // the text is one expression, and nothing else
	items  []*celDocument
	fields []celField
	kind   policy.NodeKind
	plain  bool
}

type celField struct {
	key   string
	value *celDocument
}

// A celPart is a text, or an expression in it.
type celPart struct {
	text    string
	program cel.Program // nil for a text
}

// document compiles the expressions of a document. Without interpolation it has none.
func (c *celPolicy) document(n *policy.Node, interpolate bool) (*celDocument, error) {
	if !interpolate {
		return &celDocument{value: n.Value(), plain: true}, nil
	}
	d := &celDocument{kind: n.Kind}
	var err error
	switch n.Kind {
	case policy.Map:
		for _, f := range n.Fields {
			value, bad := c.document(f.Value, true)
			err = errors.Join(err, bad)
			d.fields = append(d.fields, celField{f.Key, value})
		}
	case policy.List:
		for _, item := range n.Items {
			value, bad := c.document(item, true)
			err = errors.Join(err, bad)
			d.items = append(d.items, value)
		}
	case policy.String:
		d.parts, err = c.parts(n.Str)
		d.whole = len(d.parts) == 1 && d.parts[0].program != nil
	default:
		d.value, d.plain = n.Value(), true
	}
	return d, err
}

// parts compiles the expressions of a text.
func (c *celPolicy) parts(text string) (out []celPart, err error) {
	parts, _ := policy.SplitTemplate(text) // what does not end was told where it was read
	for _, part := range parts {
		if part.Expression == "" {
			out = append(out, celPart{text: part.Text})
			continue
		}
		program, bad := c.compile(part.Expression, nil)
		err = errors.Join(err, bad)
		out = append(out, celPart{program: program})
	}
	return out, err
}

// fill evaluates the expressions of a document.
func (d *celDocument) fill(ctx context.Context, scope celScope) (any, error) {
	if d.plain {
		return copiedValue(d.value), nil
	}
	switch d.kind {
	case policy.Map:
		out := make(map[string]any, len(d.fields))
		for _, f := range d.fields {
			value, err := f.value.fill(ctx, scope)
			if err != nil {
				return nil, err
			}
			out[f.key] = value
		}
		return out, nil
	case policy.List:
		out := make([]any, len(d.items))
		for i, item := range d.items {
			var err error
			if out[i], err = item.fill(ctx, scope); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return d.text(ctx, scope)
}

func (d *celDocument) text(ctx context.Context, scope celScope) (any, error) {
	var out strings.Builder
	for _, part := range d.parts {
		if part.program == nil {
			out.WriteString(part.text)
			continue
		}
		value, err := scope.eval(ctx, part.program)
		if err != nil {
			return nil, err
		}
		if d.whole {
			return cellib.Data(value)
		}
		text, err := scalarText(value)
		if err != nil {
			return nil, err
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// scalarText is a value within a text.
func scalarText(v ref.Val) (string, error) {
	value, err := cellib.Data(v)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case bool, int64, float64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("an expression within a text must give a string, a number or a boolean, not a %s", v.Type().TypeName())
}
