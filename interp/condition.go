package interp

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp/internal/expr"
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
	switch {
	case d.fixed:
		return operand{value: d.constant}, nil
	case d.text != nil && d.text.single() == nil:
		f, err := v.fillParts(d.text)
		return operand{value: f.Text, from: f.From(), words: []word{wordOf(f)}, star: star}, err
	case d.items != nil:
		return v.listOperand(d, star)
	}
	value, err := v.fill(d)
	return operand{value: value.Data, from: value.From, field: v.formats.ofValue(value.From), star: star}, err
}

// listOperand is a list written in the policy.
func (v *vars) listOperand(d *template, star bool) (operand, error) {
	list := make([]any, len(d.items))
	var from expr.ListProvenance
	o := operand{star: star}
	for i, item := range d.items {
		element, err := v.operand(item, star)
		if err != nil {
			return operand{}, err
		}
		list[i] = element.value
		from.Add(element.from)
		if item.text == nil {
			o.words = append(o.words, plainWord(printed(element.value)))
		} else {
			o.words = append(o.words, element.word())
		}
	}
	o.value, o.from = list, from.Provenance()
	return o, nil
}

// wordOf is a string made of text and variables, in which the wildcards of the
// policy's own text count and no others do.
func wordOf(f expr.Filled) word {
	pieces := make([]word, len(f.Parts))
	for i, p := range f.Parts {
		pieces[i] = plainWord(p.Text)
		if p.From.Origin == expr.OfRequest {
			pieces[i] = dataWord(p.Text, false)
		}
	}
	return joined(pieces)
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
