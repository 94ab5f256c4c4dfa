package fields

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A field that no object has is translated as faithfully as any other: what a pattern
// says of it fails always or never, and a variable that reads it is always missing.
// Most likely it is a mistake, so it is told. Nothing here changes what a rule becomes.
//
// All kinds are gone through at once, in all forms of the rule. Where one of them may
// have the field, for its schema is open or not known, nothing is said of the field, nor
// of those below.

// An alternative is what a value is in the objects of one kind.
type alternative struct {
	kind string // for messages
	path string // as the rule as written has it
	typ  *schema.Type
	// gathered tells of a list that the expression makes: the path is that of its elements.
	gathered bool
	// made tells of a form that the rule is expanded to.
	made bool
	// in is where the kind has no such field, for messages: a release, or a project.
	in string
	// pod is, of an object, the type of the template in place of which a rule as
	// written has the object itself; nil in that rule.
	pod *schema.Type
}

// A shape is what a value may be; nothing is known of one without alternatives.
type shape []alternative

// A Form is a rule as it is written or as it is expanded, and the objects that it is about.
type Form struct {
	Rule    *policy.Rule
	Targets []native.Target
}

// Unknown warns of the fields that the rule names and no object has, and of what Kyverno reads
// otherwise than it seems. Without forms nothing is known of the fields.
func Unknown(rule *policy.Rule, forms []Form, set *schema.Set, b *budget.Budget) diag.List {
	u := &fieldWalk{lists: listTypes{}, budget: b}
	if !u.addAll(forms, set) {
		u.object, u.subject = nil, nil
	}
	u.block(rule.Source)
	u.block(rule.Source.Get("validate"))
	u.texts(rule.Source.Get("mutate"))
	u.texts(rule.Source.Get("generate"))
	if rule.Validate != nil && rule.Validate.CEL != nil && u.object != nil {
		c := rule.Validate.CEL
		u.expressions(c.Variables, expressionsOf(rule.CELPreconditions, c.Expressions))
	}
	if u.shadowed {
		u.found = slices.DeleteFunc(u.found, func(d diag.Diagnostic) bool { return d.Code == diag.UnknownField })
	}
	return u.found.Sort()
}

// addAll adds what the forms of a rule are about; false where nothing is known of some.
func (u *fieldWalk) addAll(forms []Form, set *schema.Set) bool {
	for _, f := range forms {
		for _, t := range f.Targets {
			if !u.add(t, f.Rule, fieldsOf(set, t.GVK)) {
				return false
			}
		}
	}
	return true
}

// add adds what a rule is about; false where nothing is known of it.
func (u *fieldWalk) add(t native.Target, r *policy.Rule, in string) bool {
	if t.Type == nil || t.Type.Kind != schema.Object {
		return false
	}
	a := alternative{kind: t.GVK.Kind, typ: t.Body, made: r.Expansion != "", in: in}
	if t.GVK != t.Parent {
		a.kind = t.Parent.Kind + "/" + t.Subresource
	}
	subject := a
	if a.made {
		if a.pod = typeAt(t.Body, r.Template()); a.pod == nil {
			return false
		}
		subject.typ = a.pod
	}
	u.object, u.subject = append(u.object, a), append(u.subject, subject)
	return true
}

// fieldsOf says where the schema of a kind comes from: a release of Kubernetes or of a project;
// "" for a definition that was given.
func fieldsOf(set *schema.Set, kind schema.GVK) string {
	if set.Custom(kind) {
		return ""
	}
	return cmp.Or(native.Published(set, kind), "Kubernetes "+set.Release())
}

// typeAt is the type at some keys, or nil.
func typeAt(t *schema.Type, keys []string) *schema.Type {
	for _, key := range keys {
		f := t.Fields[key]
		if f == nil {
			return nil
		}
		t = f.Type
	}
	return t
}

