package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kvap/kvap/vap"
)

// podRequest is about a pod; object and old are JSON, or empty.
func podRequest(op, object, old string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "1",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Name:      "web",
		Namespace: "app",
		Operation: admissionv1.Operation(op),
		UserInfo:  authenticationv1.UserInfo{Username: "alice", Groups: []string{"devs"}},
		Object:    runtime.RawExtension{Raw: []byte(object)},
		OldObject: runtime.RawExtension{Raw: []byte(old)},
	}
}

func judge(t *testing.T, opts JudgeOptions, drafts ...*vap.Draft) *Judge {
	t.Helper()
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, d := range drafts {
		o := emit(t, d, vap.EmitOptions{ExcludeNamespaces: []string{}})
		policies = append(policies, o.Policy)
		bindings = append(bindings, o.Bindings...)
	}
	j, err := NewJudge(policies, bindings, opts)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func verdicts(t *testing.T, j *Judge, r *admissionv1.AdmissionRequest, namespaceLabels map[string]string) []Verdict {
	t.Helper()
	v, err := j.Review(t.Context(), r, Labelled(namespaceLabels))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	pod     = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"app","labels":{"team":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	podHost = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"app"},"spec":{"hostNetwork":true}}`
)

func TestReview(t *testing.T) {
	j := judge(t, JudgeOptions{}, teamDraft())
	operator := podRequest("CREATE", podHost, "")
	operator.UserInfo.Username = "operator"
	other := podRequest("CREATE", pod, "")
	other.Resource.Resource = "services"
	for _, tt := range []struct {
		name string
		r    *admissionv1.AdmissionRequest
		want string
	}{
		{"holds", podRequest("CREATE", pod, ""), "allow [allow allow] false "},
		{"violates both", podRequest("CREATE", podHost, ""), "deny [deny deny] true pod web has no team"},
		{"delete is not matched", podRequest("DELETE", "", pod), "nomatch [] false "},
		{"another resource", other, "nomatch [] false "},
		{"a condition is false", operator, "nomatch [] false "},
		{"wrong type", podRequest("CREATE", `{"metadata":{"name":"web","labels":{"team":"a"}},"spec":{"hostNetwork":7}}`, ""), "error [allow error] true expression '!object.spec.?hostNetwork.orValue(false)' resulted in error: no such overload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := verdicts(t, j, tt.r, nil)
			if len(got) != 1 {
				t.Fatalf("%d verdicts", len(got))
			}
			v := got[0]
			var results []Outcome
			for _, r := range v.Results {
				results = append(results, r.Outcome)
			}
			if s := fmt.Sprintf("%s %v %v %s", v.Outcome, results, v.Refused, v.Message); s != tt.want {
				t.Errorf("\ngot  %s\nwant %s", s, tt.want)
			}
		})
	}
}

// What the API server does, by platform fact: each check is true of the request.
func TestReviewSeesWhatAServerDoes(t *testing.T) {
	connect := podRequest("CONNECT", `{"kind":"PodExecOptions","apiVersion":"v1","command":["sh"]}`, "")
	connect.Kind.Kind, connect.SubResource = "PodExecOptions", "exec"
	namespace := podRequest("CREATE", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"app"}}`, "")
	namespace.Kind.Kind, namespace.Resource.Resource, namespace.Name = "Namespace", "namespaces", "app"
	cluster := podRequest("CREATE", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`, "")
	cluster.Kind.Kind, cluster.Resource.Resource, cluster.Namespace = "Node", "nodes", ""
	generated := podRequest("CREATE", pod, "")
	generated.Name = ""
	options := podRequest("CREATE", pod, "")
	options.Options.Raw = []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"me"}`)
	for _, tt := range []struct {
		check string
		r     *admissionv1.AdmissionRequest
	}{
		{"object == null && oldObject.metadata.name == 'web'", podRequest("DELETE", pod, pod)},
		{"oldObject == null", podRequest("CREATE", pod, pod)},
		{"object != null && oldObject != null", podRequest("UPDATE", pod, podHost)},
		{"!has(oldObject.metadata)", podRequest("CREATE", pod, "")},
		{"!has(request.subResource) && !has(request.userInfo.uid) && !has(request.userInfo.extra)", podRequest("CREATE", pod, "")},
		{"request.dryRun == false", podRequest("CREATE", pod, "")},
		{"!has(request.name)", generated},
		{"request.requestKind.kind == 'Pod' && request.kind.group == ''", podRequest("CREATE", pod, "")},
		{"request.options.fieldManager == 'me'", options},
		{"object.command[0] == 'sh' && request.subResource == 'exec'", connect},
		{"namespaceObject == null && request.namespace == 'app'", namespace},
		{"namespaceObject == null && !has(request.namespace)", cluster},
		{"namespaceObject.metadata.labels.tier == 'prod' && namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'app'", podRequest("CREATE", pod, "")},
		{"object.kind == 'Pod' && object.apiVersion == 'v1'", podRequest("CREATE", `{"metadata":{}}`, "")},
	} {
		t.Run(tt.check, func(t *testing.T) {
			d := checks(tt.check)
			d.Constraints.Rules[0].Resources = []string{"*/*"}
			d.Constraints.Rules[0].Operations = []string{"*"}
			got := verdicts(t, judge(t, JudgeOptions{}, d), tt.r, map[string]string{"tier": "prod"})
			if got[0].Outcome != Allow {
				t.Errorf("%s: %s", got[0].Outcome, got[0].Message)
			}
		})
	}
}

