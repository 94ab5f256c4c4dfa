package interp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
)

// fill is a document with its variables replaced by what they give.
func (v *vars) fill(d *template) (expr.Value, error) {
	switch {
	case d.fixed:
		return expr.Value{Data: d.constant}, nil
	case d.text != nil:
		return v.fillText(d.text)
	case d.fields != nil:
		m, parts := make(map[string]any, len(d.fields)), make(map[string]expr.Provenance, len(d.fields))
		keys, err := v.fillMap(d, func(key string, d *template) error {
			value, err := v.fill(d)
			m[key], parts[key] = value.Data, value.From
			return err
		})
		return expr.Value{Data: m, From: expr.MapOf(parts).And(keys)}, err
	}
	list := make([]any, len(d.items))
	var from expr.ListProvenance
	for i, item := range d.items {
		value, err := v.fill(item)
		if err != nil {
			return expr.Value{}, err
		}
		list[i] = value.Data
		from.Add(value.From)
	}
	return expr.Value{Data: list, From: from.Provenance()}, nil
}

// fillPattern is fill of a pattern, in which what is not the policy's own is told apart.
func (v *vars) fillPattern(d *template) (any, error) {
	switch {
	case d.fixed || v.reading.kyverno:
		value, err := v.fill(d)
		return value.Data, err
	case d.text != nil:
		return v.fillLeaf(d.text)
	case d.fields != nil:
		m := make(map[string]any, len(d.fields))
		_, err := v.fillMap(d, func(key string, d *template) (err error) {
			m[key], err = v.fillPattern(d)
			return err
		})
		return m, err
	}
	list := make([]any, len(d.items))
	for i, item := range d.items {
		value, err := v.fillPattern(item)
		if err != nil {
			return nil, err
		}
		list[i] = value
	}
	return list, nil
}

// fillLeaf is a leaf of a pattern. Operators of the policy keep their meaning, and so do a
// list or a map that a variable gives.
func (v *vars) fillLeaf(t *text) (any, error) {
	if t.single() == nil {
		return v.fillWords(t)
	}
	value, err := v.fillText(t)
	if err != nil {
		return nil, err
	}
	switch value.Data.(type) {
	case nil, []any, map[string]any:
		return value.Data, nil
	}
	if value.From.Origin == expr.OfPolicy {
		return value.Data, nil
	}
	g := given{value: value.Data, field: v.formats.ofValue(value.From)}
	if text, ok := value.Data.(string); ok && value.From.Origin == expr.OfCluster {
		w := plainWord(text)
		g.word = &w
	}
	return g, nil
}

// fillWords is a leaf of a pattern in which there are words of the policy.
func (v *vars) fillWords(t *text) (any, error) {
	f, err := v.fillParts(t)
	if err != nil {
		return nil, err
	}
	isOperator := func(p jmespath.Part) bool { return strings.ContainsAny(p.Text, "|&<>!") }
	if f.From().Origin == expr.OfPolicy || slices.ContainsFunc(t.tmpl.Parts, isOperator) {
		return f.Text, nil
	}
	w := wordOf(f)
	return given{value: f.Text, word: &w}, nil
}

// fillMap hands the values of a map on, each with its key filled in, and says who wrote the keys.
func (v *vars) fillMap(d *template, take func(key string, value *template) error) (keys expr.Origin, err error) {
	for _, f := range d.fields {
		key, origin, err := v.fillKey(f)
		if err != nil {
			return keys, err
		}
		keys = max(keys, origin)
		if err := take(key, f.value); err != nil {
			return keys, err
		}
	}
	return keys, nil
}

// fillKey is the key of an entry, and who wrote it; one that resolves to null stays as written.
func (v *vars) fillKey(f templateField) (string, expr.Origin, error) {
	if f.text == nil {
		return f.key, expr.OfPolicy, nil
	}
	value, err := v.fillText(f.text)
	if err != nil {
		return "", expr.OfPolicy, err
	}
	switch key := value.Data.(type) {
	case nil:
		return f.key, expr.OfPolicy, nil
	case string:
		return key, value.From.Origin, nil
	}
	return "", expr.OfPolicy, fmt.Errorf("the key %q must resolve to a string, not to %s", f.key, datum.TypeName(value.Data))
}

// fillText is a string with its variables replaced. One that is a single variable
// takes the type of its value.
func (v *vars) fillText(t *text) (expr.Value, error) {
	if t.err != nil {
		return expr.Value{}, t.err
	}
	if s, ok := t.tmpl.Constant(); ok {
		return expr.Value{Data: s}, nil
	}
	tmpl, err := v.ready(t)
	if err != nil {
		return expr.Value{}, err
	}
	return v.substitute(tmpl)
}

// ready is the template of a text, with all that its variables need loaded.
func (v *vars) ready(t *text) (*jmespath.Template, error) {
	if t.err != nil {
		return nil, t.err
	}
	tmpl := t.tmpl
	if v.deletes {
		tmpl = t.onDelete
	}
	for _, p := range tmpl.Parts {
		if p.Var == nil {
			continue
		}
		if err := v.prepare(p.Var.Raw); err != nil {
			return nil, err
		}
	}
	return tmpl, nil
}

// fillString is a text that must give a string.
func (v *vars) fillString(t *text) (string, error) {
	value, err := v.fillText(t)
	if err != nil {
		return "", err
	}
	s, ok := value.Data.(string)
	if !ok {
		return "", notText{t.tmpl.Text, datum.TypeName(value.Data)}
	}
	return s, nil
}

// notText is the error of a variable that gives no string where one must be.
type notText struct {
	text, found string
}

func (e notText) Error() string {
	return fmt.Sprintf("%q must resolve to a string, not to %s", e.text, e.found)
}
