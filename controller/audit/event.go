package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json" // whole numbers are not fractions
)

// FailureKey is where an API server notes what native policies found.
const FailureKey = "validation.policy.admission.k8s.io/validation_failure"

// A Failure is one entry of that annotation.
type Failure struct {
	Policy          string   `json:"policy"`
	Binding         string   `json:"binding"`
	Message         string   `json:"message"`
	ExpressionIndex int      `json:"expressionIndex"`
	Actions         []string `json:"validationActions"`
}

// An Event is what is read of a line of the log: an event of audit.k8s.io/v1.
type Event struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		UID         string `json:"uid"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
	// AuditID, and at the level Request the object that was sent.
	AuditID       string          `json:"auditID"`
	RequestObject json.RawMessage `json:"requestObject"`
	// ResponseObject is what was answered, at the level RequestResponse.
	ResponseObject struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	} `json:"responseObject"`
}

// ReadEvent reads a line of the log.
func ReadEvent(line []byte) (*Event, error) {
	e := &Event{}
	if err := json.Unmarshal(line, e); err != nil {
		return nil, fmt.Errorf("the line is no audit event: %w", err)
	}
	if e.Kind != "Event" || !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") {
		return nil, errors.New("the line is no event of audit.k8s.io; give the log that an API server writes with --audit-log-path")
	}
	return e, nil
}

// Ends reports whether the event is the end of a request that admission may have been asked about.
func (e *Event) Ends() bool {
	return e.Stage == "ResponseComplete" && e.ObjectRef != nil && e.ResponseStatus != nil && e.Operations() != nil
}

// Operations are what an API server may have asked about; nil for what it does not
// ask about.
func (e *Event) Operations() []string {
	switch e.Verb {
	case "create":
		return []string{"CREATE", "CONNECT"}
	case "update", "patch":
		return []string{"UPDATE", "CREATE"}
	case "delete", "deletecollection":
		return []string{"DELETE"}
	}
	return nil
}

// Refused reports whether somebody did not let the request through.
func (e *Event) Refused() bool { return e.ResponseStatus.Code >= 300 }

// Failures are what native policies found whose bindings audit.
func (e *Event) Failures() (out []Failure, err error) {
	text, ok := e.Annotations[FailureKey]
	if !ok {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("the annotation %s is not what an API server writes: %w", FailureKey, err)
	}
	return out, nil
}

// Created is the AdmissionRequest, as JSON, by which an object was created, as far as the log has it.
func (e *Event) Created(object []byte) (map[string]any, error) {
	var o map[string]any
	if err := utiljson.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	metadata, _ := o["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		o["metadata"] = metadata
	}
	if e.ObjectRef.Namespace != "" {
		metadata["namespace"] = e.ObjectRef.Namespace
	}
	name, _ := metadata["name"].(string)
	kind, _ := o["kind"].(string)
	gvk := map[string]any{"group": e.ObjectRef.APIGroup, "version": e.ObjectRef.APIVersion, "kind": kind}
	resource := map[string]any{"group": e.ObjectRef.APIGroup, "version": e.ObjectRef.APIVersion, "resource": e.ObjectRef.Resource}
	var groups []any
	for _, g := range e.User.Groups {
		groups = append(groups, g)
	}
	return map[string]any{
		"uid": e.AuditID, "operation": "CREATE", "kind": gvk, "requestKind": gvk, "resource": resource, "requestResource": resource,
		"name": name, "namespace": e.ObjectRef.Namespace, "object": o,
		"userInfo": map[string]any{"username": e.User.Username, "groups": groups},
	}, nil
}

// creates reports whether an object was created, which the log has.
func (e *Event) creates() bool {
	return e.Verb == "create" && e.ObjectRef.Subresource == "" && !e.Refused() && len(e.RequestObject) > 0
}

// operation is what was asked about, as far as the log tells.
func (e *Event) operation() string {
	switch {
	case e.Verb == "create" && slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, e.ObjectRef.Subresource):
		return "CONNECT"
	case e.Verb == "patch" && e.ResponseStatus.Code == 201: // what is applied may be new
		return "CREATE"
	}
	return e.Operations()[0]
}

// dryRun reports whether the request was to change nothing. Who deletes may say so in the body, which
// the log has at the level Request.
func (e *Event) dryRun() bool {
	if at, err := url.Parse(e.RequestURI); err == nil && at.Query().Has("dryRun") {
		return true
	}
	var options struct {
		Kind   string   `json:"kind"`
		DryRun []string `json:"dryRun"`
	}
	return len(e.RequestObject) > 0 && json.Unmarshal(e.RequestObject, &options) == nil && options.Kind == "DeleteOptions" && len(options.DryRun) > 0
}

// denial is what admission answers where a native policy denies: the resource and the name in front,
// so that nothing counts that the API server quotes in another answer.
var denial = regexp.MustCompile(`(?s)^[^ "]+(?: "(?:\\.|[^"\\])*")? is forbidden: ValidatingAdmissionPolicy '([^']+)' (?:with binding '([^']*)' )?denied request: (.*)$`)

// denied is what the native policy found that denied the request; nil where none did.
func (e *Event) denied() *Failure {
	if code := e.ResponseStatus.Code; code < 400 || code >= 500 {
		return nil
	}
	found := denial.FindStringSubmatch(e.ResponseStatus.Message)
	if found == nil {
		return nil
	}
	return &Failure{Policy: found[1], Binding: found[2], Message: found[3], ExpressionIndex: -1, Actions: []string{deny}}
}

// deny is the action of a binding that denies.
const deny = "Deny"