func TestReviewSelectors(t *testing.T) {
	pods := func(change func(*vap.Draft)) *vap.Draft {
		d := checks("false")
		d.Constraints.Rules[0].Resources = []string{"*/*"}
		d.Constraints.Rules[0].Operations = []string{"*"}
		change(d)
		return d
	}
	byObject := pods(func(d *vap.Draft) { d.Constraints.ObjectSelector.Labels = []vap.Label{{Key: "team", Value: "a"}} })
	notByObject := pods(func(d *vap.Draft) {
		d.Constraints.ObjectSelector.Expressions = []vap.Requirement{{Key: "team", Operator: "DoesNotExist"}}
	})
	byNamespace := pods(func(d *vap.Draft) { d.Constraints.NamespaceSelector.Labels = []vap.Label{{Key: "tier", Value: "prod"}} })
	byBinding := pods(func(d *vap.Draft) { d.Bindings[0].NamespaceSelector.Labels = []vap.Label{{Key: "tier", Value: "prod"}} })
	byName := pods(func(d *vap.Draft) { d.Constraints.Rules[0].Names = []string{"other"} })
	exact := pods(func(d *vap.Draft) { d.Constraints.Exclude = []vap.ResourceRule{podRule()} })
	scope := pods(func(d *vap.Draft) { d.Constraints.Rules[0].Scope = "Cluster" })
	cluster := podRequest("CREATE", `{"metadata":{"name":"n"}}`, "")
	cluster.Resource.Resource, cluster.Kind.Kind, cluster.Namespace = "nodes", "Node", ""
	namespace := podRequest("CREATE", `{"metadata":{"name":"app","labels":{"tier":"prod"}}}`, "")
	namespace.Resource.Resource, namespace.Kind.Kind = "namespaces", "Namespace"
	connect := podRequest("CONNECT", `{"command":["sh"]}`, "")
	connect.Kind.Kind, connect.SubResource = "PodExecOptions", "exec"
	self := podRequest("CREATE", `{"metadata":{"name":"p"}}`, "")
	self.Kind = metav1.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
	self.Resource = metav1.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	prod := map[string]string{"tier": "prod"}
	for _, tt := range []struct {
		name   string
		d      *vap.Draft
		r      *admissionv1.AdmissionRequest
		labels map[string]string
		want   Outcome
	}{
		{"object has the label", byObject, podRequest("CREATE", pod, ""), nil, Deny},
		{"only the old object has", byObject, podRequest("UPDATE", podHost, pod), nil, Deny},
		{"none has", byObject, podRequest("UPDATE", podHost, podHost), nil, NoMatch},
		{"options of exec have no labels", notByObject, connect, nil, NoMatch},
		{"namespace has the label", byNamespace, podRequest("CREATE", pod, ""), prod, Deny},
		{"namespace has not", byNamespace, podRequest("CREATE", pod, ""), map[string]string{}, NoMatch},
		{"cluster-scoped is always in", byNamespace, cluster, nil, Deny},
		{"a Namespace by its own labels", byNamespace, namespace, map[string]string{}, Deny},
		{"binding's selector", byBinding, podRequest("CREATE", pod, ""), nil, NoMatch},
		{"binding's selector holds", byBinding, podRequest("CREATE", pod, ""), prod, Deny},
		{"name", byName, podRequest("CREATE", pod, ""), nil, NoMatch},
		{"excluded", exact, podRequest("CREATE", pod, ""), nil, NoMatch},
		{"scope", scope, podRequest("CREATE", pod, ""), nil, NoMatch},
		{"a Namespace is cluster-scoped", scope, namespace, nil, Deny},
		{"policies are never seen", pods(func(d *vap.Draft) { d.Constraints.Rules[0].Groups = []string{"*"} }), self, nil, NoMatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := verdicts(t, judge(t, JudgeOptions{}, tt.d), tt.r, tt.labels); got[0].Outcome != tt.want {
				t.Errorf("got %s, %s; want %s", got[0].Outcome, got[0].Message, tt.want)
			}
		})
	}
}

