package pack

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/vap"
)

// A Unit is a rule lowered for one target and some operations.
type Unit struct {
	Policy     *policy.Policy
	Rule       *policy.Rule
	Target     native.Target
	Operations []native.Operation
	// Conditions are the match conditions that the policy itself has.
	Conditions []vap.Condition
	// Reaches are excluded namespaces in which the rule counts.
	Reaches []string
	// NamespaceSelector is the object's, of what the rule is about.
	NamespaceSelector vap.Selector

	Match          cel.Bool     // what the resource rules do not say
	Pre            partial.Bool // preconditions
	Holds          partial.Bool // the rule does not fail
	Exempt         cel.Bool     // an old violation excuses this one; false where there is no such excuse
	Before         cel.Bool     // what Exempt asks of the old object; zero where there is no such excuse
	Excused        bool         // Exempt excuses every update that violates the rule
	Tells          bool         // where Holds is an error, its text is for whoever is denied
	ReadsNamespace bool         // Match reads namespaceObject, so it cannot be a match condition
	Message        native.Message
	Variables      []vap.Variable
	Params         *native.Params
	CEL            *native.Parts // what a CEL rule brings along

	// Template is the unit of a rule about Pods as the template of a controller would have
	// it, whose metadata may not be there; nil where that says the same.
	Template *Unit
	pods     bool            // the trees say pod and oldPod of a Pod, and of the template of a controller
	shared   []form          // which an object has that is about both
	about    []native.Target // with --pack match, of which the unit says the same
	asks     cel.Bool        // whether a request is about these, where the object is about more; zero where it is not
}

// failurePolicy is that of the unit's object. An error of a CEL rule's expressions
// denies under Ignore too.
func (u Unit) failurePolicy() string {
	if u.CEL != nil {
		return string(policy.Fail)
	}
	return string(u.Policy.FailurePolicy)
}

// action is the unit's action where no override hits.
func (u Unit) action() policy.Action { return native.BaseAction(u.Policy, u.Rule) }

// Same tells whether two units of a rule differ in their operations only.
func (u Unit) Same(v Unit) bool { return u.Text() == v.Text() }

// Text is everything that the unit's expressions say.
func (u Unit) Text() string {
	parts := []string{u.Match.String(), u.Pre.Expr.String(), u.Holds.Expr.String(), u.Exempt.String(), u.Message.Key(), u.Params.Key(), u.CEL.Key()}
	for _, v := range u.Variables {
		parts = append(parts, v.Name, v.Expr.String())
	}
	return strings.Join(parts, "\x00")
}

// Sharing is the unit with the trees of others where they say the same: a rule says
// the same of most kinds, and its trees are kept until all policies are packed.
func (u Unit) Sharing(others []Unit) Unit {
	u.Variables = slices.Clone(u.Variables)
	for _, v := range others {
		share(&u.Match.Value, v.Match.Value)
		share(&u.Pre.Expr.Value, v.Pre.Expr.Value)
		share(&u.Holds.Expr.Value, v.Holds.Expr.Value)
		share(&u.Exempt.Value, v.Exempt.Value)
		if !u.Before.IsZero() && !v.Before.IsZero() {
			share(&u.Before.Value, v.Before.Value)
		}
		if u.Message.Expr != nil && v.Message.Expr != nil && cel.Equal(*u.Message.Expr, *v.Message.Expr) {
			u.Message.Expr = v.Message.Expr
		}
		for i := range min(len(u.Variables), len(v.Variables)) {
			share(&u.Variables[i].Expr, v.Variables[i].Expr)
		}
	}
	return u
}

// share replaces a tree by one that is the same.
func share(tree *cel.Value, other cel.Value) {
	if cel.Equal(*tree, other) {
		*tree = other
	}
}

// renamed is the unit with one of its variables under another name.
func (u Unit) renamed(from, to string) Unit {
	u = u.rewritten(func(v cel.Value) cel.Value { return v.RenameField("variables", from, to) })
	for i, v := range u.Variables {
		if v.Name == from {
			u.Variables[i].Name = to
		}
	}
	return u
}

