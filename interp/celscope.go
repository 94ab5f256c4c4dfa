package interp

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// celNames declares what expressions of policies in CEL can name: what those of a
// ValidatingAdmissionPolicy can, the objects of the request, and, but for those that verify images,
// the exceptions.
func celNames(excepted bool) environment.VersionedOptions {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	field := func(name string, of *apiservercel.DeclType, required bool) *apiservercel.DeclField {
		return apiservercel.NewDeclField(name, of, required, nil, nil)
	}
	for _, name := range []string{"object", "oldObject"} {
		request.Fields[name] = field(name, apiservercel.DynType, false)
	}
	allowed := map[string]*apiservercel.DeclField{}
	for _, name := range []string{"allowedImages", "allowedValues"} {
		allowed[name] = field(name, apiservercel.NewListType(apiservercel.StringType, -1), true)
	}
	exceptions := apiservercel.NewObjectType("kyverno.exceptions", allowed)
	out := environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		DeclTypes:         []*apiservercel.DeclType{request, namespace},
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
			cel.Variable("request", request.CelType()), cel.Variable("namespaceObject", namespace.CelType()),
		},
	}
	if excepted {
		out.DeclTypes = append(out.DeclTypes, exceptions)
		out.EnvOptions = append(out.EnvOptions, cel.Variable("exceptions", exceptions.CelType()))
	}
	return out
}

// authorizerNames declares what answers whether somebody may do something.
func authorizerNames() environment.VersionedOptions {
	return environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("authorizer", library.AuthorizerType), cel.Variable("authorizer.requestResource", library.ResourceCheckType)},
	}
}

// celScope is the request as expressions of policies in CEL see it. An object that is not
// there is an empty one, other than natively; in the request it is null.
func (a *preparedRequest) celScope() (celScope, error) {
	request, err := a.celRequest()
	if err != nil {
		return nil, err
	}
	object, old := a.object, a.old
	if a.deletes() {
		object = nil
	}
	for name, o := range map[string]map[string]any{"object": object, "oldObject": old} {
		request[name] = nil
		if o != nil {
			request[name] = o
		}
	}
	attributes, allowed := a.fullAttributes(), a.world.Authorizer()
	out := celScope{
		"object": orEmpty(object), "oldObject": orEmpty(old), "request": request, "namespaceObject": types.NullValue,
		"authorizer":                 library.NewAuthorizerVal(attributes.GetUserInfo(), allowed),
		"authorizer.requestResource": library.NewResourceAuthorizerVal(attributes.GetUserInfo(), allowed, attributes),
	}
	// One that cannot be read is null.
	if namespace, err := a.celNamespace(); err == nil && namespace != nil {
		out["namespaceObject"] = common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(namespace))
	}
	return out, a.storedNamespace(out)
}

func orEmpty(object map[string]any) map[string]any {
	if object == nil {
		return map[string]any{}
	}
	return object
}

// celRequest is the request without its objects. What is empty is absent in it.
func (a *preparedRequest) celRequest() (map[string]any, error) {
	var request admissionv1.AdmissionRequest
	if err := decode(a.request.Admission, &request); err != nil {
		return nil, err
	}
	request.Object, request.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = kjson.Unmarshal(text, &out)
	delete(out, "uid")
	if out["options"] == nil {
		delete(out, "options")
	}
	return out, err
}
