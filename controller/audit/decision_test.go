package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/vap"
)

// someCluster has native policies that kvap made, with their source maps.
type someCluster map[string]string

func (c someCluster) Native(_ context.Context, name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	text, ok := c[name]
	if !ok {
		return nil, nil
	}
	out := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	out.Name, out.Annotations = name, map[string]string{vap.TranslationAnnotation: text}
	for i := range strings.Count(text, `{"member":`) {
		out.Spec.Validations = append(out.Spec.Validations, admissionregistrationv1.Validation{Message: fmt.Sprintf("words %d", i)})
	}
	return out, nil
}

func (someCluster) Source(_ context.Context, m vap.TranslatedMember, _ string) (v1alpha1.PolicyReference, bool, error) {
	return v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: m.Policy}, m.Policy != "gone", nil
}

func (someCluster) Kind(of schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, ok := map[string]string{"pods": "Pod", "namespaces": "Namespace", "deployments": "Deployment"}[of.Resource]
	if !ok {
		return schema.GroupVersionKind{}, &meta.NoResourceMatchError{PartialResource: of}
	}
	return of.GroupVersion().WithKind(kind), nil
}

func natives() someCluster {
	return someCluster{
		"owners": `{"members":[{"policy":"owners","rule":"owner"}],"validations":[{"member":0}]}`,
		"two":    `{"members":[{"policy":"two","rule":"a"},{"policy":"two","rule":"b"}],"validations":[{"member":0},{"member":1}]}`,
		"packed": `{"members":[{"policy":"x","rule":"a"},{"policy":"y","rule":"a"}],"validations":[{"member":0},{"member":1}]}`,
		"forms": `{"members":[{"policy":"tags","rule":"tag","resources":["pods"]},{"policy":"tags","rule":"autogen-tag","origin":"tag","resources":["deployments"]}],` +
			`"validations":[{"member":0}]}`,
		"gone": `{"members":[{"policy":"gone","rule":"a"}],"validations":[{"member":0}]}`,
	}
}

// anEvent is a line of a log about the creation of the Pod shop/web, with changes.
func anEvent(t *testing.T, changes ...func(e map[string]any)) []byte {
	t.Helper()
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete", "verb": "create", "requestURI": "/api/v1/namespaces/shop/pods",
		"user":           map[string]any{"username": "alice"},
		"objectRef":      map[string]any{"apiVersion": "v1", "resource": "pods", "namespace": "shop", "name": "web"},
		"responseStatus": map[string]any{"code": 201},
	}
	for _, c := range changes {
		c(e)
	}
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func with(key string, value any) func(map[string]any) {
	return func(e map[string]any) { e[key] = value }
}

func answered(code int, message string) func(map[string]any) {
	return with("responseStatus", map[string]any{"code": code, "message": message})
}

func failed(t *testing.T, failures ...Failure) func(map[string]any) {
	t.Helper()
	text, err := json.Marshal(failures)
	if err != nil {
		t.Fatal(err)
	}
	return with("annotations", map[string]string{FailureKey: string(text)})
}

