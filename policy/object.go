package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A reader turns nodes into the types of this package and collects what is wrong.
type reader struct {
	ds    diag.List
	beta  bool // the policy is of v2beta1
	again bool // what is read was read before, so nobody looks at ds
}

func (r *reader) fail(pos diag.Pos, code diag.Code, format string, args ...any) {
	r.ds = append(r.ds, diag.Errorf(pos, code, format, args...))
}

func (r *reader) warn(pos diag.Pos, code diag.Code, format string, args ...any) {
	r.ds = append(r.ds, diag.Warnf(pos, code, format, args...))
}

func (r *reader) note(pos diag.Pos, code diag.Code, format string, args ...any) {
	r.ds = append(r.ds, diag.Notef(pos, code, format, args...))
}

// An object is a mapping that is being read: what was asked for is known, what
// remains at the end is not. A null value counts as absent, as it does for the
// API server.
type object struct {
	r     *reader
	node  *Node
	what  string // for messages, for instance "a rule"
	known []string
	wrong bool // it is no map, and that was said
}

// object starts to read a mapping. A node of another kind is an error, and an
// object without fields.
func (r *reader) object(n *Node, what string) *object {
	o := &object{r: r, node: n, what: what}
	if n.Kind != Map {
		r.wrongType(n, "a map")
		o.node, o.wrong = &Node{Kind: Map, Pos: n.Pos}, true
	}
	return o
}

func (r *reader) wrongType(n *Node, want string) {
	hint := ""
	if want == "a string" {
		switch n.Kind {
		case Bool:
			hint = ": n, no and off without quotes are false in YAML; put it in quotes"
			if n.Bool {
				hint = ": y, yes and on without quotes are true in YAML; put it in quotes"
			}
		case Int, Float:
			hint = "; put it in quotes"
		}
	}
	r.fail(n.Pos, diag.WrongType, "%s must be %s, not %s%s", lastKey(n.Pos.Path), want, article(n.Kind), hint)
}

// lastKey names the end of a field path.
func lastKey(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[i+1:]
	}
	if path == "" {
		return "the document"
	}
	return path
}

// take is the value of a key, nil when it is absent or null.
func (o *object) take(key string) *Node {
	o.known = append(o.known, key)
	n := o.node.Get(key)
	if n == nil || n.Kind == Null {
		return nil
	}
	return n
}

// require is take for a key that must be there.
func (o *object) require(key string) *Node {
	n := o.take(key)
	if n == nil {
		o.missing(key)
	}
	return n
}

func (o *object) missing(key string) {
	if o.wrong {
		return
	}
	o.r.fail(o.node.Pos, diag.Missing, "%s needs the key %s", o.what, key)
}

// allow names keys that are known and not read.
func (o *object) allow(keys ...string) { o.known = append(o.known, keys...) }

// pos is the place of a key that is there.
func (o *object) pos(key string) diag.Pos {
	for _, f := range o.node.Fields {
		if f.Key == key {
			return f.Pos
		}
	}
	return o.node.Pos
}

// end reports the keys nobody asked for.
func (o *object) end() {
	for _, f := range o.node.Fields {
		if slices.Contains(o.known, f.Key) {
			continue
		}
		if place := o.belongs(f.Key); place != "" {
			o.r.fail(f.Pos, diag.UnknownKey, "%s has no key %q; it belongs in %s", o.what, f.Key, place)
			continue
		}
		if guess := diag.Nearest(f.Key, o.known); guess != "" {
			o.r.fail(f.Pos, diag.UnknownKey, "%s has no key %q; did you mean %s?", o.what, f.Key, guess)
			continue
		}
		o.r.fail(f.Pos, diag.UnknownKey, "%s has no key %q; remove it or move it to where it belongs", o.what, f.Key)
	}
}

// belongs is where a key that is often misplaced should stand, or "".
func (o *object) belongs(key string) string {
	switch o.what {
	case "a filter", "match", "exclude":
		switch key {
		case "kinds", "name", "names", "namespaces", "operations", "selector", "namespaceSelector", "annotations":
			return "resources"
		}
	case "resources":
		switch key {
		case "subjects", "roles", "clusterRoles":
			return "the filter, beside resources"
		}
	case "a rule":
		if key == "failureAction" && o.node.Get("verifyImages") != nil {
			return "each entry of verifyImages"
		}
		switch key {
		case "message", "pattern", "anyPattern", "deny", "foreach", "podSecurity", "cel", "failureAction":
			return "validate"
		}
	case "a policy's spec":
		switch key {
		case "match", "exclude", "validate", "mutate", "generate", "verifyImages", "preconditions", "context":
			return "a rule"
		case "failureAction":
			return "validate of a rule; the spec's key is validationFailureAction"
		}
	case "validate":
		switch key {
		case "validationFailureAction":
			return "the spec; the rule's key is failureAction"
		case "conditions":
			return "deny"
		case "match", "exclude", "preconditions", "context":
			return "the rule, beside validate"
		}
	case "a policy":
		if key == "rules" {
			return "spec"
		}
	}
	return ""
}

