package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/report"
)

// Finish reads what is left of Kyverno.
func (r *Reader) Finish(ctx context.Context) (out report.Finish, err error) {
	ws, err := r.Read(ctx, "")
	if err != nil {
		return out, err
	}
	unfinished := 0
	for _, w := range ws {
		lost := w.Lost()
		if w.Source == nil && !isKept(*w) && !w.Stranded() && !w.Stopped() && len(lost) == 0 {
			continue
		}
		if err := r.tryClosed(ctx, w); err != nil {
			return out, err
		}
		left := report.LeftPolicy{Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name, Stage: string(w.Stage())}
		left.Next, unfinished = nextFor(*w, unfinished)
		if w.Closed == "" || w.Kyverno.Yes { // who carries nothing out takes nothing along
			left.TakesAlong = migrate.TakesAlong(w.Source)
		}
		out.Policies = append(out.Policies, left)
	}
	if unfinished, err = r.leftCleanups(ctx, &out, unfinished); err != nil {
		return out, err
	}
	slices.SortFunc(out.Policies, func(a, b report.LeftPolicy) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if out.Parts, err = r.definitions(ctx); err != nil {
		return out, err
	}
	hooks, namespace := r.kyverno.registered()
	out.Parts = append(out.Parts, hooks...)
	out.Done = unfinished == 0 && !slices.ContainsFunc(out.Parts, needsKyverno)
	if namespace == "" { // its webhooks are called by a URL
		namespace, _, _ = strings.Cut(r.kyverno.alive.lease, "/")
	}
	out.Steps = finishSteps(out, namespace)
	return out, nil
}

// notRead owns definitions whose objects nobody but Kyverno reads.
const notRead = "Kyverno, not read by kvap"

// onItsWay begins what is said of a policy at which a verb was begun and has not ended.
const onItsWay = "on its way: "

// notCounted is said of a definition whose objects the user may not list.
const notCounted = "you may not list its objects, so they may be there, and need Kyverno"

// needsKyverno tells whether a part has objects that need Kyverno, or may have.
func needsKyverno(p report.LeftPart) bool {
	return p.Owner == notRead && (p.Objects > 0 || p.Next == notCounted)
}

// isKept tells of a policy that went with the definition of its kind, and that kvap enforces
// still.
func isKept(w migrate.PolicyState) bool {
	return w.Source == nil && w.Carrier == nil && w.SourceStatus.Exists && w.SourceStatus.Mode == v1alpha1.ModeEnforce
}

// closedSince is said of policies that Kyverno 1.20 has found in the cluster.
const closedSince = "for Kyverno 1.20 carries out no policy of kyverno.io"

// nextFor is what to do with a policy of one of Kyverno's kinds, and how many keep
// Kyverno, or hang by its definitions.
func nextFor(w migrate.PolicyState, keep int) (string, int) {
	name := w.Title()
	recorded := w.Stage() == v1alpha1.StageEnforced || w.Stage() == v1alpha1.StageAdopted
	enforced := w.Enforces()
	switch {
	case isKept(w) && (w.Record == nil || w.Record.Status.Original == nil):
		return "went with its definition; kvap enforces it as it read it last: apply it as a policy of kvap.dev (kvap migrate adopt -f)", keep + 1
	case isKept(w):
		return "went with its definition; kvap enforces it as it read it last: kvap migrate adopt " + name, keep + 1
	case w.Stopped():
		return "somebody has stopped it, and nobody enforces it: " + w.Restart(), keep + 1
	case w.Stranded():
		enforce, remove := w.OutOfShadow()
		return "in shadow, and Kyverno's policy is gone: nobody enforces it: " + enforce + ", or " + remove, keep + 1
	case len(w.Lost()) > 0:
		return "nobody carries out " + strings.Join(w.Lost(), ", ") + ", which the record has", keep
	case w.WayOn() != "":
		return onItsWay + w.WayOn(), keep + 1
	case w.Closed != "" && migrate.KyvernoHasRest(w.Source):
		return "nobody carries out " + strings.Join(w.Staying, ", ") + ", " + closedSince + ": kvap migrate adopt " + name + " keeps them in the record", keep + 1
	case w.TakesPlace():
		return "kvap enforces it, from a policy of kvap.dev, and this one is left over: kvap migrate enforce " + name + " deletes it", keep + 1
	case w.Closed != "" && !enforced.Yes && !w.Kyverno.Yes && !migrate.KyvernoIsOff(w.Source):
		return "nobody enforces it, " + closedSince + ": kvap migrate enforce " + name, keep + 1
	case migrate.KyvernoHasRest(w.Source):
		return "Kyverno has rules left in it: " + strings.Join(w.Staying, ", "), keep + 1
	case !enforced.Yes && migrate.KyvernoIsOff(w.Source):
		return "nobody is seen to enforce it: Kyverno is switched off in it, and " + enforced.Why, keep + 1
	case !enforced.Yes && !recorded && !w.Kyverno.Yes:
		return "nobody enforces it, as far as is seen (" + w.Kyverno.Why + "): kvap migrate enforce " + name, keep + 1
	case !enforced.Yes && !recorded:
		return "Kyverno enforces it: kvap migrate enforce " + name, keep + 1
	case !enforced.Yes:
		return "it is there again: kvap migrate enforce " + name + " takes it away from Kyverno", keep + 1
	case migrate.CanCarry(w.Ref) && !recorded:
		return "goes with its definition: kvap migrate adopt -f first, where its files are", keep + 1
	case migrate.CanCarry(w.Ref):
		return "goes with its definition: kvap migrate adopt " + name + " first", keep + 1
	}
	return "goes with its definition, and kvap.dev has no such kind: keep the definition", keep + 1
}

// finishSteps are what to do, in order.
func finishSteps(f report.Finish, namespace string) []string {
	var out, along []string
	var enforce, begun, adopt, cleans, cleaned, excepts, reads bool
	for _, p := range f.Policies {
		enforce = enforce || strings.HasPrefix(p.Next, "Kyverno") || strings.HasPrefix(p.Next, "nobody enforces it") || strings.HasPrefix(p.Next, "it is there again")
		begun = begun || strings.HasPrefix(p.Next, onItsWay)
		adopt = adopt || strings.Contains(p.Next, "migrate adopt")
		cleans = cleans || p.Next == runsCleanup
		for _, rule := range p.TakesAlong {
			along = append(along, strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")+"/"+rule)
		}
	}
	for _, p := range f.Parts {
		has := p.Objects > 0 || p.Next == notCounted
		cleaned = cleaned || p.Next == keptForCleanup
		excepts = excepts || has && strings.HasPrefix(p.Name, "policyexceptions.")
		reads = reads || has && strings.HasPrefix(p.Name, "globalcontextentries.")
	}
	for _, step := range []struct {
		needed bool
		does   string
	}{
		{len(along) > 0, "Remove no policy of Kyverno's by hand, nor its definition, while Kyverno runs, before its rules have orphanDownstreamOnPolicyDelete: true " +
			"(kvap migrate enforce writes it): Kyverno would delete what they have generated: " + strings.Join(along, ", ") + "."},
		{enforce, "Move what Kyverno still enforces, or nobody does, to kvap (kvap migrate enforce), or keep Kyverno for what it enforces."},
		{begun, "End what was begun, as it says at the policies."},
		{adopt, "Adopt what is left in Kyverno's kinds (kvap migrate adopt --all; in a repository: kvap migrate adopt -f policies/): " +
			"uninstalling Kyverno with Helm removes its definitions, and every policy and exception with them."},
		{cleans, "Have kvap run the cleanup policies, by their annotation kvap.dev/mode: enforce."},
		{cleaned, "Keep the definitions of cleanup policies, and the policies: kvap runs them. Where uninstalling removes the definitions, save both, and apply them again."},
		{excepts, "Keep the definition policyexceptions.kyverno.io, and its objects, while policies have exceptions: kvap reads them."},
		{reads, "Keep the definition globalcontextentries.kyverno.io, and its objects, while rules read them (globalReference): kvap's webhook keeps what they say ready."},
	} {
		if step.needed {
			out = append(out, step.does)
		}
	}
	if f.Done && namespace != "" {
		out = append(out, uninstallSteps(f, namespace)...)
	}
	return out
}

// definitions are those of Kyverno's groups and of reports.
func (r *Reader) definitions(ctx context.Context) ([]report.LeftPart, error) {
	items, _, err := r.List(ctx, apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if err != nil {
		return nil, err
	}
	var out []report.LeftPart
	for i := range items {
		group, _, _ := unstructured.NestedString(items[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(items[i].Object, "spec", "names", "kind")
		owner, next := ownerOf(group, kind)
		if owner == "" {
			continue
		}
		part := report.LeftPart{Kind: "CustomResourceDefinition", Name: items[i].GetName(), Owner: owner, Next: next}
		part.Objects, err = r.countOf(ctx, group, kind)
		switch {
		case apierrors.IsForbidden(err):
			part.Next = notCounted
		case err != nil:
			return nil, err
		case part.Objects > 0 && cleans(group, kind):
			part.Next = keptForCleanup
		}
		out = append(out, part)
	}
	slices.SortFunc(out, func(a, b report.LeftPart) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// ownerOf says whose a definition is; "" where it has nothing to do with Kyverno.
func ownerOf(group, kind string) (owner, next string) {
	for _, known := range cluster.SourceKinds() {
		if known[0] == group && known[1] == kind && group != v1alpha1.Group {
			return "Kyverno", "may go when no policy or exception is in it"
		}
	}
	switch group {
	case "wgpolicyk8s.io", "openreports.io":
		return "shared", "stays where something writes reports: kvap-controller --reports"
	case "reports.kyverno.io":
		return "Kyverno", "goes with Kyverno"
	case "kyverno.io", "policies.kyverno.io":
		if kind == "GlobalContextEntry" {
			return "Kyverno", "may go when no rule reads an entry in it"
		}
		if kind == "UpdateRequest" || cleans(group, kind) {
			return "Kyverno", "goes with Kyverno"
		}
		return notRead, "its objects need Kyverno"
	}
	return "", ""
}

// countOf is how many objects of a kind there are.
func (r *Reader) countOf(ctx context.Context, group, kind string) (int, error) {
	m, err := r.Mapper.RESTMapping(apischema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return 0, nil //nolint:nilerr // it is defined and not served yet
	}
	page, err := r.Dynamic.Resource(m.Resource).List(ctx, metav1.ListOptions{Limit: cluster.PageSize})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := len(page.Items)
	if rest := page.GetRemainingItemCount(); rest != nil {
		n += int(*rest)
	}
	return n, nil
}

// registered are Kyverno's webhook configurations, and the namespace that they lead to.
func (k *kyvernoWatch) registered() (out []report.LeftPart, namespace string) {
	for _, c := range k.configurations {
		out = append(out, report.LeftPart{Kind: c.Kind, Name: c.Name, Owner: "Kyverno", Next: "goes with Kyverno"})
		for _, h := range c.Webhooks {
			if service := h.ClientConfig.Service; service != nil {
				namespace = cmp.Or(namespace, service.Namespace)
			}
		}
	}
	slices.SortFunc(out, func(a, b report.LeftPart) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out, namespace
}

const (
	// runsCleanup is said of a cleanup policy that kvap does not run yet.
	runsCleanup = "only Kyverno deletes by it: annotate it with kvap.dev/mode: enforce, and see kvap status"
	// keptForCleanup is said of the definition of cleanup policies, while there are some.
	keptForCleanup = "stays, with its objects: kvap runs them"
)

// cleans tells of a kind of cleanup policies.
func cleans(group, kind string) bool {
	return slices.ContainsFunc(cleanup.Kinds(), func(k cleanup.PolicyKind) bool { return k.Group == group && k.Kind == kind })
}

// leftCleanups adds the cleanup policies, and counts those that keep Kyverno: all that
// kvap was not seen to run.
func (r *Reader) leftCleanups(ctx context.Context, out *report.Finish, keep int) (int, error) {
	runs := map[v1alpha1.PolicyReference]bool{}
	leave := func(err error) { // which is told of by its definition
		if apierrors.IsForbidden(err) {
			keep++
		}
	}
	if err := EachTranslation(ctx, r.Connection, leave, func(t v1alpha1.PolicyTranslation) {
		runs[t.Spec.Source] = t.Status.Mode == v1alpha1.ModeEnforce && t.Status.Cleanup != nil
	}); err != nil {
		return keep, err
	}
	for _, k := range cleanup.Kinds() {
		kind := append([]string{k.Group, k.Kind, k.Version}, k.Older...)
		err := r.EachOf(ctx, kind, leave, func(u unstructured.Unstructured) error {
			ref := v1alpha1.PolicyReference{Group: k.Group, Kind: k.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()}
			left := report.LeftPolicy{Kind: k.Kind, Namespace: ref.Namespace, Name: ref.Name, Stage: "-", Next: "kvap runs it; it stays with its definition"}
			if !runs[ref] {
				left.Next = runsCleanup
				keep++
			}
			out.Policies = append(out.Policies, left)
			return nil
		})
		if err != nil {
			return keep, err
		}
	}
	return keep, nil
}

// uninstallSteps are the commands that take Kyverno away, in order: what makes webhook
// configurations ends before these go, for it would make them again; one that is left with
// failurePolicy Fail denies what it matches. The definitions go last, and every object
// with them.
func uninstallSteps(f report.Finish, namespace string) []string {
	hooks, empty := 0, []string{}
	for _, p := range f.Parts {
		switch {
		case strings.HasSuffix(p.Kind, "WebhookConfiguration"):
			hooks++
		case p.Owner == "Kyverno" && p.Objects == 0 && p.Next != notCounted:
			empty = append(empty, p.Name)
		}
	}
	out := []string{
		fmt.Sprintf("kubectl scale deployment -n %s -l app.kubernetes.io/part-of=kyverno --replicas=0 ends Kyverno, which would make its webhook configurations again.", namespace),
		fmt.Sprintf("kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l %s=kyverno takes these away (there are %d): at once, for one that is left "+
			"with failurePolicy Fail denies what it matches.", kyvernoLabel, hooks),
		fmt.Sprintf("helm uninstall kyverno -n %s removes the rest; helm get manifest kyverno -n %[1]s says before whether the definitions are in it.", namespace),
	}
	if len(empty) > 0 {
		out = append(out, "kubectl delete crd "+strings.Join(empty, " ")+" takes the definitions away of which there are no objects.")
	}
	return out
}
