package interp

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/interp/internal/expr"
)

// maxGenerated bounds how many objects one rule generates for one trigger.
const maxGenerated = 5_000

// A Generation is what a generate rule wants for one trigger.
type Generation struct {
	// The status is Pass where the trigger is one, and Error where that cannot be
	// told or nothing can be made.
	RuleResult
	Targets []Generated
	// Errors are those of elements of a foreach, and of kinds of a list, beside which
	// the others are made all the same.
	Errors []error
	// Excepted tells that an exception keeps a GeneratingPolicy from it, whatever the status
	// is: that may be a Pass.
	Excepted bool
}

// A Generated is an object that a rule wants to exist.
type Generated struct {
	APIVersion, Kind, Namespace, Name string
	// Object is the whole object, with the labels that lead back to the policy.
	Object map[string]any
	// Source is the object that it is a copy of, nil for one made of data. A source
	// is to be labelled with CloneSourceLabel, so that its changes are noticed.
	Source *ObjectReference
	// Synchronize tells to put the object in the place of one that is there.
	Synchronize bool
	// own are the labels by which a GeneratingPolicy knows what it has made; nil for a rule.
	own map[string]string
}

// An ObjectReference names an object.
type ObjectReference struct{ APIVersion, Kind, Namespace, Name string }

// Generate is what a rule wants for the trigger, which is the object of the request.
// The old object is that of the request that made it one, if there is any. Nothing is
// written. The policy goes by its full name; nil comes back where there is no such
// rule.
func (in *Interpreter) Generate(ctx context.Context, req *Request, fullName, rule string, objects ObjectReader) *Generation {
	a := newReview(ctx, req, in.world, in.limits)
	for _, p := range in.policies {
		if p.FullName() != fullName {
			continue
		}
		if p.making != nil && p.Name == rule {
			return p.making.generate(in, a, objects)
		}
		for _, r := range p.generating(in) {
			if r.Name == rule {
				return r.generate(a, objects)
			}
		}
	}
	return nil
}

func (r *generateRule) generate(a *preparedRequest, objects ObjectReader) (out *Generation) {
	defer func() {
		if p := recover(); p != nil {
			out = &Generation{RuleResult: r.result(say(Error, "%v: %v", errPanic, p))}
		}
	}()
	if a.object == nil {
		return &Generation{RuleResult: r.result(none())}
	}
	decision := r.decide(a)
	out = &Generation{RuleResult: r.result(decision)}
	if decision.status != Pass {
		return out
	}
	g := &generator{rule: r, review: a, objects: objects, vars: newVars(a), out: out}
	g.vars.defineImages(a, r.rule)
	g.vars.defineAll(r.entries, a)
	if r.target != nil {
		if err := g.target(r.target); err != nil {
			out.RuleResult, out.Targets = r.result(say(Error, "%v", err)), nil
		}
		return out
	}
	for _, l := range r.loops {
		g.loop(l)
	}
	if len(out.Errors) > 0 {
		out.RuleResult = r.result(say(Error, "%v", out.Errors[0]))
	}
	return out
}

// A generator makes the targets of one rule for one trigger.
type generator struct {
	rule    *generateRule
	review  *preparedRequest
	objects ObjectReader
	vars    *vars
	out     *Generation
}

func (g *generator) fail(err error) { g.out.Errors = append(g.out.Errors, err) }

// loop makes the targets of an entry. What fails for one element keeps no other.
func (g *generator) loop(l *generateLoop) {
	elements, err := g.vars.listOf(l.listText, l.list, l.listErr)
	if err != nil {
		g.fail(fmt.Errorf("failed to evaluate list: %w", err))
		return
	}
	for i, element := range elements {
		if element.Data == nil {
			continue
		}
		if err := g.vars.ctx.Err(); err != nil {
			g.fail(err)
			return
		}
		if err := g.element(l, i, element); err != nil {
			g.fail(fmt.Errorf("element %d: %w", i, err))
		}
	}
}

func (g *generator) element(l *generateLoop, index int, element expr.Value) error {
	g.vars.pushElement(element, index, 0)
	defer g.vars.pop()
	g.vars.defineAll(l.entries, g.review)
	applies, _, err := l.preconditions.holds(g.vars)
	switch {
	case err != nil:
		return fmt.Errorf("failed to evaluate preconditions: %w", err)
	case !applies:
		return nil
	}
	return g.target(l.target)
}

