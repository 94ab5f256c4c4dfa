package planning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
)

// Options say of what a plan is made.
type Options struct {
	Files     []string // of policies; without them and Kustomize, those of the cluster
	Kustomize string
	Resources []string // files of objects, beside those of the cluster
	Params    []string // files of what rules look up
	Choices   convert.Choices
	Cluster   *cluster.Connection         // nil where everything is in files
	Counts    func(namespace string) bool // whether exceptions of the cluster's namespace count
	Stdin     io.Reader
	Progress  func(format string, args ...any)
}

// A Planning is a run of plan.
type Planning struct {
	Options
	cluster.LeftOut

	Sources []input.Source              // of policies, objects and what rules look up
	unread  diag.List                   // files that could not be read
	Idle    []string                    // exceptions that do not count, by their namespaces
	legacy  []unstructured.Unstructured // a policy of each kind that Kyverno gives up
	Done    *convert.Compilation
}

// New reads the policies.
func New(ctx context.Context, o Options) (p *Planning, err error) {
	p = &Planning{Options: o}
	if o.Cluster != nil {
		return p, p.readCluster(ctx)
	}
	p.Sources, p.unread, err = input.Sources(o.Files, o.Kustomize, o.Stdin)
	return p, err
}

// Compile compiles them.
func (p *Planning) Compile() {
	p.Done = convert.Compile(p.Sources, p.Choices)
	p.Done.Found = append(p.Done.Found, p.unread...)
}

// Plan puts objects before the policies, and says what becomes of them.
func (p *Planning) Plan(ctx context.Context) (report.Plan, error) {
	looked, violations, err := p.survey(ctx)
	if err != nil {
		return report.Plan{}, err
	}
	plan := migrate.MakePlan(p.Done.Result, p.Done.Unread, violations)
	plan.Looked = looked
	plan.LegacyExceptions = len(p.Idle)
	for _, e := range p.Done.Exceptions {
		if e.CEL == nil {
			plan.LegacyExceptions++
		}
	}
	if p.Cluster != nil {
		if plan.Upgrade, err = live.UpgradeOf(ctx, p.Cluster, p.legacy); err != nil {
			return plan, exit.Runtime(err)
		}
		for _, unknown := range plan.Upgrade.Unknown {
			p.note(errors.New(unknown))
		}
	}
	plan.Costs = append(plan.Costs, p.Done.RequestCosts(p.Choices.Translate.Schemas)...)
	return plan, nil
}

// readCluster reads the policies of Kyverno that the cluster has, and the types of
// its kinds. Policies of kvap.dev have left Kyverno.
func (p *Planning) readCluster(ctx context.Context) error {
	var err error
	o := &p.Choices.Translate
	if o.Schemas, err = p.Cluster.DefinedTypes(ctx, o.Schemas, p.note); err != nil {
		return exit.Runtime(err)
	}
	for _, kind := range cluster.SourceKinds() {
		if kind[0] == v1alpha1.Group {
			continue
		}
		err := p.Cluster.EachOf(ctx, kind, p.note, func(u unstructured.Unstructured) error {
			if kind[0] == "kyverno.io" && kind[1] == "PolicyException" && !p.Counts(u.GetNamespace()) {
				p.Idle = append(p.Idle, u.GetNamespace())
				return nil
			}
			if ref := (v1alpha1.PolicyReference{Group: kind[0], Kind: kind[1]}); migrate.IsLegacy(ref) &&
				!slices.ContainsFunc(p.legacy, func(have unstructured.Unstructured) bool { return have.GetKind() == kind[1] }) {
				p.legacy = append(p.legacy, u)
			}
			s, err := cluster.SourceOf(u)
			p.Sources = append(p.Sources, s)
			return err
		})
		if err != nil {
			return exit.Runtime(err)
		}
	}
	return nil
}

// note notes what may not be read.
func (p *Planning) note(err error) { p.Left = append(p.Left, err) }

// survey puts the objects of the cluster, and those that were given, before the
// policies. Without any, nothing is known.
func (p *Planning) survey(ctx context.Context) (*report.Looked, map[*compile.Rule]report.Violations, error) {
	given, err := p.given("--resource", p.Resources)
	if err != nil || p.Cluster == nil && len(p.Resources) == 0 {
		return nil, nil, err
	}
	params, err := p.given("--param", p.Params)
	if err != nil {
		return nil, nil, err
	}
	var known []map[string]any
	for _, o := range params {
		known = append(known, o.Objects()...)
	}
	policies := scan.Policies{
		Compiled: p.Done.Result, Exceptions: p.Done.Exceptions, Schemas: p.Choices.Translate.Schemas,
		ExcludeNamespaces: vap.DefaultExcludedNamespaces(),
	}
	var look *scan.Look
	if p.Cluster != nil {
		if look, err = scan.NewLook(p.Cluster.Config, policies); err != nil {
			return nil, nil, exit.Runtime(err)
		}
		there, err := look.Known(ctx)
		if err != nil {
			return nil, nil, exit.Runtime(err)
		}
		known = append(known, there...)
	}
	for _, o := range given {
		if o.Kind() == "Namespace" && o.APIVersion() == "v1" { // rules may select by their labels
			known = append(known, o.Value)
		}
	}
	survey, err := scan.NewSurvey(policies, known)
	if err != nil {
		return nil, nil, exit.Usage(err)
	}
	looked, err := p.look(ctx, survey, given, look)
	return looked, survey.Violations(), err
}

// look puts each object before the policies.
func (p *Planning) look(ctx context.Context, survey *scan.Survey, given []manifest.Object, look *scan.Look) (*report.Looked, error) {
	looked := &report.Looked{PassedOver: []string{}}
	visit := func(o *unstructured.Unstructured) error {
		if err := survey.Object(ctx, o); err != nil && ctx.Err() == nil {
			looked.PassOver(cluster.Title(o))
		}
		p.Progress("%d objects judged", survey.Objects)
		return ctx.Err()
	}
	for _, o := range given {
		if err := visit(&unstructured.Unstructured{Object: o.Value}); err != nil {
			return nil, exit.Runtime(err)
		}
	}
	if look != nil {
		passedOver, err := look.Objects(ctx, visit)
		if err != nil {
			return nil, exit.Runtime(err)
		}
		for _, resource := range passedOver {
			looked.PassOver(resource)
			p.note(fmt.Errorf("objects of %s may not be read", resource))
		}
		survey.Unread(look.Unread())
	}
	looked.Objects, looked.Excluded = survey.Objects, survey.Excluded
	return looked, nil
}

// given are the objects of the paths of a flag, filled in.
func (p *Planning) given(flag string, paths []string) ([]manifest.Object, error) {
	objects, sources, found, err := input.Manifests(flag, paths, p.Stdin)
	p.Sources, p.Done.Found = append(p.Sources, sources...), append(p.Done.Found, found...)
	if err == nil && len(paths) > 0 && len(objects) == 0 && !found.HasErrors() {
		err = exit.Usage(fmt.Errorf("%s: there is no object in %s", flag, strings.Join(paths, ", ")))
	}
	defaults := defaulting.New(p.Choices.Translate.Schemas)
	var out []manifest.Object
	for _, o := range objects {
		if o.Kind() == "" || o.APIVersion() == "" {
			p.Done.Found = append(p.Done.Found, diag.Errorf(o.Pos, diag.BadRequest, "the object has no kind or no apiVersion"))
			continue
		}
		out = append(out, manifest.Object{Pos: o.Pos, Value: defaults.Fill(o.Value)})
	}
	return out, err
}
