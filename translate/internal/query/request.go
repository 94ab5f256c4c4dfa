package query

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// TopLevel is a name at the top of the context.
func TopLevel(l *read.Lowering, name string) read.Operand {
	if j, ok := l.Scope[name]; ok {
		return l.Read(j)
	}
	if v := l.Context.Get(name); v != nil {
		return entry(l, name, v)
	}
	switch name {
	case "request":
		panic(l.Unsupported("the request as a whole"))
	case "serviceAccountName":
		return serviceAccount(3)
	case "serviceAccountNamespace":
		return serviceAccount(2)
	case "target":
		if l.Trigger != nil {
			return l.Object
		}
	case "images":
		if l.Trigger != nil {
			panic(l.Unsupported("the images of the trigger in a rule with targets"))
		}
		return allImages(l)
	}
	return read.Operand{Form: read.ErrorForm, Hint: name}
}

// requestField is a field of the admission request; not ok of a name that it has not. Keys
// that JSON leaves out when they are empty are missing, as in Kyverno.
func requestField(l *read.Lowering, key string) (j read.Operand, ok bool) {
	req := cel.Ident("request")
	switch key {
	case "operation":
		j = operation(l)
	case "object":
		j = requestObject(l)
	case "oldObject":
		j = ofOneOperation(l, l.Requested().Old)
	case "kind", "requestKind":
		j = groupKind(req.Field(key), "kind")
	case "resource", "requestResource":
		j = groupKind(req.Field(key), "resource")
	case "namespace":
		j = requestNamespace(l)
	case "name":
		j = read.OperandAt(read.OptionalField(req, key, read.StringType()))
	case "subResource", "requestSubResource":
		j = read.OperandAt(read.OptionalField(req, key, read.PlainText()))
	case "userInfo":
		j = userInfo()
	case "dryRun":
		j = read.OperandAt(read.OptionalField(req, key, &schema.Type{Kind: schema.Bool}))
	case "uid":
		j = read.Operand{Form: read.ErrorForm, Hint: key, Stops: l.Unsupported("the uid of a request")} // CEL is not told
	case "options":
		j = read.OperandAt(read.OptionalField(req, key, read.AnyType()))
	default:
		return j, false
	}
	return j, true
}

// fieldOfRequest is the field of the request that e is, where it is one: most expressions
// read one, which is made without the others.
func fieldOfRequest(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) (j read.Operand, ok bool) {
	of, field := e.Args[0], e.Args[1]
	_, isScoped := l.Scope[of.Name]
	isEntry := l.Context.Get(of.Name) != nil
	isRequest := cur == nil && of.Op == jmespath.Field && of.Dynamic == nil && of.Name == "request" && !isScoped && !isEntry
	if !isRequest || field.Op != jmespath.Field || field.Dynamic != nil {
		return j, false
	}
	return requestField(l, field.Name)
}

// ofOneOperation is j, which means something else on each operation.
func ofOneOperation(l *read.Lowering, j read.Operand) read.Operand {
	if len(l.Ops) > 1 {
		j.Stops = read.PerOperation{}
	}
	return j
}

func requestObject(l *read.Lowering) read.Operand {
	if l.DeleteRewrite && len(l.Ops) == 1 && l.Ops[0] == native.Delete {
		return l.Requested().Old
	}
	return l.Requested().Object
}

func groupKind(v cel.Value, last string) read.Operand {
	out := read.Operand{Form: read.HashForm}
	for _, f := range []string{"group", "version", last} {
		out.Keys = append(out.Keys, f)
		out.Multi = append(out.Multi, read.OperandAt(read.PlaceOf(v.Field(f), read.PlainText())))
	}
	return out
}

// requestNamespace is there for namespaced kinds and for Namespaces themselves.
func requestNamespace(l *read.Lowering) read.Operand {
	req, of := cel.Ident("request"), l.Requested().Target
	switch {
	case of.Scope == native.Namespaced || of.GVK == schema.GVK{Version: "v1", Kind: "Namespace"}:
		return read.OperandAt(read.PlaceOf(req.Field("namespace"), read.PlainText()))
	case of.Scope == native.Cluster:
		return read.Operand{Form: read.ErrorForm, Hint: "namespace"}
	}
	return read.OperandAt(read.OptionalField(req, "namespace", read.PlainText()))
}

func userInfo() read.Operand {
	user := cel.Ident("request").Field("userInfo")
	strings := &schema.Type{Kind: schema.List, Elem: read.StringType()}
	return read.Operand{Form: read.HashForm, Keys: []string{"username", "uid", "groups", "extra"}, Multi: []read.Operand{
		read.StringOf(user.Field("username")),
		read.OperandAt(read.OptionalField(user, "uid", read.StringType())),
		read.OperandAt(read.OptionalField(user, "groups", strings)),
		read.OperandAt(read.OptionalField(user, "extra", read.MapOf(strings))),
	}}
}

// serviceAccount is a part of the user's name if the user is a service account,
// and empty otherwise; deviation 6.
func serviceAccount(part int64) read.Operand {
	user := cel.Ident("request").Field("userInfo").Field("username")
	is := user.StartsWith(cel.String("system:serviceaccount:"))
	return read.StringOf(cel.Cond(is, user.Call(cel.FuncSplit, cel.String(":")).Index(cel.Int(part)), cel.String("")))
}

// Operations are the classes of operations that the rule is lowered for, creations
// and updates together at first. A rule whose check says nothing of a deletion is
// not asked about one (deviation 12).
func Operations(l *read.Lowering, t native.Target) [][]native.Operation {
	var writes []native.Operation
	var others [][]native.Operation
	for _, op := range t.PossibleOperations() {
		switch {
		case op == native.Delete && ignoresDeletion(l), !SomeFilterHas(l, op):
		case op == native.Create || op == native.Update:
			writes = append(writes, op)
		default:
			others = append(others, []native.Operation{op})
		}
	}
	if len(writes) == 0 {
		return others
	}
	return append([][]native.Operation{writes}, others...)
}

// ignoresDeletion tells whether the check is not evaluated on DELETE.
func ignoresDeletion(l *read.Lowering) bool {
	v := l.Rule.Validate
	if v.PodSecurity != nil {
		return true
	}
	return v.CEL == nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil)
}

// SomeFilterHas tells that the match lets an operation through.
func SomeFilterHas(l *read.Lowering, op native.Operation) bool {
	return slices.ContainsFunc(Filters(l.Rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, string(op))
	})
}

func operation(l *read.Lowering) read.Operand {
	if l.OfOld() {
		return read.LitOf(string(native.Create))
	}
	return ofOneOperation(l, read.LitOf(string(l.Ops[0])))
}

// Filters are the filters of a block that count.
func Filters(m *policy.MatchBlock) []*policy.Filter {
	switch {
	case m == nil:
		return nil
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		return m.All
	case m.Legacy != nil:
		return []*policy.Filter{m.Legacy}
	}
	return nil
}