// What native policies of kvap's decide is found in the log, and nothing else.
func TestDecisions(t *testing.T) {
	deniedBy := func(policy, words string) func(map[string]any) {
		return answered(422, fmt.Sprintf(`pods "web" is forbidden: ValidatingAdmissionPolicy '%s' with binding 'b' denied request: %s`, policy, words))
	}
	audited := func(policy string, expression int, actions ...string) Failure {
		return Failure{Policy: policy, Binding: "b", Message: "words", ExpressionIndex: expression, Actions: actions}
	}
	for name, c := range map[string]struct {
		changes []func(map[string]any)
		want    []string
	}{
		"nothing":                 {nil, nil},
		"a denial":                {[]func(map[string]any){deniedBy("owners", "name an\nowner")}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked: name an\nowner"}},
		"with another code":       {[]func(map[string]any){answered(403, `pods "web" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'b' denied request: words`)}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked: words"}},
		"without a binding":       {[]func(map[string]any){answered(422, `pods "web" is forbidden: ValidatingAdmissionPolicy 'owners' denied request: failed to configure policy: why`)}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked erred: failed to configure policy: why"}},
		"an expression that errs": {[]func(map[string]any){deniedBy("owners", "expression 'a.b' resulted in error: no such key: b")}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked erred: expression 'a.b' resulted in error: no such key: b"}},
		"of a policy of others":   {[]func(map[string]any){deniedBy("other", "words")}, nil},
		"of a policy that went":   {[]func(map[string]any){deniedBy("gone", "words")}, nil},
		"a webhook's denial":      {[]func(map[string]any){answered(403, `admission webhook "x" denied the request: ValidatingAdmissionPolicy 'owners' with binding 'b' denied request: words`)}, nil},
		"a value that is quoted": {[]func(map[string]any){answered(422, `Pod "web" is invalid: spec.x: Invalid value: " is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'b' denied request: words"`)},
			nil},
		"without a name": {[]func(map[string]any){answered(422, "pods is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'b' denied request: words")}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked: words"}},
		"by its words":   {[]func(map[string]any){deniedBy("two", "words 1: [x]")}, []string{"two/b CREATE v1 Pod shop/web alice blocked: words 1: [x]"}},
		"by the rules that it names": {[]func(map[string]any){deniedBy("two", "computed (all violated: a, b)")}, []string{
			"two/a CREATE v1 Pod shop/web alice blocked: words 0", "two/b CREATE v1 Pod shop/web alice blocked: words 1"}},
		"by the name of its policy": {[]func(map[string]any){deniedBy("packed", "computed (violated too: y/a)")}, []string{"y/a CREATE v1 Pod shop/web alice blocked: words 1"}},
		"by the name in front": {[]func(map[string]any){deniedBy("packed", "[y/a] computed: [x] (all violated: x/a, y/a)")}, []string{
			"y/a CREATE v1 Pod shop/web alice blocked: computed: [x]", "x/a CREATE v1 Pod shop/web alice blocked: words 0"}},
		"words in brackets":          {[]func(map[string]any){deniedBy("owners", "[y/a] computed")}, []string{"owners/owner CREATE v1 Pod shop/web alice blocked: [y/a] computed"}},
		"of one of two rules":        {[]func(map[string]any){deniedBy("two", "computed")}, []string{"two/ CREATE v1 Pod shop/web alice blocked: computed"}},
		"of one of two policies":     {[]func(map[string]any){deniedBy("packed", "computed")}, nil},
		"of the form for the object": {[]func(map[string]any){deniedBy("forms", "computed")}, []string{"tags/tag CREATE v1 Pod shop/web alice blocked: computed"}},
		"of the form for controllers": {[]func(map[string]any){deniedBy("forms", "words 0"), with("objectRef", map[string]any{"apiGroup": "apps", "apiVersion": "v1", "resource": "deployments", "namespace": "shop", "name": "web"})},
			[]string{"tags/autogen-tag CREATE apps/v1 Deployment shop/web alice blocked: words 0"}},
		"what is audited":            {[]func(map[string]any){failed(t, audited("two", 1, "Audit"), audited("other", 0, "Audit"))}, []string{"two/b CREATE v1 Pod shop/web alice admitted: words"}},
		"audited, and denied":        {[]func(map[string]any){failed(t, audited("two", 1, "Audit")), deniedBy("owners", "words")}, []string{"two/b CREATE v1 Pod shop/web alice: words", "owners/owner CREATE v1 Pod shop/web alice blocked: words"}},
		"denied and audited by one":  {[]func(map[string]any){failed(t, audited("two", 1, "Deny", "Audit")), deniedBy("two", "words")}, []string{"two/b CREATE v1 Pod shop/web alice blocked: words"}},
		"audited, refused by others": {[]func(map[string]any){failed(t, audited("owners", 0, "Audit")), answered(403, "no quota")}, []string{"owners/owner CREATE v1 Pod shop/web alice: words"}},
		"an update": {[]func(map[string]any){failed(t, audited("owners", 0, "Audit")), with("verb", "patch"), answered(200, ""),
			with("objectRef", map[string]any{"apiVersion": "v1", "resource": "namespaces", "namespace": "shop", "name": "shop", "uid": "1"})},
			[]string{"owners/owner UPDATE v1 Namespace /shop alice admitted: words"}},
		"a kind that is not served": {[]func(map[string]any){deniedBy("owners", "words"), with("objectRef", map[string]any{"resource": "others"})}, []string{"error"}},
		"an exec": {[]func(map[string]any){deniedBy("owners", "words"), with("objectRef", map[string]any{"apiVersion": "v1", "resource": "pods", "subresource": "exec", "namespace": "shop", "name": "web"})},
			[]string{"owners/owner CONNECT v1 Pod shop/web alice blocked: words"}},
		"a dry run":             {[]func(map[string]any){deniedBy("owners", "words"), with("requestURI", "/api/v1/namespaces/shop/pods?dryRun=All&fieldManager=x")}, nil},
		"a dry run of deletion": {[]func(map[string]any){deniedBy("owners", "words"), with("verb", "delete"), with("requestObject", map[string]any{"kind": "DeleteOptions", "dryRun": []string{"All"}})}, nil},
	} {
		e, err := ReadEvent(anEvent(t, c.changes...))
		if err != nil || !e.Ends() {
			t.Fatalf("%s: %v, %+v", name, err, e)
		}
		found, err := decisions(t.Context(), e, natives())
		var got []string
		for _, d := range found {
			line := fmt.Sprintf("%s/%s %s %s %s %s/%s %s", d.Policy.Name, d.Rule, d.Operation, d.Object.APIVersion, d.Object.Kind, d.Object.Namespace, d.Object.Name, d.User)
			for word, is := range map[string]bool{" admitted": d.Admitted, " blocked": d.Blocked} {
				if is {
					line += word
				}
			}
			if d.Erred {
				line += " erred"
			}
			got = append(got, line+": "+d.Message)
		}
		if err != nil {
			got = append(got, "error")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s\n%v", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"), err)
		}
	}
}

// An object that is new has the UID of the answer, where the log has it.
func TestUIDOfWhatIsNew(t *testing.T) {
	audited := failed(t, Failure{Policy: "owners", Message: "words", Actions: []string{"Audit"}})
	e, err := ReadEvent(anEvent(t, audited, with("responseObject", map[string]any{"kind": "Pod", "metadata": map[string]any{"uid": "7"}})))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := decisions(t.Context(), e, natives()); err != nil || len(found) != 1 || found[0].Object.UID != "7" {
		t.Errorf("%+v, %v", found, err)
	}
}

// Only the end of a request that writes counts.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   bool
	}{
		"a write":      {with("verb", "create"), true},
		"a read":       {with("verb", "list"), false},
		"its begin":    {with("stage", "RequestReceived"), false},
		"of no object": {with("objectRef", nil), false},
	} {
		e, err := ReadEvent(anEvent(t, c.change))
		if err != nil || e.Ends() != c.want {
			t.Errorf("%s: %t, %v", name, e.Ends(), err)
		}
	}
	if _, err := ReadEvent([]byte(`{"kind":"Event","apiVersion":"v1"}`)); err == nil {
		t.Error("an Event of the cluster is taken for one of the log")
	}
}
