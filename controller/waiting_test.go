package controller

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	got, waiting := waitForParams(result, []configMapRef{{"default", "gone"}})
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
	judges := wantedJudges(got.Objects, waiting.objects)
	if len(judges) != 2 || judges["denies"] != nil || judges["also"] != nil {
		t.Errorf("wanted: %v", judges)
	}
	o := &outcome{result: got, waiting: waiting, missing: []configMapRef{{"default", "gone"}}, rules: map[*policy.Policy][]*compile.Rule{p: got.Rules[:1]}}
	status := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionParamsResolved)
	if c.Reason != "Missing" || !strings.Contains(c.Message, "the webhook judges by the rule") {
		t.Errorf("%+v", c)
	}
}
