package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
)

// vars is what the expressions of one rule can see: the request, the rule's
// context entries, and the variables of the foreach loops around them. It is the
// scope of every expression.
type vars struct {
	ctx     context.Context
	request map[string]any // the names that are always there
	deletes bool           // request.object means request.oldObject
	levels  []*level       // the rule's own, then one for each loop
	loaders []*loader      // of all levels, in the order of their definition
	// within is the number of loaders that may be asked: while one is loading,
	// those in front of it.
	within   int
	size     *meter
	world    expr.World
	registry string
	reading
}

// A level is a scope that ends: of a rule, or of one element of a loop.
type level struct {
	values  map[string]expr.Value
	loaders int // of the levels below
}

// A loader is a context entry that is loaded when an expression names it.
type loader struct {
	name  string
	level *level
	load  func(*vars) (value expr.Value, merge bool, err error)
	// tried is set by the first attempt, also by a failed one: later expressions
	// then find no such key.
	tried  bool
	loaded bool
}

func newVars(a *preparedRequest) *vars {
	v := &vars{
		ctx: a.ctx, request: a.data, deletes: a.deletes(), size: a.size,
		world: a.world, registry: a.limits.registry(), reading: a.reading,
	}
	v.push(nil)
	return v
}

// push opens a level.
func (v *vars) push(values map[string]expr.Value) *level {
	if values == nil {
		values = map[string]expr.Value{}
	}
	l := &level{values: values, loaders: len(v.loaders)}
	v.levels = append(v.levels, l)
	v.forget()
	return l
}

// pop closes the innermost level.
func (v *vars) pop() {
	last := v.levels[len(v.levels)-1]
	v.levels = v.levels[:len(v.levels)-1]
	v.loaders = v.loaders[:last.loaders]
	v.within = len(v.loaders)
	v.forget()
}

// forget lets entries that failed to load be tried again.
func (v *vars) forget() {
	for _, l := range v.loaders {
		l.tried = l.loaded
	}
}

// define adds a context entry to the innermost level.
func (v *vars) define(l *loader) {
	l.level = v.levels[len(v.levels)-1]
	v.loaders = append(v.loaders, l)
	v.within = len(v.loaders)
}

// Lookup finds a name at the root of an expression.
func (v *vars) Lookup(name string) (value expr.Value, found bool, err error) {
	if err := v.prepare(name); err != nil {
		return expr.Value{}, false, err
	}
	value, found = v.find(name)
	return value, found, nil
}

func (v *vars) find(name string) (expr.Value, bool) {
	for i := len(v.levels) - 1; i >= 0; i-- {
		if value, ok := v.levels[i].values[name]; ok {
			return value, true
		}
	}
	data, ok := v.request[name]
	from := expr.Provenance{Origin: expr.OfRequest}
	if name == "request" {
		from = requestSource()
	}
	return expr.Value{Data: data, From: from}, ok
}

// requestSource is the source of the request: its objects have fields.
func requestSource() expr.Provenance {
	object := expr.Provenance{Origin: expr.OfRequest, At: []string{}}
	return expr.MapOf(map[string]expr.Provenance{"object": object, "oldObject": object}).And(expr.OfRequest)
}

// prepare loads the entries that the text of an expression names, wherever in it
// the name stands: also in a string, and also on a side of an || that turns out
// not to matter. What they fail with is the failure of the expression.
func (v *vars) prepare(text string) error {
	for i := 0; i < v.within; i++ {
		l := v.loaders[i]
		if l.tried || !hasWord(text, l.name) {
			continue
		}
		if err := v.load(l, i); err != nil {
			return err
		}
	}
	return nil
}

func (v *vars) load(l *loader, index int) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	l.tried = true
	within := v.within
	v.within = index
	defer func() { v.within = within }()
	value, merge, err := l.load(v)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to load the context entry %s: %w", l.name, err)
	}
	if err := v.size.add(value.Data); err != nil {
		return fmt.Errorf("failed to load the context entry %s: %w", l.name, err)
	}
	if merge {
		if old, ok := v.find(l.name); ok {
			value = expr.Value{Data: merged(old.Data, value.Data), From: expr.Provenance{Origin: max(old.From.Origin, value.From.Origin)}}
		}
	}
	l.level.values[l.name] = value
	l.loaded = true
	return nil
}

// merged puts new over old: maps key by key, anything else as a whole.
func merged(old, value any) any {
	o, ok := old.(map[string]any)
	n, isMap := value.(map[string]any)
	if !ok || !isMap {
		return value
	}
	out := maps.Clone(o)
	for k, v := range n {
		out[k] = merged(o[k], v)
	}
	return out
}

// hasWord tells whether a text has a name as a word of its own: not behind a dot,
// a letter or a digit, and ending where a word ends.
func hasWord(text, name string) bool {
	if name == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		if startsWord(text[:i]) && endsWord(text[i:i+len(name)], text[i+len(name):]) {
			return true
		}
		from = i + 1
	}
}

func startsWord(before string) bool {
	if before == "" {
		return true
	}
	c := before[len(before)-1]
	return c != '.' && !isAlphanumeric(c)
}

// endsWord tells whether there is a word boundary between a name and what
// follows it.
func endsWord(name, after string) bool {
	inside := isWordByte(name[len(name)-1])
	return after == "" && inside || after != "" && isWordByte(after[0]) != inside
}

func isWordByte(c byte) bool { return c == '_' || isAlphanumeric(c) }

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// errAbsent is the error of a loader that has nothing to load: its name is then
// not there at all.
var errAbsent = errors.New("there is nothing to load")

// A meter bounds how much data the context entries of one request may bring. It
// only grows: loops and rules add up.
type meter struct {
	left int // negative: no bound
}

// maxValue bounds a value where nothing else does.
const maxValue = 64 << 20

// add counts a value by its JSON text, as far as there is room for it.
func (m *meter) add(value any) error {
	room := m.left
	if room < 0 {
		room = maxValue
	}
	n := datum.JSONSize(value, room)
	switch {
	case n > room && m.left < 0:
		return fmt.Errorf("the context entry is larger than %d bytes", maxValue)
	case n > room:
		m.left = 0
		return fmt.Errorf("the context entries of the request are larger than the limit; load less, or raise the limit")
	case datum.TooDeep(value):
		return fmt.Errorf("the context entry has more than %d levels", datum.MaxDepth)
	case m.left >= 0:
		m.left -= n
	}
	return nil
}
