package background

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// requestFor is the request that started the work, with the trigger as it is now.
// Where none did, nothing is known but the object: neither the user nor the
// operation.
func requestFor(c *v1alpha1.CapturedRequest, trigger map[string]any) (*interp.Request, error) {
	if c == nil {
		return withoutRequest(trigger), nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var admission map[string]any
	if err := kjson.Unmarshal(data, &admission); err != nil {
		return nil, err
	}
	delete(admission, "roles")
	delete(admission, "clusterRoles")
	delete(admission, "created")
	delete(admission, "unchanged")
	admission["object"] = trigger
	return &interp.Request{Admission: admission, Roles: c.Roles, ClusterRoles: c.ClusterRoles}, nil
}

func withoutRequest(trigger map[string]any) *interp.Request {
	at := referenceOf(trigger)
	kind := schema.FromAPIVersionAndKind(at.APIVersion, at.Kind)
	admission := map[string]any{
		"operation": "", "object": trigger,
		"kind": map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	}
	if at.Namespace != "" {
		admission["namespace"] = at.Namespace
	}
	return &interp.Request{Admission: admission}
}

// objectOf reads an object that was kept; nil where there is none.
func objectOf(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var out map[string]any
	if err := kjson.Unmarshal(raw.Raw, &out); err != nil {
		return nil, fmt.Errorf("an object that was kept is no JSON object: %w", err)
	}
	return out, nil
}
