package celrule

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// Some of Kyverno's own functions ask what the API server knows under another name:
//
//	parseServiceAccount(request.userInfo.username).Name            the fourth part of the name
//	resource.Get('v1', 'namespaces', '', request.namespace).metadata.labels
//	                                                               namespaceObject.metadata.labels
//
// A ConfigMap stays with the webhook, though its name may be known: where it is missing, Kyverno
// has null for it and goes on, and an API server without its params does not.

// accountName is what the name of a service account as a user looks like.
const accountName = "^system:serviceaccount:[^:]*:[^:]*$"

// known is an expression in which native forms stand for such functions.
func (w *ValidatingWalk) known(v cel.Value) cel.Value {
	accounts := map[string]cel.Value{}
	return v.Rewrite(func(v cel.Value) cel.Value {
		if of, name, ok := v.Selected(); ok {
			if user, is := accounts[of.String()]; is && (name == "Name" || name == "Namespace") {
				return accountPart(user, name)
			}
			if w.isOwnNamespace(of) && name == "metadata" {
				return cel.Ident("namespaceObject").Field(name)
			}
		}
		if user, ok := accountOf(v); ok {
			out := cel.Map(cel.Entry{Key: cel.String("Name"), Value: accountPart(user, "Name")}, cel.Entry{Key: cel.String("Namespace"), Value: accountPart(user, "Namespace")})
			accounts[out.String()] = user
			return out
		}
		return v
	})
}

// accountOf is the user of parseServiceAccount(user).
func accountOf(v cel.Value) (user cel.Value, ok bool) {
	name, args := v.Called()
	switch {
	case name != "parseServiceAccount":
	case len(args) == 1:
		return args[0], true
	case len(args) == 2 && cel.Equal(args[0], cel.Ident("user")):
		return args[1], true
	}
	return cel.Value{}, false
}

func accountPart(user cel.Value, name string) cel.Value {
	at := map[string]int64{"Namespace": 2, "Name": 3}[name]
	return cel.Cond(user.Matches(accountName), user.Call(cel.FuncSplit, cel.String(":")).Index(cel.Int(at)), cel.String(""))
}

// isOwnNamespace tells of the namespace of the request, by resource.Get.
func (w *ValidatingWalk) isOwnNamespace(v cel.Value) bool {
	names := got(v)
	if len(names) != 4 || !cel.Equal(names[0], cel.String("v1")) || !cel.Equal(names[1], cel.String("namespaces")) || !cel.Equal(names[2], cel.String("")) {
		return false
	}
	return cel.Equal(names[3], cel.Ident("request").Field("namespace")) &&
		!w.Opts.SomeResource(w.Form.Constraints.Rules, func(of schema.Resource) bool { return !of.Namespaced })
}

// got are the version, resource, namespace and name that resource.Get asks for.
func got(v cel.Value) []cel.Value {
	name, args := v.Called()
	if name != "Get" && name != "get" || len(args) == 0 || !cel.Equal(args[0], cel.Ident("resource")) {
		return nil
	}
	return args[1:]
}
