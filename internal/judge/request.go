package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Request is an admission request that both judges can read.
type Request struct {
	// NamespaceLabels are those of the request's namespace; where nil, the objects
	// of the cluster are asked.
	NamespaceLabels map[string]string
	// Namespace, where not nil, is that namespace as an object, as it was at the time.
	Namespace map[string]any
	// Roles (namespace:name) and ClusterRoles are what is bound to the user.
	Roles, ClusterRoles []string
	// Action, if not empty, takes the place of the policies' own, for the
	// interpreter; the translation has it from its policies.
	Action policy.Action
	// Scan tells of an object that is there: the interpreter asks policies with
	// admission: false too, which have no translation.
	Scan bool

	document  bool // the object is a JSON document
	admission map[string]any
	native    *admissionv1.AdmissionRequest
	anonymous bool           // nobody told who acts
	asked     map[string]any // the object before With; nil where it is that of the admission
	generated string         // the name that was generated for the object; "" for none
}

// UID is the request's uid, empty where it has none.
func (r *Request) UID() string { return string(r.native.UID) }

// Admission is the AdmissionRequest as JSON data. It must not be changed.
func (r *Request) Admission() map[string]any { return r.admission }

// NewRequest reads an AdmissionRequest given as JSON data: the values that
// k8s.io/apimachinery/pkg/util/json makes. Its unknown keys are dropped, and its
// objects are brought to the form that the API server would hand on, with a name
// where one is to be generated. The data is not changed.
func NewRequest(data map[string]any) (*Request, error) {
	known := map[string]any{}
	for key, v := range data {
		if isField(key) {
			known[key] = v
		}
	}
	r := &Request{admission: known, native: &admissionv1.AdmissionRequest{}}
	if err := r.readFrame(); err != nil {
		return nil, err
	}
	if err := r.readObjects(); err != nil {
		return nil, err
	}
	return r, nil
}

// Recorded is a request whose objects have the API server's form already, as it is
// and as JSON data. Neither must be changed.
func Recorded(request *admissionv1.AdmissionRequest, admission map[string]any) *Request {
	return &Request{admission: admission, native: request}
}

// NewDocument asks about a JSON document, which is no object of a cluster: no API server
// does, so that only the interpreter answers.
func NewDocument(document map[string]any) *Request {
	return &Request{document: true, admission: map[string]any{"operation": "CREATE", "object": document}, native: &admissionv1.AdmissionRequest{}}
}

// isField tells the fields of an AdmissionRequest.
func isField(key string) bool {
	return slices.Contains([]string{
		"uid", "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
		"operation", "userInfo", "object", "oldObject", "dryRun", "options",
	}, key)
}

// nobody is the user of a request that names none, for native policies: each request to an
// API server has a user. The interpreter is told of none, as Kyverno's command line.
const nobody = "nobody"

// readFrame reads everything but the objects.
func (r *Request) readFrame() error {
	frame := maps.Clone(r.admission)
	for _, key := range []string{"object", "oldObject", "options"} {
		delete(frame, key)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(frame, r.native); err != nil {
		return fmt.Errorf("the request is no AdmissionRequest: %w", err)
	}
	if r.native.UserInfo.Username == "" {
		r.native.UserInfo.Username, r.anonymous = nobody, true
	}
	switch {
	case r.native.Kind.Kind == "" || r.native.Kind.Version == "":
		return errors.New("the request has no kind; an AdmissionRequest has kind: {group, version, kind}")
	case r.native.Resource.Resource == "":
		return errors.New("the request has no resource; an AdmissionRequest has resource: {group, version, resource}")
	}
	switch r.native.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return nil
	case "":
		return errors.New("the request has no operation; it is CREATE, UPDATE, DELETE or CONNECT")
	}
	return fmt.Errorf("operation %q is not CREATE, UPDATE, DELETE or CONNECT", r.native.Operation)
}

func (r *Request) readObjects() error {
	for _, field := range []struct {
		key string
		to  *runtime.RawExtension
	}{{"object", &r.native.Object}, {"oldObject", &r.native.OldObject}, {"options", &r.native.Options}} {
		value := r.admission[field.key]
		if value == nil {
			continue
		}
		object, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", field.key)
		}
		if field.key != "options" {
			var err error
			if object, err = r.canonical(field.key, object); err != nil {
				return err
			}
		}
		if field.key == "object" {
			object = r.generateName(object)
		}
		r.admission[field.key] = object
		field.to.Object = &unstructured.Unstructured{Object: object}
	}
	return nil
}

// canonical is an object of the request with its kind, in the server's form.
func (r *Request) canonical(field string, object map[string]any) (map[string]any, error) {
	kind := apischema.GroupVersionKind(r.native.Kind)
	if text, _ := object["kind"].(string); text == "" {
		object = maps.Clone(object)
		object["kind"], object["apiVersion"] = kind.Kind, kind.GroupVersion().String()
	}
	out, err := apiserver.Canonical(object, kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return out, nil
}

// Complete tells of a request that lacks what its operation is about, as no API
// server would send it.
func (r *Request) Complete() error {
	missing := ""
	switch r.native.Operation {
	case admissionv1.Create:
		if r.native.Object.Object == nil {
			missing = "object"
		}
	case admissionv1.Update:
		switch {
		case r.native.Object.Object == nil:
			missing = "object"
		case r.native.OldObject.Object == nil:
			missing = "oldObject"
		}
	case admissionv1.Delete:
		if r.native.OldObject.Object == nil {
			missing = "oldObject"
		}
	}
	if missing != "" {
		return fmt.Errorf("a request of %s needs %s, and it has none", r.native.Operation, missing)
	}
	return nil
}

// Lacks is the path of a field that one of the objects lacks although an API server hands
// over none without it; empty where there is none, or the kind is not known.
func (r *Request) Lacks(schemas *schema.Set) string {
	kind := r.native.Kind
	t := schemas.Type(schema.GVK{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	if t == nil {
		return ""
	}
	for _, key := range []string{"object", "oldObject"} {
		if object, ok := r.admission[key].(map[string]any); ok {
			if path := t.Missing(object); path != "" {
				return key + "." + path
			}
		}
	}
	return ""
}

// Review puts the request before native policies.
func (r *Request) Review(ctx context.Context, by *apiserver.Judge) ([]apiserver.Verdict, error) {
	return by.Review(ctx, r.native, toldOf(r.NamespaceLabels, r.storedNamespace()))
}

// Interp is the request as the interpreter takes it.
func (r *Request) Interp() *interp.Request {
	return &interp.Request{
		Admission: r.admission, NamespaceLabels: r.namespaceLabels(), Namespace: r.storedNamespace(), Roles: r.Roles, ClusterRoles: r.ClusterRoles, Action: r.Action, Scan: r.Scan, Exact: true,
		Document: r.document, Asked: r.asked,
	}
}

// namespaceLabels are those that are told, with the name, which every Namespace has in a label.
func (r *Request) namespaceLabels() map[string]string {
	if r.NamespaceLabels == nil || r.native == nil || r.native.Namespace == "" {
		return r.NamespaceLabels
	}
	out := maps.Clone(r.NamespaceLabels)
	out[corev1.LabelMetadataName] = r.native.Namespace
	return out
}
