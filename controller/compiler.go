package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A compiler compiles all policies, and of those that are as before nothing anew.
type compiler struct {
	options   Options
	mutations bool // rules that mutate become native
	merging   translate.Merging

	cache      *compile.Cache
	schemas    *schema.Set
	policies   []*policy.Policy
	exceptions []*policy.Exception
	taken      []string
	result     compile.Result
}

// compile compiles as the command line does, with one pack for what matches alike, guards,
// kvap's own params, and names that nobody else has taken. Where the context ends meanwhile
// there is no result: it does so when the process ends or another replica leads. What a
// policy costs is bounded, and what those of one namespace cost together, so that none holds
// up the others.
func (c *compiler) compile(ctx context.Context, s policyList, schemas *schema.Set) (compile.Result, error) {
	in := compile.Input{Exceptions: s.exceptions}
	for _, source := range s.sources {
		if source.policy != nil {
			in.Policies = append(in.Policies, source.policy)
			in.Found = append(in.Found, source.found...)
		}
	}
	if c.schemas != schemas || !slices.Equal(c.exceptions, s.exceptions) {
		c.cache = nil
	}
	if c.cache != nil && slices.Equal(c.policies, in.Policies) && slices.Equal(c.taken, s.taken) {
		return c.result, nil
	}
	if c.cache == nil {
		c.cache = compile.NewCache()
	}
	c.schemas, c.policies, c.exceptions, c.taken = schemas, in.Policies, slices.Clone(s.exceptions), s.taken
	c.result = compile.Policies(in, compile.Options{
		Translate: translate.Options{
			Release: c.options.Release, Schemas: schemas,
			Pack: translate.PackMatch, Guard: translate.GuardAuto, AnyGroup: true, Params: translate.ParamsKvap, OwnNamespace: c.options.Namespace,
			Mutations: c.mutations, Merging: c.merging, Repeatable: c.options.Fallback != NoFallback{},
		},
		Emit:           vap.EmitOptions{ExcludeNamespaces: c.options.ExcludeNamespaces, Taken: s.taken},
		Cache:          c.cache,
		Stopped:        func() bool { return ctx.Err() != nil },
		Steps:          compile.SharedSteps(in.Policies),
		NamespaceLimit: c.options.NamespaceLimit,
	})
	if c.result.Stopped {
		c.cache, c.policies = nil, nil
		return compile.Result{}, ctx.Err()
	}
	return c.result, nil
}

// clusterTypes is the types of the cluster: those of its release, and of
// custom kinds those that a policy names.
type clusterTypes struct {
	builtin *schema.Set
	direct  client.Reader

	state string            // of the definitions that were read
	kinds map[string]string // by the name of a definition
	taken map[string]bool   // the definitions that are in the set
	set   *schema.Set
	// digest is of all that is in the set.
	digest string
}

// page is how many definitions are read at a time: some are large.
const page = 20

// of are the types for policies. The set stays the same while nothing has changed
// that the policies name.
func (t *clusterTypes) of(ctx context.Context, sources []*policySource, state string) (*schema.Set, error) {
	if t.set == nil || t.state != state || t.namesMore(sources) {
		if err := t.read(ctx, sources, state); err != nil {
			return nil, err
		}
	}
	return t.set, nil
}

// namesMore tells that policies name a kind that is defined and was not read.
func (t *clusterTypes) namesMore(sources []*policySource) bool {
	for definition, kind := range t.kinds {
		plural, _, _ := strings.Cut(definition, ".")
		if !t.taken[definition] && (anyNames(sources, kind) || anyNames(sources, plural)) {
			return true
		}
	}
	return false
}

func anyNames(sources []*policySource, kind string) bool {
	return slices.ContainsFunc(sources, func(s *policySource) bool { return bytes.Contains(s.text, []byte(kind)) })
}

func (t *clusterTypes) read(ctx context.Context, sources []*policySource, state string) error {
	set, kinds, taken, digest := t.builtin, map[string]string{}, map[string]bool{}, ""
	for from := ""; ; {
		var list apiextensionsv1.CustomResourceDefinitionList // a new one: what a page does not say would stay
		if err := t.direct.List(ctx, &list, client.Limit(page), client.Continue(from)); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			kinds[crd.Name] = crd.Spec.Names.Kind
			if !anyNames(sources, crd.Spec.Names.Kind) && !anyNames(sources, crd.Spec.Names.Plural) {
				continue
			}
			crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
			crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name}
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			text, err := json.Marshal(crd)
			if err != nil {
				return err
			}
			set, _ = set.WithCRDFile(crd.Name, text) // what cannot be read stays unknown
			taken[crd.Name] = true
			digest = hashOf(digest + string(text))
		}
		if from = list.Continue; from == "" {
			break
		}
	}
	t.state, t.kinds, t.taken = state, kinds, taken
	if t.set == nil || t.digest != digest {
		t.set, t.digest = set, digest
	}
	return nil
}

