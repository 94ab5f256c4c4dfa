package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// topLevel is a name at the top of the context.
func (l *lowering) topLevel(name string) operand {
	if j, ok := l.scope[name]; ok {
		return l.read(j)
	}
	if v := l.context.get(name); v != nil {
		return l.entry(name, v)
	}
	switch name {
	case "request":
		panic(l.unsupported("the request as a whole"))
	case "serviceAccountName":
		return l.serviceAccount(3)
	case "serviceAccountNamespace":
		return l.serviceAccount(2)
	case "images":
		return l.images()
	}
	return operand{form: errorForm, hint: name}
}

// requestKeys are those of the admission request. Keys that JSON leaves out when they are
// empty are missing, as in Kyverno.
func requestKeys() []string {
	return []string{"operation", "object", "oldObject", "kind", "requestKind", "resource", "requestResource", "namespace", "name",
		"subResource", "requestSubResource", "userInfo", "dryRun", "uid", "options"}
}

func (l *lowering) requestField(key string) operand {
	req := cel.Ident("request")
	switch key {
	case "operation":
		return l.operation()
	case "object":
		return l.requestObject()
	case "oldObject":
		return l.ofOneOperation(l.old)
	case "kind", "requestKind":
		return l.groupKind(req.Field(key), "kind")
	case "resource", "requestResource":
		return l.groupKind(req.Field(key), "resource")
	case "namespace":
		return l.requestNamespace()
	case "name":
		return operandAt(optionalField(req, key, stringType()))
	case "subResource", "requestSubResource":
		return operandAt(optionalField(req, key, stringType()).from(fromServer))
	case "userInfo":
		return l.userInfo()
	case "dryRun":
		return operandAt(optionalField(req, key, &schema.Type{Kind: schema.Bool}))
	case "uid":
		return operand{form: errorForm, hint: key, stops: l.unsupported("the uid of a request")} // CEL is not told
	case "options":
		return operandAt(optionalField(req, key, anyType()))
	}
	panic("no field of a request: " + key)
}

// fieldOfRequest is the name of a field, where e is one of the request: most expressions
// read one, which is made without the others.
func (l *lowering) fieldOfRequest(e *jmespath.Expr, cur *operand) (key string, ok bool) {
	of, field := e.Args[0], e.Args[1]
	_, isScoped := l.scope[of.Name]
	isEntry := l.context.get(of.Name) != nil
	ok = cur == nil && of.Op == jmespath.Field && of.Dynamic == nil && of.Name == "request" && !isScoped && !isEntry &&
		field.Op == jmespath.Field && field.Dynamic == nil && slices.Contains(requestKeys(), field.Name)
	return field.Name, ok
}

// ofOneOperation is j, which means something else on each operation.
func (l *lowering) ofOneOperation(j operand) operand {
	if len(l.ops) > 1 {
		j.stops = perOperation{}
	}
	return j
}

func optionalField(v cel.Value, name string, t *schema.Type) place {
	return place{expr: v.Field(name), typ: t, opt: v.Opt(name), guards: []guard{{cond: v.Has(name)}}}
}

func (l *lowering) requestObject() operand {
	if l.deleteRewrite && len(l.ops) == 1 && l.ops[0] == native.Delete {
		return l.old
	}
	return l.object
}

func (l *lowering) groupKind(v cel.Value, last string) operand {
	out := operand{form: hashForm}
	for _, f := range []string{"group", "version", last} {
		out.keys = append(out.keys, f)
		out.multi = append(out.multi, operandAt(placeOf(v.Field(f), stringType()).from(fromServer)))
	}
	return out
}

// requestNamespace is there for namespaced kinds and for Namespaces themselves.
func (l *lowering) requestNamespace() operand {
	req := cel.Ident("request")
	switch {
	case l.target.Scope == native.Namespaced || l.target.GVK == schema.GVK{Version: "v1", Kind: "Namespace"}:
		return operandAt(placeOf(req.Field("namespace"), stringType()).from(fromServer))
	case l.target.Scope == native.Cluster:
		return operand{form: errorForm, hint: "namespace"}
	}
	return operandAt(optionalField(req, "namespace", stringType()).from(fromServer))
}

func (l *lowering) userInfo() operand {
	user := cel.Ident("request").Field("userInfo")
	strings := &schema.Type{Kind: schema.List, Elem: stringType()}
	return operand{form: hashForm, keys: []string{"username", "uid", "groups", "extra"}, multi: []operand{
		stringOf(user.Field("username")),
		operandAt(optionalField(user, "uid", stringType())),
		operandAt(optionalField(user, "groups", strings)),
		operandAt(optionalField(user, "extra", mapOf(strings))),
	}}
}

// serviceAccount is a part of the user's name if the user is a service account,
// and empty otherwise; deviation 6.
func (l *lowering) serviceAccount(part int64) operand {
	user := cel.Ident("request").Field("userInfo").Field("username")
	is := user.StartsWith(cel.String("system:serviceaccount:"))
	return stringOf(cel.Cond(is, user.Call(cel.FuncSplit, cel.String(":")).Index(cel.Int(part)), cel.String("")))
}