// target makes the objects of one target.
func (g *generator) target(t *generateTarget) error {
	f, err := t.fill(g.vars)
	if err != nil {
		return fmt.Errorf("variable substitution failed: %w", err)
	}
	if err := f.within(g.rule.policy, t.clone != nil || t.list != nil); err != nil {
		return err
	}
	switch {
	case t.clone != nil:
		return g.clone(f)
	case t.list != nil:
		return g.cloneList(f, t.list)
	}
	object, err := f.object()
	if err != nil {
		return err
	}
	return g.add(object, nil)
}

// clone copies one object. One that is to be copied onto itself is left alone.
func (g *generator) clone(f filledTarget) error {
	if f.sourceNamespace == f.namespace && f.sourceName == f.name {
		return nil
	}
	source, found, err := g.objects.Get(g.vars.ctx, f.apiVersion, f.kind, f.sourceNamespace, f.sourceName)
	switch {
	case err != nil:
		return fmt.Errorf("the source %s %s/%s cannot be read: %w", f.kind, f.sourceNamespace, f.sourceName, err)
	case !found:
		return fmt.Errorf("there is no source %s %s/%s", f.kind, f.sourceNamespace, f.sourceName)
	}
	return g.add(cloneOf(source, f.namespace, f.name), source)
}

// cloneList copies the objects that are listed. A kind that cannot be listed ends
// it; the kinds in front of it are copied.
func (g *generator) cloneList(f filledTarget, l *cloneList) error {
	if f.sourceNamespace == f.namespace {
		return nil
	}
	selector, err := g.vars.fillSelector(l.selector)
	if err != nil {
		return fmt.Errorf("variable substitution failed: %w", err)
	}
	for _, kind := range f.kinds {
		if err := g.cloneKind(f, kind, selector); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) cloneKind(f filledTarget, text string, selector labels.Selector) error {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return fmt.Errorf("the kind %q of a list to copy must be apiVersion/Kind", text)
	}
	sources, err := g.objects.List(g.vars.ctx, text[:i], text[i+1:], f.sourceNamespace, selector)
	if err != nil {
		return fmt.Errorf("the sources %s cannot be listed: %w", text, err)
	}
	for _, source := range sources {
		if err := g.add(cloneOf(source, f.namespace, metaText(source, "name")), source); err != nil {
			return err
		}
	}
	return nil
}

// cloneOf is a copy of an object, without what the server gave it, and without owners that
// are in another namespace.
func cloneOf(source map[string]any, namespace, name string) map[string]any {
	object := fresh(source, namespace, name)
	if metaText(source, "namespace") != namespace {
		delete(digMap(object, "metadata"), "ownerReferences")
	}
	return object
}

// fresh is a copy of an object in its place, without what the server gave it.
func fresh(source map[string]any, namespace, name string) map[string]any {
	object := copied(source)
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"} {
		delete(meta, key)
	}
	meta["name"] = name
	delete(meta, "namespace")
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return object
}

// add gives an object its labels and keeps it.
func (g *generator) add(object, source map[string]any) error {
	if len(g.out.Targets) >= maxGenerated {
		return fmt.Errorf("the rule generates more than %d objects", maxGenerated)
	}
	made := Generated{
		APIVersion: digText(object, "apiVersion"), Kind: digText(object, "kind"), Namespace: metaText(object, "namespace"), Name: metaText(object, "name"),
		Object: object, Synchronize: g.rule.Generate.Synchronize,
	}
	if made.APIVersion == "" || made.Kind == "" || made.Name == "" {
		return fmt.Errorf("a generated object needs an apiVersion, a kind and a name; this one is %q %q %q", made.APIVersion, made.Kind, made.Name)
	}
	if source != nil {
		made.Source = &ObjectReference{digText(source, "apiVersion"), digText(source, "kind"), metaText(source, "namespace"), metaText(source, "name")}
	}
	if err := label(object, targetLabels(g.rule.rule, g.review.object, source)); err != nil {
		return err
	}
	g.out.Targets = append(g.out.Targets, made)
	return nil
}
