package interp

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// conditions are preconditions or those of a deny, read once.
type conditions struct {
	any    []condition
	hasAny bool // an any that is there and empty is false
	all    []condition
}

type condition struct {
	pos        diag.Pos
	key, value *template
	operator   string
	message    string
	// star is set where a text of the request that is * is a pattern.
	star bool
}

// A purpose is what becomes of a request when conditions are true.
type purpose bool

const (
	denying  purpose = false // the rule is applied, or denies
	excusing purpose = true  // the rule is skipped
)

func readConditions(c *policy.Conditions, of purpose) *conditions {
	if c == nil {
		return nil
	}
	read := func(list []*policy.Condition) []condition {
		out := make([]condition, len(list))
		for i, c := range list {
			out[i] = condition{
				pos: c.Pos, key: readDocument(c.Key), value: readDocument(c.Value), operator: c.Operator, message: c.Message,
				star: starCounts(c.Operator, of),
			}
		}
		return out
	}
	return &conditions{any: read(c.Any), hasAny: c.Any != nil, all: read(c.All)}
}

// starCounts tells whether a text of the request that is exactly * is a pattern to an
// operator. Any other text of the request is itself. To Kyverno, all that have wildcards
// are patterns. Where * makes a condition true that denies, or false that excuses, it
// is one to kvap; otherwise not (deviation 9).
func starCounts(operator string, of purpose) bool {
	switch strings.ToLower(operator) {
	case "in", "anyin", "allin":
		return of == denying
	case "notin", "anynotin", "allnotin":
		return of == excusing
	}
	return false
}

// holds tells whether the conditions are true, with the messages of those that
// decided it. None at all are true. Both parts are looked at even if the first
// decides, so that an error in the second shows.
func (c *conditions) holds(v *vars) (bool, string, error) {
	if c == nil {
		return true, "", nil
	}
	anyTrue, anyMessage, err := c.anyHolds(v)
	if err != nil {
		return false, "", err
	}
	allTrue, allMessage, err := c.allHold(v)
	if err != nil {
		return false, "", err
	}
	return anyTrue && allTrue, joinMessages(anyMessage, allMessage), nil
}

func (c *conditions) anyHolds(v *vars) (bool, string, error) {
	if !c.hasAny {
		return true, "", nil
	}
	var failed []string
	for _, one := range c.any {
		ok, err := one.holds(v)
		if err != nil {
			return false, "", err
		}
		if ok {
			return true, one.message, nil
		}
		failed = append(failed, one.message)
	}
	return false, joinMessages(failed...), nil
}

func (c *conditions) allHold(v *vars) (bool, string, error) {
	var held []string
	for _, one := range c.all {
		ok, err := one.holds(v)
		if err != nil {
			return false, "", err
		}
		if !ok {
			return false, one.message, nil
		}
		held = append(held, one.message)
	}
	return true, joinMessages(held...), nil
}

func (c condition) holds(v *vars) (holds bool, err error) {
	if err := v.ctx.Err(); err != nil {
		return false, err
	}
	defer func() { observe(v.ctx, Observation{Pos: c.pos, Holds: holds, Err: err}) }()
	key, err := v.operand(c.key, c.star)
	if err != nil {
		return false, fmt.Errorf("failed to resolve the key of a condition: %w", err)
	}
	value, err := v.operand(c.value, c.star)
	if err != nil {
		return false, fmt.Errorf("failed to resolve the value of a condition: %w", err)
	}
	return v.reading.compare(key, c.operator, value)
}

// operand resolves a key or value, and finds out which of its texts are the policy's.
func (v *vars) operand(d *template, star bool) (operand, error) {
	value, err := v.fill(d)
	if err != nil || d.fixed {
		return operand{value: value}, err
	}
	from := v.sourceOf(d)
	o := operand{value: value, origin: from.origin, field: v.formats.of(from.at), star: star}
	if o.origin == ofPolicy || d.text != nil && d.text.single() != nil {
		return o, nil
	}
	if d.text != nil {
		w, err := v.wordOf(d.text, star)
		o.words = []word{w}
		return o, err
	}
	list, _ := value.([]any)
	for i, item := range d.items {
		w, err := v.itemWord(item, list[i], star)
		if err != nil {
			return o, err
		}
		o.words = append(o.words, w)
	}
	return o, nil
}

// itemWord is an element of a list written in the policy.
func (v *vars) itemWord(d *template, value any, star bool) (word, error) {
	switch {
	case d.text == nil || v.sourceOf(d).origin != ofRequest:
		return plainWord(printed(value)), nil
	case d.text.single() == nil:
		return v.wordOf(d.text, star)
	}
	return dataWord(value, star), nil
}

// wordOf is a string made of text and variables, in which the wildcards of the
// policy's own text count and no others do.
func (v *vars) wordOf(t *text, star bool) (word, error) {
	tmpl := t.tmpl
	if v.deletes {
		tmpl = t.onDelete
	}
	pieces := make([]word, len(tmpl.Parts))
	for i, p := range tmpl.Parts {
		if p.Var == nil {
			pieces[i] = plainWord(p.Text)
			continue
		}
		// An empty text beside it makes the variable an embedded one, which
		// resolves to text whatever its type.
		one := &jmespath.Template{Pos: tmpl.Pos, Text: tmpl.Text, Parts: []jmespath.Part{{}, p}}
		value, err := v.substitute(one)
		if err != nil {
			return word{}, err
		}
		pieces[i] = plainWord(printed(value))
		if v.originOf(templateRoots(one)) == ofRequest {
			pieces[i] = dataWord(pieces[i].text, star && len(tmpl.Parts) == 1)
		}
	}
	return joined(pieces), nil
}

// joinMessages joins those that are not empty.
func joinMessages(messages ...string) string {
	var out []string
	for _, m := range messages {
		if m != "" {
			out = append(out, m)
		}
	}
	return strings.Join(out, "; ")
}
