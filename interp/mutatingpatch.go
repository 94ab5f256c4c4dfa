package interp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/policy"
)

// patchTypes declares the types Object, Object.spec and so on, and JSONPatch.
func patchTypes() environment.VersionedOptions {
	return environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{common.ResolverEnvOption(&mutation.DynamicTypeResolver{})},
	}
}

func applyType() *cel.Type     { return cel.ObjectType(mutation.ObjectTypeName) }
func jsonPatchType() *cel.Type { return cel.ObjectType(mutation.JSONPatchTypeName) }

// isPatchType tells of the types that only expressions of a MutatingPolicy have.
func isPatchType(t *cel.Type) bool {
	name := t.TypeName()
	return t.Kind() == types.StructKind &&
		(name == mutation.JSONPatchTypeName || name == mutation.ObjectTypeName || strings.HasPrefix(name, mutation.ObjectTypeName+"."))
}

// patch is an object behind one mutation. The object itself is not changed.
func (f *mutatingForm) patch(in *Interpreter, a *preparedRequest, scope celScope, of policy.Mutation, program cel.Program, object map[string]any) (map[string]any, error) {
	value := evaluated{scope, program}
	if of.PatchType == policy.JSONPatch {
		return value.patched(a.ctx, object)
	}
	attributes := a.fullAttributes()
	attributes.VersionedObject = admission.NewLazyObject(celObject(object))
	request := patch.Request{
		VersionedAttributes: attributes, MatchedResource: attributes.GetResource(),
		ObjectInterfaces: admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
	}
	var err error
	if request.TypeConverter, err = in.types.of(a.ctx, in.world, celObject(object).GetObjectKind().GroupVersionKind()); err != nil {
		return nil, err
	}
	var out runtime.Object
	if f.policy.Mutating.ReplacesAtomic {
		out, err = value.merged(a.ctx, request)
	} else {
		out, err = patch.NewApplyConfigurationPatcher(value).Patch(a.ctx, request, 0)
	}
	if err != nil {
		return nil, err
	}
	return plainObject(out)
}

// plainObject is an object as JSON has it, whatever CEL made its values of.
func plainObject(o runtime.Object) (map[string]any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the patched object is a %T", o)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("failed to write the patched object: %w", err)
	}
	return objectIn(text)
}

// objectIn is an object written as JSON.
func objectIn(text []byte) (map[string]any, error) {
	if len(text) > maxObject {
		return nil, errTooLarge()
	}
	var out map[string]any
	if err := kjson.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("failed to read the patched object: %w", err)
	}
	if datum.TooDeep(out) {
		return nil, errTooLarge()
	}
	if kind, _ := out["kind"].(string); kind == "" {
		return nil, fmt.Errorf("failed to read the patched object: Object 'Kind' is missing")
	}
	return out, nil
}

func errTooLarge() error { return fmt.Errorf("the patched object is larger than %d bytes", maxObject) }

// An evaluated is the value of an expression, as the API server's patchers ask for it.
type evaluated struct {
	scope   celScope
	program cel.Program
}

// ForInput implements plugincel.MutatingEvaluator. What the expression sees is its scope.
func (e evaluated) ForInput(ctx context.Context, _ *admission.VersionedAttributes, _ *admissionv1.AdmissionRequest, _ plugincel.OptionalVariableBindings, _ *corev1.Namespace, left int64) (plugincel.EvaluationResult, int64, error) {
	out, err := e.scope.eval(ctx, e.program)
	return plugincel.EvaluationResult{EvalResult: out, Error: err}, left, nil
}

// CompilationErrors implements plugincel.MutatingEvaluator: what does not compile is never
// asked for.
func (e evaluated) CompilationErrors() []error { return nil }

// merged is the object of a request with an apply configuration merged into it that may
// replace lists and maps as a whole, which the API server's patcher refuses.
func (e evaluated) merged(ctx context.Context, r patch.Request) (runtime.Object, error) {
	out, err := e.scope.eval(ctx, e.program)
	if err != nil {
		return nil, err
	}
	value, ok := out.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("the expression gives a %s, not an Object", out.Type().TypeName())
	}
	if err := value.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	fields, ok := value.Value().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the expression gives what is no object: %v", value.Value())
	}
	before := r.VersionedAttributes.VersionedObject.Object()
	configuration := &unstructured.Unstructured{Object: fields}
	configuration.SetGroupVersionKind(before.GetObjectKind().GroupVersionKind())
	after, err := applyConfiguration(r.TypeConverter, before, configuration)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	return after, nil
}

func applyConfiguration(types managedfields.TypeConverter, object runtime.Object, configuration *unstructured.Unstructured) (runtime.Object, error) {
	change, err := types.ObjectToTyped(configuration)
	if err != nil {
		return nil, err
	}
	live, err := types.ObjectToTyped(object, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	merged, err := live.Merge(change)
	if err != nil {
		return nil, err
	}
	return types.TypedToObject(merged)
}
