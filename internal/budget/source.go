package budget

import (
	"regexp/syntax"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"

	"github.com/kvap/kvap/policy"
)

// OfSource are the steps that the CEL of a policy takes those who translate it, or
// evaluate it without a bound. They are told from its text, before anything is compiled.
// Counting ends where they are more than any policy may take.
func OfSource(p *policy.Policy) int { return ofPolicy(p, count.whole) }

// CheckSource is TooLarge where the types in the CEL of a policy take more steps to check
// than any policy may take, or where its values would, were they written out: to compare
// what they share goes through it as often. How large they become for an object is for
// Texts and CheckValue to say.
func CheckSource(p *policy.Policy) error {
	return tooLarge(ofPolicy(p, count.checked))
}

// CheckDeleting is CheckSource for a DeletingPolicy.
func CheckDeleting(d *policy.Deleting) error {
	t := stepCount{of: count.checked}
	t.add(d.Variables, texts(d.Conditions, nil, nil))
	return tooLarge(t.steps)
}

func tooLarge(steps int) error {
	if steps > PerPolicy {
		return TooLarge{}
	}
	return nil
}

// OfExpressions are the steps that expressions take, and the variables that they read, in
// the order in which they may read each other. Counting ends as that of OfSource does.
func OfExpressions(variables []policy.CEL, expressions []string) int {
	t := stepCount{of: count.whole}
	t.add(variables, expressions)
	return t.steps
}

func ofPolicy(p *policy.Policy, of func(count) int) int {
	t := stepCount{of: of}
	t.add(nil, texts(p.MatchConditions, nil, nil))
	if v := p.Validating; v != nil {
		t.add(v.Variables, append(texts(v.MatchConditions, v.Validations, v.AuditAnnotations), v.Images.Expressions()...))
	}
	if m := p.Mutating; m != nil {
		expressions := texts(m.MatchConditions, nil, m.AuditAnnotations)
		for _, one := range m.Mutations {
			expressions = append(expressions, one.Expression)
		}
		t.add(m.Variables, expressions)
	}
	if g := p.Generating; g != nil {
		expressions := texts(g.MatchConditions, nil, g.AuditAnnotations)
		for _, one := range g.Entries {
			expressions = append(expressions, one.Expressions()...)
		}
		t.add(g.Variables, expressions)
	}
	for _, r := range p.Rules {
		if r.Validate != nil && r.Validate.CEL != nil {
			c := r.Validate.CEL
			t.add(c.Variables, texts(r.CELPreconditions, c.Expressions, c.AuditAnnotations))
		}
	}
	return t.steps
}

func texts(conditions []policy.CEL, validations []policy.CELValidation, audits []policy.CEL) (out []string) {
	for _, e := range conditions {
		out = append(out, e.Expression)
	}
	for _, e := range validations {
		out = append(out, e.Expression)
		if e.MessageExpression != "" {
			out = append(out, e.MessageExpression)
		}
	}
	for _, e := range audits {
		out = append(out, e.Expression)
	}
	return out
}

const (
	// wholeExpression is what there is for each expression besides its nodes: a program
	// with a table of all functions.
	wholeExpression = 160
	// wholeEnvironment is for variables: what reads them is compiled in environments of
	// its own.
	wholeEnvironment = 2_400
)

// A stepCount adds steps up until they are more than any policy may take.
type stepCount struct {
	of    func(count) int
	steps int
}

func (t *stepCount) add(variables []policy.CEL, expressions []string) {
	c := counter{variables: map[string]count{}}
	one := func(text string) (of count) {
		if t.steps > PerPolicy {
			return count{}
		}
		of = c.text(text)
		t.steps += wholeExpression + t.of(of)
		return of
	}
	if len(variables) > 0 {
		t.steps += wholeEnvironment
	}
	for _, v := range variables {
		c.variables[v.Name] = one(v.Expression).once()
	}
	for _, text := range expressions {
		one(text)
	}
}

// each is how many steps what is compiled takes for a node of CEL, or for an instruction of
// a regular expression: both are some hundred bytes.
const each = 4

// enough is a count that no policy may have: what multiplies stops there.
const enough = 1 << 30

// A count is what an expression amounts to.
type count struct {
	nodes int // as written
	// size is how many nodes it has where each variable is written out, and what is in a
	// list is as large as that: x + x has twice the size of x. The value grows as it does.
	size int
	// depth is how many lists and maps may be in each other in its type.
	depth int
}

// types are the steps that it takes to check the types of an expression: each node has
// one, which is gone through again for the types around it.
func (c count) types() int { return c.steps(c.nodes) }

// whole are the steps where variables are written out.
func (c count) whole() int { return c.steps(c.size) }

// checked are those of CheckSource.
func (c count) checked() int { return max(c.types(), c.size) }

func (c count) steps(nodes int) int {
	depth := min(max(1, c.depth), 1000)
	return min(enough, each*nodes*depth*depth)
}

