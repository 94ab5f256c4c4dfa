package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// A Reader reads what is known of policies that are on their way.
type Reader struct {
	*cluster.Connection
	kyverno kyvernoWatch
	natives natives
	settle  time.Duration
	choices translate.Options
	// since is when a policy was first seen as it is, by what was seen.
	since map[string]time.Time
	// staying are what was compiled of versions of policies.
	staying map[string][]string
	// arounds are what is around versions of policies, once somebody asks for it.
	arounds map[string][]map[string]any
	// trying is held by who looks at closed, or writes there.
	trying sync.Mutex
	// closed is what the API server says of policies that it does not take, by the name of
	// the record, for those that were tried.
	closed map[string]string
}

// NewReader reads a cluster that knows kvap's definitions. A webhook counts as judging
// once it was registered for as long as settle. What the controller says nothing of is
// compiled with the choices.
func NewReader(c *cluster.Connection, settle time.Duration, choices translate.Options) (*Reader, error) {
	r := &Reader{Connection: c, settle: settle, choices: choices, since: map[string]time.Time{}, closed: map[string]string{}, staying: map[string][]string{}}
	for _, kind := range []string{"PolicyTranslation", "Migration"} {
		if _, ok := c.Serves(v1alpha1.Group, kind, v1alpha1.Version); !ok {
			return nil, fmt.Errorf("the cluster does not know the kind %s of kvap.dev; install kvap's definitions (deploy/crds) and its controller", kind)
		}
	}
	var err error
	r.kyverno, err = newKyvernoWatch(c)
	return r, err
}

// PolicyStates are all policies of which something is known, by the name of their record.
type PolicyStates map[string]*migrate.PolicyState

func (ws PolicyStates) of(ref v1alpha1.PolicyReference) *migrate.PolicyState {
	ref.UID = ""
	name := controller.TranslationName(ref)
	if ws[name] == nil {
		ws[name] = &migrate.PolicyState{Name: name, Ref: ref}
	}
	return ws[name]
}

