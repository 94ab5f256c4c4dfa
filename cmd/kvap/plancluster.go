package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/scan"
	"github.com/kvap/kvap/vap"
)

// readCluster reads the policies of Kyverno that the cluster has, and the types of
// its kinds. Policies of kvap.dev have left Kyverno.
func (p *planning) readCluster(ctx context.Context) error {
	var err error
	if p.cluster, err = p.flags.connect(); err != nil {
		return err
	}
	if p.choices, err = p.flags.ChoicesFor(p.cluster.Release, p.choices); err != nil {
		return err
	}
	o := &p.choices.Translate
	if o.Schemas, err = p.cluster.DefinedTypes(ctx, o.Schemas, p.note); err != nil {
		return exit.Runtime(err)
	}
	for _, kind := range cluster.SourceKinds() {
		if kind[0] == v1alpha1.Group {
			continue
		}
		err := p.cluster.EachOf(ctx, kind, p.note, func(u unstructured.Unstructured) error {
			if kind[0] == "kyverno.io" && kind[1] == "PolicyException" && !excepts(p.flags.exempt)(u.GetNamespace()) {
				p.idle = append(p.idle, u.GetNamespace())
				return nil
			}
			if ref := (v1alpha1.PolicyReference{Group: kind[0], Kind: kind[1]}); migrate.IsLegacy(ref) &&
				!slices.ContainsFunc(p.legacy, func(have unstructured.Unstructured) bool { return have.GetKind() == kind[1] }) {
				p.legacy = append(p.legacy, u)
			}
			s, err := cluster.SourceOf(u)
			p.sources = append(p.sources, s)
			return err
		})
		if err != nil {
			return exit.Runtime(err)
		}
	}
	return nil
}

// note notes what may not be read.
func (p *planning) note(err error) { p.Left = append(p.Left, err) }

// survey puts the objects of the cluster, and those that were given, before the
// policies. Without any, nothing is known.
func (p *planning) survey(ctx context.Context) (*report.Looked, map[*compile.Rule]report.Violations, error) {
	given, err := p.given("--resource", p.flags.resources)
	if err != nil || p.cluster == nil && len(p.flags.resources) == 0 {
		return nil, nil, err
	}
	known, err := p.known()
	if err != nil {
		return nil, nil, err
	}
	policies := scan.Policies{
		Compiled: p.compiled(), Exceptions: p.done.Exceptions, Schemas: p.choices.Translate.Schemas,
		ExcludeNamespaces: vap.DefaultExcludedNamespaces(),
	}
	var look *scan.Look
	if p.cluster != nil {
		if look, err = scan.NewLook(p.cluster.Config, policies); err != nil {
			return nil, nil, exit.Runtime(err)
		}
		there, err := look.Known(ctx)
		if err != nil {
			return nil, nil, exit.Runtime(err)
		}
		known = append(known, there...)
	}
	survey, err := scan.NewSurvey(policies, append(known, namespacesAmong(given)...))
	if err != nil {
		return nil, nil, exit.Usage(err)
	}
	looked, err := p.look(ctx, survey, given, look)
	return looked, survey.Violations(), err
}

// look puts each object before the policies.
func (p *planning) look(ctx context.Context, survey *scan.Survey, given []manifest.Object, look *scan.Look) (*report.Looked, error) {
	looked := &report.Looked{PassedOver: []string{}}
	visit := func(o *unstructured.Unstructured) error {
		if err := survey.Object(ctx, o); err != nil && ctx.Err() == nil {
			looked.PassOver(cluster.Title(o))
		}
		p.progress.show("%d objects judged", survey.Objects)
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
	looked.Objects = survey.Objects
	return looked, nil
}

// given are the objects of the paths of a flag.
func (p *planning) given(flag string, paths []string) ([]manifest.Object, error) {
	objects, sources, found, err := input.Manifests(flag, paths, p.stdin)
	p.sources, p.done.Found = append(p.sources, sources...), append(p.done.Found, found...)
	var out []manifest.Object
	for _, o := range objects {
		if o.Kind() == "" || o.APIVersion() == "" {
			p.done.Found = append(p.done.Found, diag.Errorf(o.Pos, diag.BadRequest, "the object has no kind or no apiVersion"))
			continue
		}
		out = append(out, o)
	}
	return out, err
}

// known are the objects of --param.
func (p *planning) known() ([]map[string]any, error) {
	objects, err := p.given("--param", p.flags.param)
	var out []map[string]any
	for _, o := range objects {
		out = append(out, o.Objects()...)
	}
	return out, err
}

// namespacesAmong are the Namespaces among objects: rules may select by their labels.
func namespacesAmong(objects []manifest.Object) (out []map[string]any) {
	for _, o := range objects {
		if o.Kind() == "Namespace" && o.APIVersion() == "v1" {
			out = append(out, o.Value)
		}
	}
	return out
}
