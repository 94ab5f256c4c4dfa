package incluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/policy/validity"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// A PolicyChecks is which policies are looked at when they are written.
type PolicyChecks string

// What may be looked at.
const (
	CheckAuto PolicyChecks = "auto" // those of Kyverno's kinds too where Kyverno does not
	CheckAll  PolicyChecks = "all"
	CheckOwn  PolicyChecks = "own" // those of kvap.dev
	CheckNone PolicyChecks = "none"
)

// AllPolicyChecks are all of them.
func AllPolicyChecks() []PolicyChecks {
	return []PolicyChecks{CheckAuto, CheckAll, CheckOwn, CheckNone}
}

// kyvernoChecks is the configuration by which API servers ask Kyverno about policies. Kyverno
// removes it when it ends for good.
const kyvernoChecks = "kyverno-policy-validating-webhook-cfg"

// of tells whether policies are looked at, and whether those of Kyverno's kinds are. others are
// the names of configurations that are not kvap's.
func (c PolicyChecks) of(others []string) (kyverno, some bool) {
	switch c {
	case CheckNone:
		return false, false
	case CheckOwn:
		return false, true
	case CheckAll:
		return true, true
	}
	return !slices.Contains(others, kyvernoChecks), true
}

// servedKinds is what the cluster serves, as a world.Served knows it.
type servedKinds interface {
	Table() *registration.Table
	Refresh() error
}

// A policyReviewer says what is wrong with policies that are written into a cluster.
type policyReviewer struct {
	served  servedKinds
	options translate.Options

	mu    sync.Mutex
	asked time.Time // when the cluster was last asked for kinds that are not known
}

// policyReview looks at policies that are written; nil where none is looked at.
func (o *fallback) policyReview(config *rest.Config, c controller.Options) (webhook.PolicyReview, error) {
	if o.options.Policies == CheckNone {
		return nil, nil
	}
	release := c.Release
	if release == 0 {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		if release, err = controller.ReleaseOf(client.Discovery()); err != nil {
			return nil, err
		}
	}
	reviewer, err := newPolicyReviewer(o.world.Served(), release, c)
	if err != nil {
		return nil, err
	}
	return reviewer.review, nil
}

// newPolicyReviewer makes one for API servers of a release.
func newPolicyReviewer(served servedKinds, release cel.Release, o controller.Options) (*policyReviewer, error) {
	builtin, err := schema.Builtin(release.String())
	if err != nil {
		return nil, err
	}
	return &policyReviewer{served: served, options: translate.Options{
		Release: release, Schemas: builtin.WithPublished(), Pack: translate.PackMatch, Guard: translate.GuardAuto, AnyGroup: true,
		Params: translate.ParamsKvap, OwnNamespace: o.Namespace, Mutations: o.Mutations != controller.MutationsWebhook && release.Supports(compile.FirstMutations), Repeatable: true,
	}}, nil
}

// review is a webhook.PolicyReview.
func (r *policyReviewer) review(ctx context.Context, object, before map[string]any) (refusals, warnings []string) {
	o := &unstructured.Unstructured{Object: object}
	f, found := validity.Written(ctx, "", controller.SourceText(o), r.find())
	if before != nil && len(f.Policies) == 1 {
		was, _ := policy.Parse("", controller.SourceText(&unstructured.Unstructured{Object: before}))
		if len(was.Policies) == 1 {
			found = append(found, validity.Change(was.Policies[0], f.Policies[0])...)
		}
	}
	for _, d := range found {
		switch {
		case d.Severity == diag.Error:
			refusals = append(refusals, told(d))
		case d.Severity == diag.Warning && d.Code != diag.OnSchedule:
			warnings = append(warnings, told(d))
		}
	}
	if len(refusals) == 0 {
		warnings = append(warnings, r.compiled(f)...)
	}
	return refusals, warnings
}

// told is a diagnostic in one line. Its words come first, as users know them of Kyverno.
func told(d diag.Diagnostic) string {
	if d.Path == "" {
		return fmt.Sprintf("%s (%s)", d.Message, d.Code)
	}
	return fmt.Sprintf("%s (%s at %s)", d.Message, d.Code, d.Path)
}

// compiled warns of what only the compiler knows: rules that will not be native, and those that
// deny everything, or never anything.
func (r *policyReviewer) compiled(f *policy.File) (out []string) {
	result := compile.Policies(compile.Input{Policies: f.Policies}, compile.Options{
		Translate: r.options, Steps: compile.SharedSteps(f.Policies),
	})
	for _, d := range result.Diagnostics {
		if d.Severity == diag.Warning && d.Code >= diag.DeniesEvery && d.Code <= diag.OptionalField {
			out = append(out, told(d))
		}
	}
	for _, rule := range result.Rules {
		i := slices.IndexFunc(rule.Codes, func(c diag.Code) bool { return c/100 == 2 })
		if rule.Target != translate.Webhook || i < 0 || rule.Codes[i] == diag.OtherRule || rule.Codes[i] == diag.BackgroundOnly {
			continue // what is never native is no news
		}
		out = append(out, fmt.Sprintf("the rule %s will not be native: %s (%s at %s)", rule.Name(), rule.Reason, rule.Codes[i], rule.Pos().Path))
	}
	return out
}

// askEvery is how often a cluster is asked at most for kinds that are not known.
const askEvery = time.Second

// find finds the kinds that the cluster serves. It is asked again for what is not known, which
// may have come a moment ago.
func (r *policyReviewer) find() validity.Finder {
	return func(group, version, kind string) []schema.Resource {
		out := r.known(group, version, kind)
		if len(out) == 0 && r.ask() {
			out = r.known(group, version, kind)
		}
		return out
	}
}

func (r *policyReviewer) ask() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < askEvery {
		return false
	}
	r.asked = time.Now()
	return r.served.Refresh() == nil
}

func (r *policyReviewer) known(group, version, kind string) (out []schema.Resource) {
	for _, of := range r.served.Table().Resources(group, version, kind) {
		one := schema.Resource{GVK: schema.GVK{Group: of.Group, Version: of.Version, Kind: of.Kind}, Plural: of.Plural, Namespaced: of.Namespaced}
		for _, name := range of.Subresources {
			one.Subresources = append(one.Subresources, schema.Subresource{Name: name})
		}
		out = append(out, one)
	}
	return out
}