// field is a field of a value. It is told of where nothing that the value may be has it.
func (u *fieldWalk) field(s shape, name string, at diag.Pos) shape {
	var out, without shape
	for _, a := range s {
		typ, ok := a.field(name)
		switch {
		case ok:
			out = append(out, a.with(below(a.path, name), typ))
		case a.typ.Kind == schema.Object && (!a.typ.Open || a.typ.Published):
			without = append(without, a)
		default:
			return nil
		}
	}
	if len(out) == 0 && len(without) > 0 {
		u.tell(without, name, at)
	}
	return out
}

func (a alternative) field(name string) (*schema.Type, bool) {
	if a.typ.Kind == schema.Map {
		return a.typ.Elem, true
	}
	f := a.typ.Fields[name]
	if f == nil {
		return nil, false
	}
	return f.Type, true
}

func (a alternative) with(path string, typ *schema.Type) alternative {
	a.path, a.typ, a.gathered, a.pod = path, typ, false, nil
	return a
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// items are the elements of a list; nothing is known of those of anything else.
func (s shape) items() shape {
	var out shape
	for _, a := range s {
		if a.typ.Kind != schema.List {
			return nil
		}
		out = append(out, a.with(a.pathOfItems(), a.typ.Elem))
	}
	return out
}

func (a alternative) pathOfItems() string {
	if a.gathered {
		return a.path
	}
	return a.path + "[]"
}

// tell tells that none of the alternatives has a field. The kinds are those that the
// rule names, wherever one of them comes so far.
func (u *fieldWalk) tell(without shape, name string, at diag.Pos) {
	if slices.ContainsFunc(without, func(a alternative) bool { return !a.made }) {
		without = slices.DeleteFunc(without, func(a alternative) bool { return a.made })
	}
	var kinds []string
	known := map[string]bool{}
	in := ""
	for _, a := range without {
		if !slices.Contains(kinds, a.kind) {
			kinds = append(kinds, a.kind)
		}
		for field := range a.typ.Fields {
			known[field] = true
		}
		if a.in != "" {
			in = " in " + a.in
		}
	}
	guess := diag.Nearest(name, slices.Sorted(maps.Keys(known)))
	if guess != "" {
		guess = "; did you mean " + guess + "?"
	}
	u.found = append(u.found, diag.Warnf(at, diag.UnknownField, "%s has a field %s%s%s", noneOf(kinds), below(without[0].path, name), in, guess))
}

func noneOf(kinds []string) string {
	const most = 4
	last := len(kinds) - 1
	switch {
	case last == 0:
		return "no " + kinds[0]
	case last < most:
		return "no " + strings.Join(kinds[:last], ", ") + " or " + kinds[last]
	}
	return "none of the " + strconv.Itoa(len(kinds)) + " kinds that the rule matches"
}

// Some of what stands in a rule says another thing to Kyverno than to who reads it. It is
// told with what comes of it; the rule is translated as Kyverno reads it.

// A mapKind says of which map a pattern is, as far as keys with wildcards differ by it.
type mapKind int

const (
	otherMap mapKind = iota
	metadataMap
	labelsMap // or annotations, whose keys have wildcards
)

func (k mapKind) below(key string) mapKind {
	switch {
	case key == "metadata":
		return metadataMap
	case k == metadataMap && (key == "labels" || key == "annotations"):
		return labelsMap
	}
	return otherMap
}

// literalKey tells of a wildcard in a key that is none.
func (u *fieldWalk) literalKey(f policy.Field, in mapKind) {
	kind, key := anchor.Split(f.Key)
	if in == labelsMap || !scalar.IsWild(key) || strings.Contains(key, "{{") {
		return
	}
	u.found = append(u.found, diag.Warnf(f.Pos, diag.LiteralKey,
		"%s has no wildcard for Kyverno, for only keys of labels and annotations of metadata have: it looks for a key that is spelt so, and %s; write the keys out, or ask by a condition",
		key, withoutKey(kind, f.Value)))
}

// withoutKey says what a pattern makes of a map without its key.
func withoutKey(kind anchor.Kind, p *policy.Node) string {
	switch kind {
	case anchor.Conditional:
		return "asks nothing else of a map without one"
	case anchor.Negation:
		return "forbids no other key"
	case anchor.Equality, anchor.Existence, anchor.Global:
		return "asks nothing of other keys"
	}
	if satisfiedByNothing(p) {
		return "lets each map pass that has none"
	}
	return "each map fails that has none"
}

// satisfiedByNothing tells that a pattern is satisfied where there is no value.
func satisfiedByNothing(p *policy.Node) bool {
	return p.Kind == policy.Null || p.Kind == policy.String && p.Str != "*" && scalar.Satisfies(nil, p.Str)
}

// otherElements tells of the elements of a list that are not looked at.
func (u *fieldWalk) otherElements(p *policy.Node) {
	if len(p.Items) < 2 || p.Items[0].Kind == policy.List { // whose lists count one by one
		return
	}
	first := p.Items[0].Value()
	i := slices.IndexFunc(p.Items, func(item *policy.Node) bool { return !reflect.DeepEqual(item.Value(), first) })
	if i < 0 {
		return
	}
	u.found = append(u.found, diag.Warnf(p.Items[i].Pos, diag.OtherElements,
		"Kyverno does not look at this element: it holds the first one of the pattern's list against every element of the object's; put what is asked of each into the first, or use an existence anchor"))
}

// misreadPattern tells of a text of a pattern that looks like a regular expression.
func (u *fieldWalk) misreadPattern(p *policy.Node) {
	if looksRegular(p.Str) {
		u.regular(p, "in a pattern only * and ? are wildcards, | and & separate what is compared, and all else stands for itself")
	}
}

// misreadConditions tells of such texts in the values of conditions.
func (u *fieldWalk) misreadConditions(n *policy.Node) {
	if n == nil {
		return
	}
	u.budget.Spend(1)
	if value := n.Get("value"); value != nil && n.Get("operator") != nil {
		for _, text := range orItems(value) {
			if text.Kind == policy.String && looksRegular(text.Str) && !json.Valid([]byte(text.Str)) {
				u.regular(text, "operators know only the wildcards * and ?, and all else stands for itself")
			}
		}
		return
	}
	for _, item := range n.Items {
		u.misreadConditions(item)
	}
	for _, f := range n.Fields {
		u.misreadConditions(f.Value)
	}
}

// misreadFilters tells of such texts in what names objects and their namespaces.
func (u *fieldWalk) misreadFilters(n *policy.Node) {
	if n == nil {
		return
	}
	u.budget.Spend(1)
	if of := n.Get("resources"); of != nil {
		for _, key := range []string{"name", "names", "namespaces"} {
			for _, text := range orItems(of.Get(key)) {
				if text.Kind == policy.String && looksRegular(text.Str) {
					u.regular(text, "names have only the wildcards * and ?, and no name has what else is in it")
				}
			}
		}
		return
	}
	for _, filters := range []*policy.Node{n.Get("any"), n.Get("all")} {
		for _, f := range items(filters) {
			u.misreadFilters(f)
		}
	}
}

// orItems are the elements of a list, or what is no list itself.
func orItems(n *policy.Node) []*policy.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == policy.List:
		return n.Items
	}
	return []*policy.Node{n}
}

func (u *fieldWalk) regular(at *policy.Node, what string) {
	u.found = append(u.found, diag.Warnf(at.Pos, diag.RegularExpression,
		"Kyverno does not take %q for a regular expression: %s; write out what is meant, or ask with regex_match in a condition", at.Str, what))
}

// looksRegular tells of a text that hardly anybody writes but as a regular expression: it has
// an escape or a class of characters with a range, and how often that is; alternatives in
// brackets at a beginning or an end; or a beginning or an end with something of one between.
// Paths of Windows and of an Ingress are none.
func looksRegular(text string) bool {
	return !strings.Contains(text, "{{") && !strings.Contains(text, "$(") && regularSyntax.MatchString(text)
}

var regularSyntax = regexp.MustCompile(`\\[dwsDWS][+*{]|\[\^?[A-Za-z0-9]-[A-Za-z0-9][^]]*\][+*{]|^\^.*\([^()|]+(\|[^()|]+)+\)|\([^()|]+(\|[^()|]+)+\)\$$|\(\?[i:]|^\^.*[*+)\].$]$|\.[*+]\$$`)