// rewritten is the unit with other expressions.
func (u Unit) rewritten(value func(cel.Value) cel.Value) Unit {
	condition := func(b cel.Bool) cel.Bool {
		if b.IsZero() {
			return b
		}
		return value(b.Value).AsBool()
	}
	u.Match, u.Exempt, u.Before = condition(u.Match), condition(u.Exempt), condition(u.Before)
	u.Pre.Expr, u.Holds.Expr = condition(u.Pre.Expr), condition(u.Holds.Expr)
	if u.Message.Expr != nil {
		m := value(*u.Message.Expr)
		u.Message.Expr = &m
	}
	u.Variables = slices.Clone(u.Variables)
	for i, v := range u.Variables {
		u.Variables[i].Expr = value(v.Expr)
	}
	return u
}

// Reads tells that some expression of the unit reads a field of what is at a path.
func (u Unit) Reads(root, field string) bool {
	found := false
	u.rewritten(func(v cel.Value) cel.Value {
		found = found || slices.Contains(v.Uses(root), field)
		return v
	})
	return found
}

// cost is about the most that one evaluation of the unit costs. What a message
// expression costs is counted too: it is always evaluated.
func (u Unit) cost() (total int64) {
	u.Before = cel.Bool{} // of which Exempt is made
	u.rewritten(func(v cel.Value) cel.Value {
		total += cel.Cost(v, nil)
		return v
	})
	return total
}

// declared adds the unit's variables to the draft, and is the unit with the names
// that they have there. Rules share a variable that they name alike and mean
// alike; what they name alike and mean otherwise is renamed.
func (u Unit) declared(d *vap.Draft) Unit {
	u.Variables = slices.Clone(u.Variables)
	for i := range u.Variables {
		v := u.Variables[i] // its expression is in the draft's names already
		k := slices.IndexFunc(d.Variables, func(w vap.Variable) bool { return w.Name == v.Name })
		switch {
		case k < 0:
		case cel.Equal(d.Variables[k].Expr, v.Expr):
			continue
		default:
			fresh := native.NameByRule(v.Name, u.Rule.Origin, slices.Concat(d.Variables, u.Variables))
			u = u.renamed(v.Name, fresh)
			v.Name = fresh
		}
		d.Variables = append(d.Variables, v)
	}
	return u
}

// actionKey is everything that the unit's bindings depend on, but for its targets.
func (u Unit) actionKey() string {
	parts := []string{string(u.action())}
	for _, o := range native.OverridesOf(u.Policy, u.Rule) {
		parts = append(parts, string(o.Action))
		if o.Namespaces != nil {
			parts = append(parts, "in", strings.Join(o.Namespaces, ","))
		}
		if s := o.NamespaceSelector; s != nil {
			parts = append(parts, native.SelectorKey(native.PlainSelector(s)))
		}
	}
	if len(u.Reaches) > 0 {
		parts = append(parts, "reaches", strings.Join(u.Reaches, ","))
	}
	return strings.Join(parts, "\x03")
}

// attributes are what a policy object and its bindings have once.
func (u Unit) attributes(o Options) string {
	parts := []string{u.failurePolicy(), u.actionKey(), strconv.FormatBool(u.Policy.EmitWarning), u.Params.Key(), u.CEL.Own()}
	if u.Policy.Namespaced() {
		parts = append(parts, "ns:"+u.Policy.Namespace)
	}
	for _, c := range u.Policy.MatchConditions {
		parts = append(parts, c.Name, c.Expression)
	}
	if s := u.NamespaceSelector; !s.IsEmpty() {
		parts = append(parts, native.SelectorKey(s))
	}
	if o.Apart {
		parts = append(parts, u.name())
	}
	if u.CEL.Own() != "" {
		parts = append(parts, native.MemberName(u.Policy), u.name())
	}
	return strings.Join(parts, "\x02")
}