// and are two expressions beside each other.
func (c count) and(d count) count {
	return count{min(enough, c.nodes+d.nodes), min(enough, c.size+d.size), max(c.depth, d.depth)}
}

// once is what a name amounts to that stands for the expression.
func (c count) once() count { return count{1, c.size, c.depth} }

// A counter counts expressions that may read variables.
type counter struct {
	variables map[string]count
	bound     map[string]count // by macros
}

// text counts an expression as written. One that cannot be read is not compiled.
func (c counter) text(text string) count {
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true), parser.EnableIdentEscapeSyntax(true))
	if err != nil {
		return count{nodes: enough, size: enough}
	}
	tree, errs := p.Parse(common.NewTextSource(text))
	if len(errs.GetErrors()) > 0 {
		return count{nodes: len(text), size: len(text)}
	}
	return c.of(tree.Expr())
}

func (c counter) of(e ast.Expr) count {
	one := count{nodes: 1, size: 1}
	switch e.Kind() {
	case ast.IdentKind:
		if of, ok := c.bound[e.AsIdent()]; ok {
			return of
		}
	case ast.SelectKind:
		s := e.AsSelect()
		if s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "variables" {
			return one.and(c.variables[s.FieldName()])
		}
		return one.and(c.of(s.Operand()))
	case ast.CallKind:
		return one.and(c.call(e.AsCall()))
	case ast.ListKind:
		return deeper(one.and(c.all(e.AsList().Elements())))
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			one = one.and(c.of(entry.AsMapEntry().Key())).and(c.of(entry.AsMapEntry().Value()))
		}
		return deeper(one)
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			one = one.and(c.of(field.AsStructField().Value()))
		}
		return deeper(one)
	}
	return one
}

func deeper(c count) count { return count{c.nodes, c.size, c.depth + 1} }

func (c counter) all(es []ast.Expr) (sum count) {
	for _, e := range es {
		sum = sum.and(c.of(e))
	}
	return sum
}

// call counts a call. Macros are calls here: they are not expanded.
func (c counter) call(call ast.CallExpr) count {
	var target count
	if call.IsMemberFunction() {
		target = c.of(call.Target())
	}
	args := call.Args()
	switch call.FunctionName() {
	case "map", "transformList", "transformMap", "transformMapEntry":
		return deeper(c.macro(target, elementOf(call.Target(), target), args))
	case "all", "exists", "exists_one", "existsOne", "filter", "sortBy", "optMap", "optFlatMap":
		return c.macro(target, elementOf(call.Target(), target), args)
	case "bind": // cel.bind(name, value, body)
		if len(args) == 3 {
			value := c.of(args[1])
			return c.macro(value, value.once(), []ast.Expr{args[0], args[2]})
		}
	case "matches", "find", "findAll":
		for _, arg := range args {
			if text, ok := textOf(arg); ok {
				program := instructionsOf(text)
				target = target.and(count{nodes: program, size: program})
			}
		}
	case "replace":
		if len(args) >= 2 {
			from, ok := textOf(args[0])
			to, literal := textOf(args[1])
			if ok && literal {
				target.size = min(enough, target.size*growth(from, to))
			}
		}
	}
	return target.and(c.all(args))
}

// elementOf is what an element of a list amounts to: all of it, but where a macro has made
// each a number, as list.map(x, list.indexOf(x)).
func elementOf(list ast.Expr, amounts count) count {
	if list.Kind() == ast.CallKind && list.AsCall().FunctionName() == "map" {
		args := list.AsCall().Args()
		if len(args) == 0 {
			return amounts.once()
		}
		if body := args[len(args)-1]; body.Kind() == ast.CallKind && body.AsCall().FunctionName() == "indexOf" {
			return count{nodes: 1, size: 1}
		}
	}
	return amounts.once()
}

// macro counts a macro: names of elements of the target, and expressions about them.
func (c counter) macro(target, element count, args []ast.Expr) count {
	inner := counter{c.variables, map[string]count{}}
	for name, of := range c.bound {
		inner.bound[name] = of
	}
	for len(args) > 1 && args[0].Kind() == ast.IdentKind {
		inner.bound[args[0].AsIdent()] = element
		args = args[1:]
	}
	return target.and(inner.all(args))
}

// growth is how many times longer a text may be after each from in it was replaced. What
// replaces nothing is put around each character.
func growth(from, to string) int {
	if from == "" {
		return 1 + len(to)
	}
	return max(1, (len(to)+len(from)-1)/len(from))
}

func textOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().Value().(string)
	return text, ok
}

// OfRegexp are the steps that a regular expression takes: some for each instruction of its
// program, of which a{1000} has a thousand.
func OfRegexp(text string) int { return each * instructionsOf(text) }

func instructionsOf(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return len(text)
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) int {
	sum := 1
	for _, sub := range re.Sub {
		sum += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		sum += len(re.Rune)
	case syntax.OpCharClass:
		sum += len(re.Rune) / 8
	case syntax.OpRepeat:
		sum *= max(1, re.Min, re.Max)
	}
	return min(enough, sum)
}
