package interp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// fill is a document with its variables replaced by what they give.
func (v *vars) fill(d *template) (any, error) {
	switch {
	case d.fixed:
		return d.constant, nil
	case d.text != nil:
		return v.fillText(d.text)
	case d.fields != nil:
		return v.fillMap(d, v.fill)
	}
	list := make([]any, len(d.items))
	for i, item := range d.items {
		value, err := v.fill(item)
		if err != nil {
			return nil, err
		}
		list[i] = value
	}
	return list, nil
}

// fillPattern is fill of a pattern, in which what is not the policy's own is told apart.
func (v *vars) fillPattern(d *template) (any, error) {
	switch {
	case d.fixed || v.reading.kyverno:
		return v.fill(d)
	case d.text != nil:
		return v.fillLeaf(d)
	case d.fields != nil:
		return v.fillMap(d, v.fillPattern)
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
func (v *vars) fillLeaf(d *template) (any, error) {
	value, err := v.fill(d)
	if err != nil {
		return nil, err
	}
	from := v.sourceOf(d)
	switch value.(type) {
	case nil, []any, map[string]any:
		return value, nil
	}
	if from.origin == ofPolicy {
		return value, nil
	}
	g := given{value: value, field: v.formats.of(from.at)}
	_, isText := value.(string)
	switch single := d.text.single() != nil; {
	case single && (from.origin == ofRequest || !isText):
		return g, nil
	case !single && slices.ContainsFunc(d.text.tmpl.Parts, func(p jmespath.Part) bool { return strings.ContainsAny(p.Text, "|&<>!") }):
		return value, nil
	}
	w, err := v.wordOf(d.text, false)
	if err != nil {
		return nil, err
	}
	g.word = &w
	return g, nil
}

func (v *vars) fillMap(d *template, fill func(*template) (any, error)) (any, error) {
	m := make(map[string]any, len(d.fields))
	for _, f := range d.fields {
		value, err := fill(f.value)
		if err != nil {
			return nil, err
		}
		key, err := v.fillKey(f)
		if err != nil {
			return nil, err
		}
		m[key] = value
	}
	return m, nil
}

// fillKey is the key of an entry; one that resolves to null stays as written.
func (v *vars) fillKey(f templateField) (string, error) {
	if f.text == nil {
		return f.key, nil
	}
	value, err := v.fillText(f.text)
	if err != nil {
		return "", err
	}
	switch key := value.(type) {
	case nil:
		return f.key, nil
	case string:
		return key, nil
	}
	return "", fmt.Errorf("the key %q must resolve to a string, not to %s", f.key, datum.TypeName(value))
}

// fillText is a string with its variables replaced. One that is a single variable
// takes the type of its value.
func (v *vars) fillText(t *text) (any, error) {
	if t.err != nil {
		return nil, t.err
	}
	if s, ok := t.tmpl.Constant(); ok {
		return s, nil
	}
	tmpl, err := v.ready(t)
	if err != nil {
		return nil, err
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
	s, ok := value.(string)
	if !ok {
		return "", notText{t.tmpl.Text, datum.TypeName(value)}
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
