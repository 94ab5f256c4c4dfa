package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/evidence"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// settingOfCluster reads policies and native objects from the cluster.
func (c *Comparing) settingOfCluster(ctx context.Context) (*Setting, error) {
	s := &Setting{}
	var err error
	if s.Schemas, err = c.Cluster.DefinedTypes(ctx, c.Translate.Schemas, c.leave); err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context, *Setting) error{c.readPolicies, c.readNatives, c.readSeen, c.readAround} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.silent, err = live.Silent(ctx, c.Cluster); apierrors.IsForbidden(err) {
		c.leave(err)
	} else if err != nil {
		return nil, err
	}
	if s.givenUp, err = live.GivenUp(ctx, c.Cluster); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	look, err := c.newLook(s)
	if err != nil {
		return nil, err
	}
	known, err := look.Known(ctx)
	s.Known = append(s.Known, known...)
	return s, err
}

// readPolicies reads the policies.
func (c *Comparing) readPolicies(ctx context.Context, s *Setting) error {
	if err := c.readExceptions(ctx, s); err != nil {
		return err
	}
	for _, kind := range cluster.SourceKinds() {
		if kind[1] == "PolicyTranslation" {
			continue
		}
		err := c.Cluster.EachOf(ctx, kind, c.leave, func(u unstructured.Unstructured) error {
			fmt.Fprintf(&s.mark, "%s/%d ", u.GetUID(), u.GetGeneration())
			return c.readPolicy(s, u)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readExceptions reads which exceptions the controller has in force.
func (c *Comparing) readExceptions(ctx context.Context, s *Setting) error {
	s.inForce = map[types.NamespacedName]bool{}
	return live.EachTranslation(ctx, c.Cluster, c.leave, func(t v1alpha1.PolicyTranslation) {
		for _, e := range t.Status.Exceptions {
			s.inForce[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = true
			fmt.Fprintf(&s.mark, "%s/%s ", e.Namespace, e.Name)
		}
	})
}

// readAround reads what else the policies that are compared depend on.
func (c *Comparing) readAround(ctx context.Context, s *Setting) error {
	excepting, err := live.Exceptions(ctx, c.Cluster)
	if err != nil {
		return err
	}
	for i, p := range s.compared {
		around, err := live.Around(ctx, c.Cluster, &p.object, excepting)
		if s.compared[i].unread = err; err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		s.compared[i].digest = migrate.ComparedDigest(p.object.Object, around)
		fmt.Fprintf(&s.mark, "%s ", s.compared[i].digest)
	}
	return nil
}

// leave notes what could not be read, once.
func (c *Comparing) leave(err error) {
	if !slices.ContainsFunc(c.Left, func(have error) bool { return have.Error() == err.Error() }) {
		c.Left = append(c.Left, err)
	}
}

// readPolicy reads a policy or an exception. A policy of kvap.dev is not a migration's,
// but what it says may be.
func (c *Comparing) readPolicy(s *Setting, u unstructured.Unstructured) error {
	original := *u.DeepCopy()
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(u.Object, "status")
	if u.GroupVersionKind().Group == v1alpha1.Group {
		u.SetAPIVersion(v1alpha1.KyvernoAPIVersion(u.GetKind()))
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	f, found := policy.Parse(cluster.Title(&u), data)
	s.Found = append(s.Found, found...)
	for _, p := range f.Policies {
		if slices.ContainsFunc(s.Policies, func(have *policy.Policy) bool { return have.FullName() == p.FullName() && have.Kind == p.Kind }) {
			continue // the same, on its way to a kind of kvap.dev
		}
		s.Policies = append(s.Policies, p)
		s.compared = append(s.compared, comparedPolicy{name: p.FullName(), object: original})
	}
	name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	if len(f.Exceptions) > 0 && (s.inForce[name] || c.Counts(u.GetNamespace())) {
		s.Exceptions = append(s.Exceptions, f.Exceptions...)
	} else if len(f.Exceptions) > 0 { // where somebody counts it, what it excepts is a disagreement
		s.Found = append(s.Found, diag.Warnf(diag.Pos{File: cluster.Title(&u)}, diag.IdleException,
			"the exception does not count; where the controller and Kyverno count it, say --exception-namespaces %s", u.GetNamespace()))
	}
	return nil
}

// readNatives reads the native policies and bindings that kvap made.
func (c *Comparing) readNatives(ctx context.Context, s *Setting) error {
	var unread error // what they say would be held against Kyverno by what they should be
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		err := c.Cluster.EachOf(ctx, []string{"admissionregistration.k8s.io", kind, "v1"}, func(err error) { unread = err }, func(u unstructured.Unstructured) error {
			fmt.Fprintf(&s.mark, "%s/%d ", u.GetUID(), u.GetGeneration())
			o, add := manifest.Object{Value: u.Object}, s.Deployed.Add
			if judge.IsDeployedMutation(o) {
				add = s.Mutations.Add
			}
			s.Found = append(s.Found, add(o)...)
			return nil
		})
		if err = errors.Join(err, unread); err != nil {
			return err
		}
	}
	// what is refused or bound to nothing enforces nothing; kvap status tells of it
	s.Deployed.Check(apiserver.NewChecker(c.Translate.Release), c.Translate.Release.String())
	return nil
}

// newLook looks for the objects that the policies are about.
func (c *Comparing) newLook(s *Setting) (*scan.Look, error) {
	o := c.Translate
	o.Schemas, o.Exceptions = s.Schemas, s.Exceptions
	compiled := compile.Policies(compile.Input{Policies: s.Policies, Exceptions: s.Exceptions}, compile.Options{Translate: o})
	return scan.NewLook(c.Cluster.Config, scan.Policies{Compiled: compiled, Exceptions: s.Exceptions, Schemas: s.Schemas, Triggers: true})
}

// readShadow reads the status of PolicyTranslations, as far as it is about the policies
// as they are.
func (c *Comparing) readShadow(ctx context.Context) error {
	c.shadow, c.there = nil, map[string]bool{}
	if c.Cluster == nil {
		return nil
	}
	current := map[types.UID]comparedPolicy{}
	for _, p := range c.setting.compared {
		current[p.object.GetUID()] = p
	}
	return live.EachTranslation(ctx, c.Cluster, c.leave, func(t v1alpha1.PolicyTranslation) {
		p, ok := current[t.Spec.Source.UID]
		for _, s := range t.Status.Shadow {
			if !ok || s.Generation != p.object.GetGeneration() {
				continue
			}
			for _, rule := range s.Rules {
				one := evidence.Rehearsal{Policy: p.name, Rule: rule.Rule, Passed: rule.Passed, Violated: rule.Violated, Failed: rule.Failed}
				for _, q := range rule.Requests {
					one.Requests = append(one.Requests, evidence.Rehearsed{
						At: q.At.Time, Operation: q.Operation, Object: q.Object, UID: string(q.UID), Verdict: interp.Status(q.Verdict), Message: q.Message,
					})
					c.there[string(q.UID)] = false
				}
				c.shadow = append(c.shadow, one)
			}
		}
	})
}