// rulesByPolicy are the rules of a compilation, of each policy in order.
func rulesByPolicy(result compile.Result) map[*policy.Policy][]*compile.Rule {
	out := map[*policy.Policy][]*compile.Rule{}
	for _, r := range result.Rules {
		out[r.Policy] = append(out[r.Policy], r)
	}
	return out
}

// isLeft tells of a rule that the webhook is to judge.
func isLeft(r *compile.Rule) bool {
	return r.Target == translate.Webhook && !r.Policy.Invalid && (r.Source == nil || !r.Source.Invalid)
}

// What runs the rules that mutate: the API server where it can, which is an error to want where
// it cannot, or always the webhook.
const (
	MutationsAuto    = "auto"
	MutationsNative  = "native"
	MutationsWebhook = "webhook"
)

// servesMutations tells whether a cluster serves MutatingAdmissionPolicies, of the version that
// is there to stay, and the controller may read them. Where it does, those that it has made are
// looked after whatever is wanted now.
func servesMutations(ctx context.Context, d discovery.DiscoveryInterface, direct client.Reader) (bool, error) {
	of, err := d.ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		return false, fmt.Errorf("whether the API server serves MutatingAdmissionPolicies: %w", err)
	}
	if !slices.ContainsFunc(of.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		return false, nil
	}
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingAdmissionPolicyList{}, &admissionregistrationv1.MutatingAdmissionPolicyBindingList{},
	} {
		err := direct.List(ctx, list, client.Limit(1))
		if apierrors.IsForbidden(err) { // the role is that of an older version
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("MutatingAdmissionPolicies: %w", err)
		}
	}
	return true, nil
}

// mutationsOf tells whether rules that mutate become native.
func mutationsOf(wanted string, served bool, release cel.Release) (bool, error) {
	can := served && release.Supports(compile.FirstMutations)
	if wanted == MutationsNative && !can {
		return false, fmt.Errorf("mutations are to be native, and need an API server of Kubernetes %s or newer that serves MutatingAdmissionPolicies, and lets the controller list them", compile.FirstMutations)
	}
	return can && wanted != MutationsWebhook, nil
}

// perExpression is what the API server lets one expression cost.
const perExpression = 1_000_000

// costPercent is the estimated cost of a rule's dearest expression, a validation or a
// variable that one reads, as a share of what the API server allows, rounded up; 0 for a
// rule that has none.
func costPercent(r *compile.Rule, result compile.Result) int32 {
	var most int64
	for _, f := range r.Forms {
		for _, p := range f.Places {
			draft := result.Objects[p.Object].Draft
			read := map[string]bool{}
			cost := func(v cel.Value) {
				most = max(most, cel.Cost(v, nil))
				for _, name := range v.Uses("variables") {
					read[name] = true
				}
			}
			for _, v := range draft.Validations {
				if v.Of(p.Member) {
					cost(v.Expr.Value)
				}
			}
			for _, v := range slices.Backward(draft.Variables) { // each reads those before it
				if read[v.Name] {
					cost(v.Expr)
				}
			}
		}
	}
	return int32(min(most, 100*perExpression)+perExpression/100-1) / (perExpression / 100)
}

// reasonCostly is the reason of Compiled where a rule may cost more than is allowed.
const reasonCostly = "Costly"

// dear is the dearest rule, if it may cost more than the API server allows; else nil.
func dear(rows []v1alpha1.RuleStatus) *v1alpha1.RuleStatus {
	var out *v1alpha1.RuleStatus
	for i := range rows {
		if r := &rows[i]; r.CostPercent > 100 && (out == nil || r.CostPercent > out.CostPercent) {
			out = r
		}
	}
	return out
}

// The bounds of reports: how often everything is scanned, how long changes of
// policies gather before that, and how many results a report has.
const (
	scanEvery  = time.Hour
	scanSettle = 2 * time.Second
	maxResults = 50
)

// found passes on what is new in a report.
func (r *reconciler) found(f scan.Finding) {
	if sources := r.scannedSources.Load(); sources != nil && r.options.Found != nil {
		if of, ok := (*sources)[f.Result.Kind+" "+f.Result.Policy]; ok {
			r.options.Found(of, f)
		}
	}
}

// scan gives the scanner what was compiled, unless that is what it has. The compiler
// gives the same result as long as nothing changes.
func (r *reconciler) scan(in policyList, result compile.Result, schemas *schema.Set) {
	if r.scanner == nil || r.scanned != nil && slices.Equal(r.scanned, result.Rules) {
		return
	}
	r.scanned = append([]*compile.Rule{}, result.Rules...)
	sources, since := map[string]v1alpha1.PolicyReference{}, map[*policy.Policy]time.Time{}
	for _, s := range in.sources {
		if s.policy != nil && s.mode == v1alpha1.ModeEnforce { // in shadow nobody is told
			sources[s.policy.Kind+" "+s.policy.FullName()] = s.ref
		}
		since[s.policy] = s.since
	}
	r.scannedSources.Store(&sources)
	r.scanner.Set(scan.Policies{
		Compiled: result, Exceptions: in.exceptions, Schemas: schemas, ExcludeNamespaces: r.options.ExcludeNamespaces, World: r.options.World,
		ForReports: true, Since: since,
	})
}