func TestReviewParams(t *testing.T) {
	configMap := func(namespace, name, team string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"teams": "true"}},
			"data":     map[string]any{"team": team},
		}}
	}
	params := []*unstructured.Unstructured{configMap("policy", "a", "a"), configMap("policy", "b", "b"), configMap("app", "own", "a"), configMap("", "stray", "a")} // the last as a file may have it
	cluster := podRequest("CREATE", pod, "")
	cluster.Namespace = ""
	for _, tt := range []struct {
		name  string
		check string
		ref   *vap.ParamRef
		r     *admissionv1.AdmissionRequest
		want  string
	}{
		{"by name", "params.data.team == object.metadata.labels.team", &vap.ParamRef{Name: "a", Namespace: "policy"}, nil, "allow [policy/a allow]"},
		{"by selector, all must hold", "params.data.team == object.metadata.labels.team", &vap.ParamRef{Selector: &vap.Selector{}, Namespace: "policy"}, nil, "deny [policy/a allow policy/b deny]"},
		{"in the request's namespace", "params.data.team == 'a'", &vap.ParamRef{Name: "own"}, nil, "allow [app/own allow]"},
		{"no namespace to look in", "true", &vap.ParamRef{Name: "own"}, cluster, "error []"},
		{"missing, Deny", "true", &vap.ParamRef{Name: "x", Namespace: "policy"}, nil, "error []"},
		{"missing, Allow", "false", &vap.ParamRef{Name: "x", Namespace: "policy", NotFound: "Allow"}, nil, "nomatch []"},
		{"no reference", "params == null", nil, nil, "allow [ allow]"},
		{"kind of the params", "params.kind == 'ConfigMap' && params.apiVersion == 'v1'", &vap.ParamRef{Name: "a", Namespace: "policy"}, nil, "allow [policy/a allow]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := checks(tt.check)
			d.ParamKind = &vap.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			d.Bindings[0].Param = tt.ref
			if tt.r == nil {
				tt.r = podRequest("CREATE", pod, "")
			}
			v := verdicts(t, judge(t, JudgeOptions{Params: params}, d), tt.r, nil)[0]
			var results []string
			for _, r := range v.Results {
				results = append(results, fmt.Sprintf("%s %s", r.Param, r.Outcome))
			}
			if got := fmt.Sprintf("%s [%s]", v.Outcome, strings.Join(results, " ")); got != tt.want {
				t.Errorf("got %s (%s), want %s", got, v.Message, tt.want)
			}
		})
	}
	unknown := JudgeOptions{ParamScope: func(schema.GroupVersionKind) (bool, bool) { return false, false }}
	d := checks("true")
	d.ParamKind, d.Bindings[0].Param = &vap.ParamKind{APIVersion: "x.io/v1", Kind: "X"}, &vap.ParamRef{Name: "a", NotFound: "Allow"}
	d.Bindings[0].Actions = []string{"Audit"}
	if v := verdicts(t, judge(t, unknown, d), podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != Error || !v.Refused {
		t.Errorf("an unknown kind of params refuses, whatever the actions; got %+v", v)
	}
}

