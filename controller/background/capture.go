package background

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// A Trigger is a request that starts work.
type Trigger struct {
	Type   v1alpha1.GenerateRequestType
	Policy v1alpha1.PolicyReference
	Rule   string
	// Delete tells that what the rule has made for the object is to go.
	Delete bool
	// Object is what the work is about: the new object, or the old one where that is
	// a trigger no longer.
	Object  map[string]any
	Request *interp.Request
}

// maxCaptured bounds what is kept of a request, in bytes. The store takes little more,
// and less would refuse requests that everybody else admits.
const maxCaptured = 1 << 20

// ErrTooLarge is a request of which too much would have to be kept.
var ErrTooLarge = errors.New("the request is too large to be kept for background work")

// PolicyLabel is on each GenerateRequest and names its policy, as far as a label can.
const PolicyLabel = "kvap.dev/policy"

// Capture is what is kept of a request, so that its work can be done later. The
// new object of a request that stores it is not kept: work is about what was stored
// in the end. Of a Secret no data is kept.
//
// The same trigger gives an equal object, name included, so that a request that is
// asked about twice starts work once.
func Capture(t Trigger) (*v1alpha1.GenerateRequest, error) {
	out := &v1alpha1.GenerateRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "GenerateRequest"},
		Spec:     v1alpha1.GenerateRequestSpec{Type: t.Type, Policy: t.Policy, Rule: t.Rule, Delete: t.Delete, Trigger: referenceOf(t.Object)},
	}
	var err error
	if out.Spec.Request, err = captured(t); err != nil {
		return nil, err
	}
	// What tells work apart: not the number of the request, which is new each time that somebody
	// is asked about it. Only of a connection there is nothing else that does.
	own, request := out.Spec, *out.Spec.Request
	own.Policy.UID, own.Request = "", &request
	if request.Operation != "CONNECT" {
		request.UID = ""
	}
	data, err := json.Marshal(own)
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxCaptured:
		return nil, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLarge, len(data), maxCaptured)
	}
	sum := sha256.Sum256(data)
	out.Name = "gr-" + hex.EncodeToString(sum[:10])
	if len(t.Policy.Name) <= 63 {
		out.Labels = map[string]string{PolicyLabel: t.Policy.Name}
	}
	return out, nil
}

// captured is what is kept of the request itself.
func captured(t Trigger) (*v1alpha1.CapturedRequest, error) {
	kept := maps.Clone(t.Request.Admission)
	operation, _ := kept["operation"].(string)
	below, _ := kept["subResource"].(string)
	isStored := below == "" && (operation == "CREATE" || operation == "UPDATE") // the new object can be read from the cluster
	for _, key := range []string{"object", "oldObject"} {
		object, ok := kept[key].(map[string]any)
		delete(kept, key)
		if ok && (key == "oldObject" || !isStored) {
			kept[key] = bare(object)
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.CapturedRequest{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("the request cannot be kept: %w", err)
	}
	for _, raw := range []**runtime.RawExtension{&out.Object, &out.OldObject, &out.Options} {
		if *raw != nil && (len((*raw).Raw) == 0 || string((*raw).Raw) == "null") {
			*raw = nil
		}
	}
	if object, ok := t.Request.Admission["object"].(map[string]any); ok && operation == "CREATE" {
		out.Created = metaText(object, "creationTimestamp")
	}
	out.Unchanged = operation == "UPDATE" && unchanged(t.Request.Admission)
	out.Roles, out.ClusterRoles = t.Request.Roles, t.Request.ClusterRoles
	return out, nil
}

// unchanged tells of a request whose objects differ in nothing but in what says who
// wrote them, and when.
func unchanged(admission map[string]any) bool {
	var content [2]map[string]any
	for i, key := range []string{"object", "oldObject"} {
		object, ok := admission[key].(map[string]any)
		if !ok {
			return false
		}
		meta, _ := object["metadata"].(map[string]any)
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
		content[i] = maps.Clone(object)
		content[i]["metadata"] = meta
	}
	return reflect.DeepEqual(content[0], content[1])
}

// bare is an object without what nobody asks for, and a Secret without its data.
func bare(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		out["metadata"] = meta
	}
	if out["kind"] != "Secret" || out["apiVersion"] != "v1" {
		return out
	}
	delete(out, "data")
	delete(out, "stringData")
	if meta, ok := out["metadata"].(map[string]any); ok {
		if notes, ok := meta["annotations"].(map[string]any); ok {
			notes = maps.Clone(notes)
			delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
			meta["annotations"] = notes
		}
	}
	return out
}

// referenceOf names an object.
func referenceOf(object map[string]any) v1alpha1.ObjectReference {
	o := unstructured.Unstructured{Object: object}
	return v1alpha1.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

func metaText(object map[string]any, key string) string {
	text, _, _ := unstructured.NestedString(object, "metadata", key)
	return text
}

func labelsOf(object map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: object}).GetLabels()
}

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
	for _, own := range []string{"roles", "clusterRoles", "created", "unchanged"} { // which the API server does not send
		delete(admission, own)
	}
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
