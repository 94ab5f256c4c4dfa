package apiserver

import celgo "github.com/google/cel-go/cel"

// kyvernoLibrary declares what package translate calls of Kyverno's CEL library, as there on variables. Nothing
// of it can be evaluated: what calls it is for Kyverno's kinds of policies.
func kyvernoLibrary() []celgo.EnvOption {
	resource, text := celgo.ObjectType("kyverno.resource"), celgo.StringType
	object, labels := celgo.MapType(text, celgo.DynType), celgo.MapType(text, text)
	named := []*celgo.Type{resource, text, text, text, text} // a policy of a namespace does not name that
	with := func(of []*celgo.Type, more *celgo.Type) []*celgo.Type {
		return append(of[:len(of):len(of)], more)
	}
	image, globalContext := celgo.ObjectType("kyverno.images"), celgo.ObjectType("kyverno.globalContext")
	return []celgo.EnvOption{
		celgo.Variable("resource", resource), celgo.Variable("image", image), celgo.Variable("globalContext", globalContext),
		celgo.Function("GetMetadata", celgo.MemberOverload("kyverno_metadata", []*celgo.Type{image, text}, celgo.DynType)),
		celgo.Function("Get",
			celgo.MemberOverload("kyverno_get", named, object),
			celgo.MemberOverload("kyverno_get_own", named[:4], object),
			celgo.MemberOverload("kyverno_global", []*celgo.Type{globalContext, text}, celgo.DynType),
			celgo.MemberOverload("kyverno_global_projection", []*celgo.Type{globalContext, text, text}, celgo.DynType)),
		celgo.Function("List",
			celgo.MemberOverload("kyverno_list", named[:4], object),
			celgo.MemberOverload("kyverno_list_labelled", with(named[:4], labels), object),
			celgo.MemberOverload("kyverno_list_own", named[:3], object),
			celgo.MemberOverload("kyverno_list_own_labelled", with(named[:3], labels), object)),
	}
}