func TestReviewActions(t *testing.T) {
	for _, tt := range []struct {
		name, check, failure string
		actions              []string
		outcome              Outcome
		refused              bool
		warnings             int
	}{
		{"deny", "false", "Fail", []string{"Deny"}, Deny, true, 0},
		{"audit", "false", "Fail", []string{"Audit"}, Deny, false, 0},
		{"warn", "false", "Fail", []string{"Warn"}, Deny, false, 1},
		{"an error denies", "object.x == 1", "Fail", []string{"Deny"}, Error, true, 0},
		{"an error is ignored", "object.x == 1", "Ignore", []string{"Deny"}, Error, false, 0},
		{"an error warns", "object.x == 1", "Fail", []string{"Warn", "Audit"}, Error, false, 1},
		{"a violation is not ignored", "false", "Ignore", []string{"Deny"}, Deny, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := checks(tt.check)
			d.FailurePolicy, d.Bindings[0].Actions = tt.failure, tt.actions
			v := verdicts(t, judge(t, JudgeOptions{}, d), podRequest("CREATE", pod, ""), nil)[0]
			if v.Outcome != tt.outcome || v.Refused != tt.refused || len(v.Warnings) != tt.warnings {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// An error in a condition is an error, unless another condition is false.
func TestReviewConditionErrors(t *testing.T) {
	d := checks("true")
	d.FailurePolicy = "Ignore"
	d.Conditions = []vap.Condition{{Name: "errs", Expr: expr("object.x == 1").AsBool()}}
	if v := verdicts(t, judge(t, JudgeOptions{}, d), podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != Error || v.Refused {
		t.Errorf("got %+v", v)
	}
	d.Conditions = append(d.Conditions, vap.Condition{Name: "false", Expr: expr("has(object.x)").AsBool()})
	if v := verdicts(t, judge(t, JudgeOptions{}, d), podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != NoMatch {
		t.Errorf("got %+v", v)
	}
}

type everything struct{}

func (everything) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "alice" && a.GetVerb() == "delete" && a.GetResource() == "pods" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestReviewAuthorizer(t *testing.T) {
	d := checks(`authorizer.group("").resource("pods").check("delete").allowed() && !authorizer.group("").resource("pods").check("get").allowed()`)
	if v := verdicts(t, judge(t, JudgeOptions{Authorizer: everything{}}, d), podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != Allow {
		t.Errorf("got %+v", v)
	}
	if v := verdicts(t, judge(t, JudgeOptions{}, d), podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != Deny {
		t.Errorf("without an authorizer: %+v", v)
	}
}

func TestReviewAudits(t *testing.T) {
	d := checks("true")
	d.Audits = []vap.Audit{{Key: "image", Value: expr("'image ' + object.spec.containers[0].image")}}
	j := judge(t, JudgeOptions{}, d)
	if v := verdicts(t, j, podRequest("CREATE", pod, ""), nil)[0]; v.Outcome != Allow || v.Audits["image"] != "image i" {
		t.Errorf("got %+v", v)
	}
	d.Bindings[0].Actions = []string{"Audit"}
	if v := verdicts(t, j, podRequest("CREATE", podHost, ""), nil)[0]; v.Outcome != Error || !v.Refused {
		t.Errorf("an audit annotation that errs refuses; got %+v", v)
	}
}

func TestReviewUnreadable(t *testing.T) {
	j := judge(t, JudgeOptions{}, teamDraft())
	for _, r := range []*admissionv1.AdmissionRequest{podRequest("PATCH", pod, ""), podRequest("CREATE", `[]`, ""), podRequest("CREATE", `{`, "")} {
		if _, err := j.Review(t.Context(), r, nil); err == nil {
			t.Errorf("%s %s: no error", r.Operation, r.Object.Raw)
		}
	}
}

func TestReviewUnbound(t *testing.T) {
	d := teamDraft()
	d.Bindings = nil
	if v := verdicts(t, judge(t, JudgeOptions{}, d), podRequest("CREATE", podHost, ""), nil); len(v) != 1 || v[0].Outcome != NoMatch || v[0].Message == "" {
		t.Errorf("got %+v", v)
	}
}

func TestReviewEquivalent(t *testing.T) {
	d := checks("object.apiVersion == 'x.io/v1' && request.kind.version == 'v1' && request.requestKind.version == 'v2'")
	d.Constraints.Rules = []vap.ResourceRule{{Groups: []string{"x.io"}, Versions: []string{"v1"}, Resources: []string{"widgets"}, Operations: []string{"*"}}}
	registry := runtime.NewEquivalentResourceRegistry()
	for _, v := range []string{"v1", "v2"} {
		registry.RegisterKindFor(schema.GroupVersionResource{Group: "x.io", Version: v, Resource: "widgets"}, "", schema.GroupVersionKind{Group: "x.io", Version: v, Kind: "Widget"})
	}
	r := podRequest("CREATE", `{"apiVersion":"x.io/v2","kind":"Widget"}`, "")
	r.Kind = metav1.GroupVersionKind{Group: "x.io", Version: "v2", Kind: "Widget"}
	r.Resource = metav1.GroupVersionResource{Group: "x.io", Version: "v2", Resource: "widgets"}
	if v := verdicts(t, judge(t, JudgeOptions{Equivalent: registry}, d), r, nil)[0]; v.Outcome != Allow {
		t.Errorf("got %+v", v)
	}
	d.Constraints.MatchPolicy = "Exact"
	if v := verdicts(t, judge(t, JudgeOptions{Equivalent: registry}, d), r, nil)[0]; v.Outcome != NoMatch {
		t.Errorf("exact: %+v", v)
	}
}
