package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// topLevel is a name at the top of the context.
func (l *lowering) topLevel(name string) operand {
	if j, ok := l.scope[name]; ok {
		return l.read(j)
	}
	if v, ok := l.context[name]; ok {
		return l.entry(name, v)
	}
	switch name {
	case "request":
		return l.request()
	case "serviceAccountName":
		return l.serviceAccount(3)
	case "serviceAccountNamespace":
		return l.serviceAccount(2)
	case "images":
		return l.images()
	}
	return operand{form: errorForm, hint: name}
}

// request is the admission request. Keys that JSON leaves out when they are
// empty are missing, as in Kyverno.
func (l *lowering) request() operand {
	req := cel.Ident("request")
	out := operand{form: hashForm}
	add := func(key string, j operand) {
		out.keys = append(out.keys, key)
		out.multi = append(out.multi, j)
	}
	add("operation", l.operation())
	add("object", l.requestObject())
	add("oldObject", l.ofOneOperation(l.old))
	add("kind", l.groupKind(req.Field("kind"), "kind"))
	add("requestKind", l.groupKind(req.Field("requestKind"), "kind"))
	add("resource", l.groupKind(req.Field("resource"), "resource"))
	add("requestResource", l.groupKind(req.Field("requestResource"), "resource"))
	add("namespace", l.requestNamespace())
	add("name", operandAt(optionalField(req, "name", stringType())))
	add("subResource", operandAt(optionalField(req, "subResource", stringType()).from(fromServer)))
	add("requestSubResource", operandAt(optionalField(req, "requestSubResource", stringType()).from(fromServer)))
	add("userInfo", l.userInfo())
	add("dryRun", operandAt(optionalField(req, "dryRun", &schema.Type{Kind: schema.Bool})))
	add("uid", operand{form: errorForm, hint: "uid", stops: l.unsupported("the uid of a request")}) // CEL is not told
	add("options", operandAt(optionalField(req, "options", anyType())))
	return out
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