func (r *reader) str(n *Node) string {
	if n == nil {
		return ""
	}
	if n.Kind != String {
		r.wrongType(n, "a string")
		return ""
	}
	return n.Str
}

func (o *object) str(key string) string { return o.r.str(o.take(key)) }

func (r *reader) text(n *Node) Text {
	if n == nil {
		return Text{}
	}
	return Text{Pos: n.Pos, Value: r.str(n)}
}

func (o *object) text(key string) Text { return o.r.text(o.take(key)) }

// optional is a text that may be absent.
func (o *object) optional(key string) *Text {
	n := o.take(key)
	if n == nil {
		return nil
	}
	t := o.r.text(n)
	return &t
}

// needText is a text that must be there and not empty.
func (o *object) needText(key string) Text {
	n := o.require(key)
	t := o.r.text(n)
	if n != nil && n.Kind == String && n.Str == "" {
		o.r.fail(n.Pos, diag.Missing, "%s needs a value for %s; it is empty", o.what, key)
	}
	return t
}

// choice is a string out of a few.
func (o *object) choice(key string, allowed ...string) string {
	return o.r.choice(o.take(key), allowed...)
}

func (r *reader) choice(n *Node, allowed ...string) string {
	if n == nil {
		return ""
	}
	s := r.str(n)
	if n.Kind != String || slices.Contains(allowed, s) {
		return s
	}
	if guess := diag.Nearest(s, allowed); guess != "" {
		r.fail(n.Pos, diag.OutOfRange, "%s cannot be %q; did you mean %s?", lastKey(n.Pos.Path), s, guess)
	} else {
		r.fail(n.Pos, diag.OutOfRange, "%s cannot be %q; it is one of %s", lastKey(n.Pos.Path), s, strings.Join(allowed, ", "))
	}
	return ""
}

func (o *object) boolean(key string, absent bool) bool {
	if b := o.optionalBool(key); b != nil {
		return *b
	}
	return absent
}

func (o *object) optionalBool(key string) *bool {
	n := o.take(key)
	if n == nil {
		return nil
	}
	if n.Kind != Bool {
		o.r.wrongType(n, "true or false")
		return nil
	}
	return &n.Bool
}

// whole checks an integer within bounds that nobody needs later.
func (o *object) whole(key string, low, high int64) {
	n := o.take(key)
	switch {
	case n == nil:
	case n.Kind != Int:
		o.r.wrongType(n, "an integer")
	case n.Int < low || n.Int > high:
		o.r.fail(n.Pos, diag.OutOfRange, "%s must be between %d and %d, not %d", key, low, high, n.Int)
	}
}

// list is the items of a list; null items are errors.
func (r *reader) list(n *Node) []*Node {
	if n == nil {
		return nil
	}
	if n.Kind != List {
		r.wrongType(n, "a list")
		return nil
	}
	items := make([]*Node, 0, len(n.Items))
	for _, item := range n.Items {
		if item.Kind == Null {
			r.fail(item.Pos, diag.WrongType, "an item of this list is null; remove it or give it a value")
			continue
		}
		items = append(items, item)
	}
	return items
}

func (o *object) list(key string) []*Node { return o.r.list(o.take(key)) }

// strings is nil when the key is absent.
func (o *object) strings(key string) []string {
	n := o.take(key)
	if n == nil {
		return nil
	}
	items := o.r.list(n)
	values := make([]string, 0, len(items))
	for _, item := range items {
		values = append(values, o.r.str(item))
	}
	return values
}

func (o *object) texts(key string) []Text {
	var texts []Text
	for _, item := range o.list(key) {
		texts = append(texts, o.r.text(item))
	}
	return texts
}

func (o *object) choices(key string, allowed ...string) []string {
	var values []string
	for _, item := range o.list(key) {
		values = append(values, o.r.choice(item, allowed...))
	}
	return values
}

// pairs is a map of strings in source order.
func (o *object) pairs(key string) []Pair {
	n := o.take(key)
	if n == nil {
		return nil
	}
	if n.Kind != Map {
		o.r.wrongType(n, "a map")
		return nil
	}
	pairs := make([]Pair, 0, len(n.Fields))
	for _, f := range n.Fields {
		if f.Value.Kind == Null {
			continue // as the API server prunes it
		}
		pairs = append(pairs, Pair{Pos: f.Pos, Key: f.Key, Value: o.r.str(f.Value)})
	}
	return pairs
}

// each reads the items of a list with one function.
func each[T any](items []*Node, read func(*Node) T) []T {
	if items == nil {
		return nil
	}
	values := make([]T, 0, len(items))
	for _, item := range items {
		values = append(values, read(item))
	}
	return values
}
