package apiserver

import (
	"maps"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// RuntimeTypes checks expressions against the types that values really have when
// an API server evaluates policies: objects are maps, quantities, times and bytes
// are strings, and what may be of several types is of none.
type RuntimeTypes struct {
	set  *schema.Set
	base *environment.EnvSet
	envs map[Subject]*Typed
}

// A Subject is what expressions are about. Zero kinds are unknown.
type Subject struct {
	Object    schema.GVK
	Params    schema.GVK
	HasParams bool
	Patches   bool // expressions may make patches
}

// NewRuntimeTypes makes a checker for the kinds of a set. It is for any number of
// policies, one after the other. It knows all functions: Validate tells which of
// them a release has not.
func NewRuntimeTypes(set *schema.Set) *RuntimeTypes {
	return &RuntimeTypes{set: set, base: environment.MustBaseEnvSet(version.MajorMinor(1, uint(cel.Latest))), envs: map[Subject]*Typed{}}
}

// Typed checks the expressions of one policy about one kind.
type Typed struct {
	env    *celgo.Env
	shapes *shapes
}

// Of is the checker for a subject, without variables.
func (c *RuntimeTypes) Of(s Subject) (*Typed, error) {
	if t, ok := c.envs[s]; ok {
		clear(t.shapes.variables)
		return t, nil
	}
	t, err := c.make(s)
	if err == nil {
		c.envs[s] = t
	}
	return t, err
}

func (c *RuntimeTypes) make(s Subject) (*Typed, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	base := c.base.StoredExpressionsEnv()
	known := apiservercel.NewDeclTypeProvider(request, namespace)
	known.SetRecognizeKeywordAsFieldName(true)
	provider, err := known.WithTypeProvider(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	h := &shapes{Provider: provider, named: map[string]*schema.Type{}, variables: map[string]*celgo.Type{}}
	h.kind, h.object, h.patched = title(s.Object.Kind), c.set.Type(s.Object), s.Patches
	object := h.typeOf(h.object, h.kind)
	options := []celgo.EnvOption{
		celgo.Variable(plugincel.ObjectVarName, object),
		celgo.Variable(plugincel.OldObjectVarName, object),
		celgo.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		celgo.Variable(plugincel.RequestVarName, request.CelType()),
		celgo.Variable(plugincel.VariableVarName, celgo.ObjectType(variablesType)),
		celgo.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
		celgo.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType),
		celgo.CustomTypeAdapter(provider),
		celgo.CustomTypeProvider(h),
	}
	if s.HasParams {
		options = append(options, celgo.Variable(plugincel.ParamsVarName, h.typeOf(c.set.Type(s.Params), "params "+title(s.Params.Kind))))
	}
	if s.Patches {
		options = append(options, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch))
	}
	env, err := base.Extend(options...)
	return &Typed{env, h}, err
}

func title(kind string) string {
	if kind == "" {
		return "object"
	}
	return kind
}

// variablesType is the type of variables, as the API server calls it.
const variablesType = "kubernetes.variables"

// shapes tell CEL's checker of the types of a set. Types have names, made at first
// use, and a type may hold itself: such a name is as long as it must be.
type shapes struct {
	types.Provider
	named     map[string]*schema.Type
	variables map[string]*celgo.Type
	kind      string       // of the object
	object    *schema.Type // nil where it is not known
	patched   bool         // expressions may make patches
}

// typeOf is the type of a value. What can be null has no type: a null is of none
// that fits.
func (h *shapes) typeOf(t *schema.Type, name string) *celgo.Type {
	if t == nil || t.Nullable {
		return celgo.DynType
	}
	switch t.Kind {
	case schema.Bool:
		return celgo.BoolType
	case schema.Int:
		return celgo.IntType
	case schema.String:
		return celgo.StringType
	case schema.List:
		return celgo.ListType(h.typeOf(t.Elem, name+"[]"))
	case schema.Map:
		return celgo.MapType(celgo.StringType, h.typeOf(t.Elem, name+"[*]"))
	case schema.Object:
		h.named[name] = t
		return celgo.ObjectType(name)
	}
	return celgo.DynType // int or double, int or string, anything
}

// FindStructType tells that a type is known.
func (h *shapes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := h.named[name]; ok || name == variablesType {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return h.Provider.FindStructType(name)
}

// FindStructFieldType is the type of a field. A field that a type does not have is
// of any type here, so that the rest of an expression is checked too: Typed.Check
// looks for such fields itself.
func (h *shapes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name == variablesType {
		t, ok := h.variables[field]
		return &types.FieldType{Type: t}, ok
	}
	t, ok := h.named[name]
	if !ok {
		return h.Provider.FindStructFieldType(name, field)
	}
	f, ok := t.Fields[field]
	if !ok {
		return &types.FieldType{Type: types.DynType}, true
	}
	return &types.FieldType{Type: h.typeOf(f.Type, name+"."+field)}, true
}

// lacks tells that a type has no field of that name: the fields that it has, and whether
// another release of what published it may have more; nil where the field is there, or
// may be.
func (h *shapes) lacks(name, field string) (fields []string, published bool) {
	t, ok := h.named[name]
	if !ok || t.Open && !t.Published || t.Fields[field] != nil {
		return nil, false
	}
	return slices.Collect(maps.Keys(t.Fields)), t.Published
}

// kindOf is the name of the kind in the name of a type, and the path in it.
func kindOf(name string) (kind, path string) {
	kind, path, _ = strings.Cut(name, ".")
	return kind, path
}
