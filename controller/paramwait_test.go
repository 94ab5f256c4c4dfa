package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// reading is a native object that reads a ConfigMap of the namespace default, and has an
// action where that is not found.
func reading(name, configMap, notFound string) vap.Objects {
	action := admissionregistrationv1.ParameterNotFoundActionType(notFound)
	p := &nativePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Params"}
	b := &nativeBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.PolicyName = name
	b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: configMap, Namespace: "default", ParameterNotFoundAction: &action}
	return vap.Objects{Policy: p, Bindings: []*nativeBinding{b}, Draft: &vap.Draft{}}
}

// A rule that would refuse everything for want of a ConfigMap is the webhook's meanwhile,
// and the policy says so; one that would judge nothing stays, and so do others.
func TestRulesWaitForConfigMaps(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	rule := func(name string, objects ...int) *compile.Rule {
		return &compile.Rule{Policy: p, Source: &policy.Rule{Name: name, Validate: &policy.Validate{}}, Target: translate.Native, Objects: objects}
	}
	result := compile.Result{
		Objects: []vap.Objects{reading("denies", "gone", "Deny"), reading("audits", "gone", "Allow"), reading("has", "there", "Deny"), reading("also", "gone", "Deny")},
		Rules:   []*compile.Rule{rule("denies", 0, 3), rule("audits", 1), rule("has", 2)},
	}
	c := &compileResult{result: result}
	got, waiting := waitForParams(c, []configMapRef{{"default", "gone"}}, nil)
	for i, want := range []struct {
		target  translate.Target
		objects []int
	}{{translate.Webhook, nil}, {translate.Native, []int{1}}, {translate.Native, []int{2}}} {
		if r := got.Rules[i]; r.Target != want.target || !slices.Equal(r.Objects, want.objects) {
			t.Errorf("%s: %s by %v", r.Name(), r.Target, r.Objects)
		}
	}
	if result.Rules[0].Target != translate.Native {
		t.Error("what was compiled has changed, which the next pass begins with")
	}
	judges := wantedPolicies(c.all())
	if len(judges) != 2 || judges["denies"] != nil || judges["also"] != nil {
		t.Errorf("wanted: %v", judges)
	}
	o := &passResult{
		compileResult: compileResult{result: got, rules: map[*policy.Policy][]*compile.Rule{p: got.Rules[:1]}},
		paramResult:   paramResult{waiting: waiting, missing: []configMapRef{{"default", "gone"}}},
	}
	status := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionParamsResolved)
	if condition.Reason != "Missing" || !strings.Contains(condition.Message, "the webhook judges by the rule") {
		t.Errorf("%+v", condition)
	}
}

// Params that cannot be written are as missing as those of a ConfigMap that is not there,
// and the policy says why; those of others are written all the same.
func TestParamsThatCannotBeWritten(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if o.GetName() == "refused" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "params"}, o.GetName(), errors.New("a policy"))
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()
	s := newParamSync(nil, &writer{client: c, direct: c, tell: func(string) {}}, func() {})
	refused, taken := configMapRef{"default", "refused"}, configMapRef{"default", "taken"}
	in := foundConfigMaps{}
	for _, ref := range []configMapRef{refused, taken} {
		in[ref] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ref.namespace, Name: ref.name}}
	}
	unwritten, err := s.ensure(t.Context(), in)
	if err == nil || len(unwritten) != 1 || unwritten[refused] == nil {
		t.Errorf("got %v, %v", unwritten, err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "taken"}, &v1alpha1.Params{}); err != nil {
		t.Error(err)
	}

	p := &policy.Policy{Name: "p"}
	result := compile.Result{
		Objects: []vap.Objects{reading("denies", "refused", "Deny")},
		Rules:   []*compile.Rule{{Policy: p, Source: &policy.Rule{Name: "denies", Validate: &policy.Validate{}}, Target: translate.Native, Objects: []int{0}}},
	}
	got, waiting := waitForParams(&compileResult{result: result}, []configMapRef{refused}, nil)
	o := &passResult{
		compileResult: compileResult{result: got, rules: map[*policy.Policy][]*compile.Rule{p: got.Rules}},
		paramResult:   paramResult{waiting: waiting, unwritten: unwritten, params: err},
	}
	status := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
	if condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionParamsResolved); condition.Reason != "Forbidden" {
		t.Errorf("%+v", condition)
	}
}

// In a namespace that is being deleted no params can be made: they are as missing, and nobody
// need try again.
func TestParamsOfANamespaceThatGoes(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	ref := configMapRef{"going", "teams"}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "params"}, ref.name, errors.New("unable to create new content"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, answer := range []error{terminating, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ref.namespace)} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return answer
			},
		}).Build()
		s := newParamSync(nil, &writer{client: c, direct: c, tell: func(string) {}}, func() {})
		unwritten, err := s.ensure(t.Context(), foundConfigMaps{ref: {ObjectMeta: metav1.ObjectMeta{Namespace: ref.namespace, Name: ref.name}}})
		if err != nil || unwritten[ref] == nil {
			t.Errorf("%v: unwritten %v, %v", answer, unwritten, err)
		}
	}
}

// A rule that reads a ConfigMap of each object's own namespace is the webhook's while a
// namespace that it judges in has none, which is no fault of the policy.
func TestRulesWaitForNamespaces(t *testing.T) {
	o := reading("own", "teams", "Deny")
	o.Bindings[0].Spec.ParamRef.Namespace = ""
	o.Bindings[0].Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
	}}}
	p := &policy.Policy{Name: "p"}
	result := compile.Result{
		Objects: []vap.Objects{o},
		Rules:   []*compile.Rule{{Policy: p, Source: &policy.Rule{Name: "own", Validate: &policy.Validate{}}, Target: translate.Native, Objects: []int{0}}},
	}
	var all []namespace
	for _, name := range []string{"apps", "kube-system"} {
		all = append(all, namespace{name: name, labels: map[string]string{"kubernetes.io/metadata.name": name}})
	}
	for _, tt := range []struct {
		missing []configMapRef
		want    translate.Target
	}{
		{[]configMapRef{{"kube-system", "teams"}, {"apps", "others"}}, translate.Native},
		{[]configMapRef{{"kube-system", "teams"}, {"apps", "teams"}}, translate.Webhook},
	} {
		got, waiting := waitForParams(&compileResult{result: result}, tt.missing, all)
		if got.Rules[0].Target != tt.want {
			t.Errorf("without %v: %s", tt.missing, got.Rules[0].Target)
		}
		o := &passResult{compileResult: compileResult{result: got, rules: map[*policy.Policy][]*compile.Rule{p: got.Rules}}, paramResult: paramResult{waiting: waiting}}
		status := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionParamsResolved)
		if c.Status != metav1.ConditionTrue || strings.Contains(c.Message, "apps has none") != (tt.want == translate.Webhook) {
			t.Errorf("%+v", c)
		}
	}
}