// sourceRef is the policy that a policy of kvap.dev carries on.
func sourceRef(o *unstructured.Unstructured) v1alpha1.PolicyReference {
	ref := v1alpha1.PolicyReference{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	if ref.Group == v1alpha1.Group {
		ref.Group, _, _ = strings.Cut(v1alpha1.KyvernoAPIVersion(ref.Kind), "/")
	}
	return ref
}

// Read reads all of them anew; what is around them, only where a verb goes by it.
func (r *Reader) Read(ctx context.Context, verb string) (PolicyStates, error) {
	ws, err := r.read(ctx)
	switch {
	case err != nil:
		return nil, readError("where policies stand is", err)
	case verb == migrate.Enforce:
		err = r.lookAround(ctx, ws)
	case verb == migrate.Rollback:
		err = r.kyverno.unread
	}
	return ws, err
}

func (r *Reader) read(ctx context.Context) (PolicyStates, error) {
	out := PolicyStates{}
	translations := map[string]v1alpha1.PolicyTranslation{}
	unserved := map[apischema.GroupKind]bool{} // kinds that the cluster does not know
	for _, kind := range append(cluster.SourceKinds(), []string{v1alpha1.Group, "Migration", v1alpha1.Version}) {
		if kind[1] == "PolicyException" {
			continue
		}
		items, served, err := listed(ctx, r.Connection, kind...)
		if err != nil {
			return nil, err
		}
		unserved[apischema.GroupKind{Group: kind[0], Kind: kind[1]}] = !served
		for i := range items {
			switch o := &items[i]; {
			case kind[1] == "PolicyTranslation":
				t := v1alpha1.PolicyTranslation{}
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &t)
				translations[t.Name] = t
			case kind[1] == "Migration":
				m := &v1alpha1.Migration{}
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m)
				out.of(m.Spec.Source).Record = m
			case kind[0] == v1alpha1.Group:
				out.of(sourceRef(o)).Carrier = o
			default:
				out.of(sourceRef(o)).Source = o
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err := r.kyverno.read(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.natives, err = r.readNatives(ctx); err != nil {
		return nil, err
	}
	for _, t := range translations { // a policy may have gone with the definition of its kind
		if t.Status.Mode == v1alpha1.ModeEnforce && t.Spec.Source.Group != v1alpha1.Group && t.Status.Cleanup == nil {
			out.of(t.Spec.Source)
		}
	}
	for _, w := range out {
		w.Now = time.Now()
		w.Closed = r.closed[w.Name]
		w.Unserved = unserved[apischema.GroupKind{Group: w.Ref.Group, Kind: w.Ref.Kind}]
		r.see(w, translations)
	}
	return out, nil
}

// lookAround reads what is around the policies of some states, once for each version: a
// comparison is held against it before anything is begun.
func (r *Reader) lookAround(ctx context.Context, ws PolicyStates) error {
	if r.arounds == nil {
		r.arounds = map[string][]map[string]any{}
	}
	exceptions := sync.OnceValues(func() ([]unstructured.Unstructured, error) { return Exceptions(ctx, r.Connection) })
	for _, w := range ws {
		if w.Source == nil {
			continue
		}
		key := fmt.Sprintf("%s %d", w.Source.GetUID(), w.Source.GetGeneration())
		around, known := r.arounds[key]
		if !known {
			excepting, err := exceptions()
			if err != nil {
				return err
			}
			if around, err = Around(ctx, r.Connection, w.Source, excepting); apierrors.IsForbidden(err) {
				w.Unread = err.Error() // which is about this policy alone
				continue
			}
			if err != nil {
				return err
			}
			r.arounds[key] = around
		}
		w.Around = around
	}
	return nil
}

// listed are the objects of a kind, as cluster.EachOf has it. There are none where the
// cluster does not serve it: its definition is gone, or has just gone.
func listed(ctx context.Context, c *cluster.Connection, kind ...string) (items []unstructured.Unstructured, served bool, err error) {
	resource, served := c.Serves(kind[0], kind[1], kind[2:]...)
	if !served {
		return nil, false, nil
	}
	items, _, err = c.List(ctx, resource)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return items, true, err
}

// EachTranslation calls visit with what the controller says of each policy.
func EachTranslation(ctx context.Context, c *cluster.Connection, leave func(error), visit func(v1alpha1.PolicyTranslation)) error {
	return c.EachOf(ctx, []string{v1alpha1.Group, "PolicyTranslation", v1alpha1.Version}, leave, func(u unstructured.Unstructured) error {
		t := v1alpha1.PolicyTranslation{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &t)
		if err == nil {
			visit(t)
		}
		return err
	})
}

// see notes what the controller and Kyverno were seen to do.
func (r *Reader) see(w *migrate.PolicyState, translations map[string]v1alpha1.PolicyTranslation) {
	t, ok := translations[w.Name]
	w.SourceStatus = r.seen(t, ok)
	carrier := w.Ref
	carrier.Group = v1alpha1.Group
	if migrate.CanCarry(w.Ref) {
		c, ok := translations[controller.TranslationName(carrier)]
		w.CarrierStatus = r.seen(c, ok)
	}
	if w.Source == nil {
		return
	}
	w.Staying = r.stayingRules(w.Source, t)
	w.Kyverno, w.GivenUp = r.kyverno.judges(w.Source), r.kyverno.givesUp(w.Source)
	if w.Kyverno.Yes {
		key := fmt.Sprintf("kyverno %s %s %d", w.Name, w.Source.GetUID(), w.Source.GetGeneration())
		w.Kyverno = r.settled(key, "Kyverno has it registered, and is given a moment")
	}
}

// settled tells whether something has been seen for long enough.
func (r *Reader) settled(key, why string) migrate.Judging {
	if r.since[key].IsZero() {
		r.since[key] = time.Now()
	}
	if time.Since(r.since[key]) < r.settle {
		return migrate.Judging{Why: why}
	}
	return migrate.Judging{Yes: true}
}

// stayingRules are the rules that only Kyverno carries out, as the controller says of
// the policy as it is. Of one that it leaves alone it says nothing: a version of that is
// compiled once.
func (r *Reader) stayingRules(source *unstructured.Unstructured, t v1alpha1.PolicyTranslation) (out []string) {
	if migrate.KyvernoHasRest(source) {
		return migrate.RuleNames(source)
	}
	if t.Status.Mode != "" && t.Status.Mode != v1alpha1.ModeOff && t.Status.SourceGeneration == source.GetGeneration() {
		for _, row := range t.Status.Rules {
			if row.Target == string(report.Unsupported) {
				out = append(out, row.Rule)
			}
		}
		return out
	}
	key := fmt.Sprintf("%s %d", source.GetUID(), source.GetGeneration())
	if known, ok := r.staying[key]; ok {
		return known
	}
	for _, rule := range compile.Policies(compile.Input{Policies: migrate.PoliciesOf(source)}, compile.Options{Translate: r.choices}).Rules {
		if rule.Target == translate.Unsupported || rule.NotServed() != "" {
			out = append(out, rule.Name())
		}
	}
	r.staying[key] = out
	return out
}

// seen reads what the controller says of a policy.
func (r *Reader) seen(t v1alpha1.PolicyTranslation, exists bool) migrate.ControllerStatus {
	if !exists {
		return migrate.ControllerStatus{}
	}
	s := t.Status
	out := migrate.ControllerStatus{Exists: true, UID: t.Spec.Source.UID, Mode: s.Mode, Generation: s.SourceGeneration, Judging: migrate.Judging{Yes: true}}
	needed := []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionSynced, v1alpha1.ConditionParamsResolved, v1alpha1.ConditionEnforced, v1alpha1.ConditionFallbackActive}
	if s.Mode != v1alpha1.ModeEnforce {
		needed = []string{v1alpha1.ConditionSynced, v1alpha1.ConditionEnforced}
	}
	for _, name := range needed {
		switch c := meta.FindStatusCondition(s.Conditions, name); {
		case c == nil:
			out.Judging = migrate.Judging{Why: name + " is not true"}
			return out
		case c.Status != metav1.ConditionTrue:
			out.Judging = migrate.Judging{Why: name + ": " + c.Message}
			return out
		}
	}
	// What it says may be of long ago: the controller may be gone, and what it made.
	since, missing := r.natives.of(s)
	if missing != "" {
		out.Judging = migrate.Judging{Why: missing}
		return out
	}
	if s.Mode == v1alpha1.ModeEnforce && time.Since(since) < r.settle {
		key := fmt.Sprintf("native %s %s", t.Name, since)
		if out.Judging = r.settled(key, "its native policies are new, and are given a moment"); !out.Judging.Yes {
			return out
		}
	}
	if s.Mode == v1alpha1.ModeEnforce && s.Webhook > 0 {
		key := fmt.Sprintf("kvap %s %d %s", t.Name, s.SourceGeneration, t.Spec.Source.UID)
		out.Judging = r.settled(key, "the webhook is registered, and is given a moment")
	}
	return out
}

// A Selection is which policies are meant: those that are named, as NAME or
// NAMESPACE/NAME, else those with the labels.
type Selection struct {
	Names     []string
	Namespace string // of policies that are named without one
	Every     bool   // namespace, where none is named
	Labels    labels.Selector
}

// Means tells whether a name is that of a policy.
func (s Selection) Means(wanted, namespace, name string) bool {
	return wanted == strings.TrimPrefix(namespace+"/"+name, "/") || wanted == name && namespace != "" && namespace == s.Namespace
}

// Takes tells whether a policy is meant.
func (s Selection) Takes(namespace, name string, of labels.Set) bool {
	if len(s.Names) > 0 {
		return slices.ContainsFunc(s.Names, func(wanted string) bool { return s.Means(wanted, namespace, name) })
	}
	return (s.Every || namespace == "" || namespace == s.Namespace) && s.Labels.Matches(of)
}

// Choose is which policies are meant, in order.
func (ws PolicyStates) Choose(s Selection) ([]string, error) {
	var out []string
	for name, w := range ws {
		of := labels.Set{}
		if w.Source != nil {
			of = w.Source.GetLabels()
		} else if w.Record == nil || len(s.Names) == 0 && !s.Labels.Empty() { // a policy of kvap.dev from the beginning; labels that nobody knows
			continue
		}
		if s.Takes(w.Ref.Namespace, w.Ref.Name, of) {
			out = append(out, name)
		}
	}
	for _, wanted := range s.Names {
		if !slices.ContainsFunc(out, func(name string) bool { return s.Means(wanted, ws[name].Ref.Namespace, ws[name].Ref.Name) }) {
			return nil, fmt.Errorf("the cluster has no policy %s, and no record of one; kvap status -A lists all", wanted)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the cluster has no such policy")
	}
	slices.SortFunc(out, func(a, b string) int {
		x, y := ws[a].Ref, ws[b].Ref
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	return out, nil
}
