package interp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"

	"github.com/kvap/kvap/internal/budget"
)

// patched is an object behind the JSON patch that the expression gives. A test that fails
// leaves it as it was. The API server's patcher does the same, but lets the object double
// with each copy.
func (e evaluated) patched(ctx context.Context, object map[string]any) (map[string]any, error) {
	out, err := e.scope.eval(ctx, e.program)
	if err != nil {
		return nil, err
	}
	list, ok := out.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("the expression gives a %s, not a list of JSONPatch", out.Type().TypeName())
	}
	var steps jsonpatch.Patch
	for it := list.Iterator(); it.HasNext() == types.True; {
		step, err := patchOperationOf(it.Next())
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	text, err := json.Marshal(object)
	for first := 0; first < len(steps) && err == nil; {
		next := first + 1
		for next < len(steps) && steps[next-1].Kind() != "copy" {
			next++
		}
		if text, err = steps[first:next].Apply(text); err == nil && len(text) > maxObject {
			err = errTooLarge()
		}
		first = next
	}
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return object, nil
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	return objectIn(text)
}

// patchOperationOf is one JSONPatch. Its value may be anything that JSON has, and an Object.
func patchOperationOf(v ref.Val) (jsonpatch.Operation, error) {
	native, err := v.ConvertToNative(reflect.TypeFor[*mutation.JSONPatchVal]())
	if err != nil {
		return nil, fmt.Errorf("an element is no JSONPatch: %w", err)
	}
	step, ok := native.(*mutation.JSONPatchVal)
	if !ok {
		return nil, fmt.Errorf("an element is a %T, not a JSONPatch", native)
	}
	fields := map[string]any{"op": step.Op, "path": step.Path}
	if step.From != "" {
		fields["from"] = step.From
	}
	if step.Val != nil {
		if err := budget.CheckValue(step.Val); err != nil {
			return nil, fmt.Errorf("the value of %s: %w", step.Path, err)
		}
		if object, ok := step.Val.(*dynamic.ObjectVal); ok {
			if err := object.CheckTypeNamesMatchFieldPathNames(); err != nil {
				return nil, fmt.Errorf("type mismatch: %w", err)
			}
		}
		if fields["value"], err = step.Val.ConvertToNative(reflect.TypeFor[*structpb.Value]()); err != nil {
			return nil, fmt.Errorf("the value of %s has no form in JSON: %w", step.Path, err)
		}
	}
	out := jsonpatch.Operation{}
	for key, field := range fields {
		text, err := json.Marshal(field)
		if err != nil {
			return nil, fmt.Errorf("the %s of %s has no form in JSON: %w", key, step.Path, err)
		}
		raw := json.RawMessage(text)
		out[key] = &raw
	}
	return out, nil
}
