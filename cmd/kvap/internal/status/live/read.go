package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/status"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// A Reader reads what status is about. What may not be read is left out, and
// said.
type Reader struct {
	*cluster.Connection
	cluster.LeftOut
	seen     status.Snapshot
	versions map[apischema.GroupVersionResource]string // of the lists
	counts   func(namespace string) bool               // whether exceptions of it count
	notes    []string                                  // about no policy alone
}

// Read reads a cluster. Exceptions count in the given namespaces.
func Read(ctx context.Context, c *cluster.Connection, counts func(namespace string) bool) (*Reader, error) {
	r := &Reader{Connection: c, versions: map[apischema.GroupVersionResource]string{}, counts: counts}
	r.seen = status.Snapshot{Now: time.Now(), Params: map[string]status.ResolvedParams{}}
	if err := r.readSchemas(); err != nil {
		return nil, err
	}
	if err := r.readNative(ctx); err != nil {
		return nil, err
	}
	if err := r.readSources(ctx); err != nil {
		return nil, err
	}
	r.readWebhook(ctx)
	r.readStandingBy(ctx)
	return r, r.readParams(ctx)
}

// Status is the health of the policies that are asked for.
func (r *Reader) Status(filter status.Filter) report.Status {
	r.seen.Filter = filter
	out := status.Of(r.seen)
	out.Notes = append([]string{}, r.notes...)
	return out
}

// Now is when it was read.
func (r *Reader) Now() time.Time { return r.seen.Now }

// Nothing says why there is nothing to show.
func (r *Reader) Nothing() string {
	c := r.seen
	switch {
	case len(c.Policies)+len(c.Bindings)+len(c.Sources)+len(c.Translations) > 0:
		return "none of the cluster's policies is asked for; kvap status -A lists all"
	case len(r.Left) > 0:
		return "there is no policy that you may read"
	}
	return "the cluster has no policies"
}

// readSchemas takes the types of the release that is nearest to the server's.
func (r *Reader) readSchemas() (err error) {
	release, _ := cluster.Nearest(r.Connection)
	if r.seen.Schemas, err = schema.Builtin(release.String()); err != nil {
		return err
	}
	r.seen.Compile = compile.Options{Translate: translate.Options{
		Release: release, Schemas: r.seen.Schemas, Pack: translate.PackPolicy, Params: translate.ParamsConfigMap,
		Existing: translate.AllowExisting, Guard: translate.GuardNever,
	}}
	return nil
}

func (r *Reader) readNative(ctx context.Context) error {
	for _, kind := range []struct {
		resource string
		add      func(unstructured.Unstructured) error
	}{
		{"validatingadmissionpolicies", func(u unstructured.Unstructured) error {
			p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			r.seen.Policies = append(r.seen.Policies, p)
			return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
		}},
		{"validatingadmissionpolicybindings", func(u unstructured.Unstructured) error {
			b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			r.seen.Bindings = append(r.seen.Bindings, b)
			return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, b)
		}},
	} {
		resource := admissionregistrationv1.SchemeGroupVersion.WithResource(kind.resource)
		items, version, err := r.List(ctx, resource)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the API server, which is of release %s, serves no ValidatingAdmissionPolicies; they exist since 1.30", r.Release)
		}
		if err != nil {
			if err := r.Leave(err); err != nil {
				return err
			}
			continue
		}
		r.versions[resource] = version
		for _, u := range items {
			if err := kind.add(u); err != nil {
				return fmt.Errorf("%s %s: %w", kind.resource, u.GetName(), err)
			}
		}
	}
	return nil
}

// readSources reads the policies of the kinds that the cluster has.
func (r *Reader) readSources(ctx context.Context) error {
	for _, kind := range append(cluster.SourceKinds(), []string{v1alpha1.Group, "Migration", "v1alpha1"}) {
		resource, ok := r.Serves(kind[0], kind[1], kind[2:]...)
		if !ok {
			continue
		}
		items, version, err := r.List(ctx, resource)
		if err != nil {
			if err := r.Leave(err); err != nil {
				return err
			}
			continue
		}
		r.versions[resource] = version
		r.seen.Controller = r.seen.Controller || kind[1] == "PolicyTranslation"
		for _, u := range items {
			if err := r.readSource(u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reader) readSource(u unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if gvk.Kind == "PolicyTranslation" {
		t := &v1alpha1.PolicyTranslation{}
		r.seen.Translations = append(r.seen.Translations, t)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t)
	}
	if gvk.Kind == "Migration" {
		m := &v1alpha1.Migration{}
		r.seen.Migrations = append(r.seen.Migrations, m)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m)
	}
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(u.Object, "status")
	if gvk.Group == v1alpha1.Group { // the kinds have the spec of those of Kyverno
		u.SetAPIVersion(v1alpha1.KyvernoAPIVersion(u.GetKind()))
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	f, found := policy.Parse("", data)
	for _, p := range f.Policies {
		r.seen.Sources = append(r.seen.Sources, &status.Source{
			Policy: p, Found: found, Group: gvk.Group, Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration(),
		})
	}
	if r.counts(u.GetNamespace()) {
		r.seen.Exceptions = append(r.seen.Exceptions, f.Exceptions...)
	}
	return nil
}

// A paramsQuery is what an API server looks for when it judges by a binding.
type paramsQuery struct {
	resource                  apischema.GroupVersionResource
	namespace, name, selector string
}

// readParams looks for the params of each binding, once for those that ask for the same.
func (r *Reader) readParams(ctx context.Context) error {
	client, err := metadata.NewForConfig(r.Config)
	if err != nil {
		return err
	}
	kinds := map[string]*admissionregistrationv1.ParamKind{}
	for _, p := range r.seen.Policies {
		kinds[p.Name] = p.Spec.ParamKind
	}
	asked := map[paramsQuery]*status.ResolvedParams{}
	for _, b := range r.seen.Bindings {
		kind, ref := kinds[b.Spec.PolicyName], b.Spec.ParamRef
		if kind == nil || ref == nil {
			continue
		}
		query, err := r.paramsQuery(kind, ref)
		if meta.IsNoMatchError(err) {
			r.seen.Params[b.Name] = status.ResolvedParams{Unserved: true}
			continue
		}
		if err != nil {
			return err
		}
		found, done := asked[query]
		if !done {
			if found, err = query.ask(ctx, client); err != nil {
				if err = r.Leave(fmt.Errorf("params of the binding %s: %w", b.Name, err)); err != nil {
					return err
				}
			}
			asked[query] = found
		}
		if found != nil {
			r.seen.Params[b.Name] = *found
		}
	}
	return nil
}

func (r *Reader) paramsQuery(kind *admissionregistrationv1.ParamKind, ref *admissionregistrationv1.ParamRef) (q paramsQuery, err error) {
	gvk := apischema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return q, err
	}
	q = paramsQuery{resource: mapping.Resource, name: ref.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		q.namespace = ref.Namespace // where empty, that of each object
	}
	if ref.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return q, err
		}
		q.selector = selector.String()
	}
	return q, nil
}

// ask reads no more than metadata.
func (q paramsQuery) ask(ctx context.Context, client metadata.Interface) (*status.ResolvedParams, error) {
	options := metav1.ListOptions{Limit: cluster.PageSize, LabelSelector: q.selector}
	if q.name != "" {
		options.FieldSelector = "metadata.name=" + q.name
	}
	out := &status.ResolvedParams{}
	for {
		page, err := client.Resource(q.resource).Namespace(q.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			name := o.Name
			if o.Namespace != "" {
				name = o.Namespace + "/" + o.Name
			}
			out.Found = append(out.Found, name)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			slices.Sort(out.Found)
			return out, nil
		}
	}
}

// readWebhook notes where one process alone answers for rules without which requests are
// refused. Who may not read that is told nothing: it is a hint.
func (r *Reader) readWebhook(ctx context.Context) {
	fails := map[admissionregistrationv1.ServiceReference]int{}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		list, err := r.Dynamic.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource)).List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=" + controller.Manager})
		if err != nil {
			return
		}
		for _, u := range list.Items {
			countFails(u, fails)
		}
	}
	for service, n := range fails {
		list, err := r.Dynamic.Resource(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")).Namespace(service.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
		if err != nil {
			return
		}
		if note := replicaNote(service, n, readyEndpoints(list.Items)); note != "" {
			r.notes = append(r.notes, note)
		}
	}
}

// countFails counts the webhooks of a configuration that refuse what nobody answers, by
// whom they ask.
func countFails(u unstructured.Unstructured, fails map[admissionregistrationv1.ServiceReference]int) {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{} // both kinds have this form, as far as this goes
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c) != nil {
		return
	}
	for _, w := range c.Webhooks {
		if s := w.ClientConfig.Service; s != nil && w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail {
			fails[admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name}]++
		}
	}
}

// readyEndpoints is how many addresses answer for a Service.
func readyEndpoints(items []unstructured.Unstructured) int {
	ready := map[string]bool{}
	for _, u := range items {
		s := &discoveryv1.EndpointSlice{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s) != nil {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready[e.Addresses[0]] = true
			}
		}
	}
	return len(ready)
}

// replicaNote says what happens when the last replica ends; "" where there are others.
func replicaNote(service admissionregistrationv1.ServiceReference, fails, ready int) string {
	if ready > 1 {
		return ""
	}
	many := "one replica answers"
	if ready == 0 {
		many = "no replica answers"
	}
	return fmt.Sprintf("%s at the Service %s/%s for kvap's webhook, and %s with failurePolicy Fail: while it is away, requests are refused; run two (replicas: 2)",
		many, service.Namespace, service.Name, doc.Count(fails, "of its entries is", "of its entries are"))
}

// readStandingBy notes which instances of kvap stand by, because another one controls the cluster, by
// their events. Who may not read these is told nothing: it is a hint.
func (r *Reader) readStandingBy(ctx context.Context) {
	list, err := r.Dynamic.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).List(ctx,
		metav1.ListOptions{FieldSelector: "reason=" + controller.ReasonStandingBy})
	if err != nil {
		return
	}
	for _, u := range list.Items {
		e := &eventsv1.Event{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, e) != nil {
			continue
		}
		if note := standingByNote(e, r.Now()); note != "" && !slices.Contains(r.notes, note) {
			r.notes = append(r.notes, note)
		}
	}
}

// standingByNote is what an event says of an instance that stands by; "" where it has not said so
// for long, or somebody else says so.
func standingByNote(e *eventsv1.Event, now time.Time) string {
	last := e.EventTime.Time
	if e.Series != nil {
		last = e.Series.LastObservedTime.Time
	}
	if e.ReportingController != controller.Manager || now.Sub(last) > 2*controller.StandingByEvery {
		return ""
	}
	return fmt.Sprintf("the kvap of the namespace %s stands by and writes nothing, as it said %d minutes ago, because another one controls the cluster; "+
		"where both still run, uninstall one of them", e.Namespace, int(now.Sub(last).Minutes()))
}

// The times of a watch. What is not watched, such as params, is looked at again
// after rereadAfter.
const (
	retryDelay  = 2 * time.Second
	gatherDelay = 300 * time.Millisecond // one change is seldom alone
	rereadAfter = 10 * time.Second
)

// Watch shows the status whenever it has changed, until the context ends. Where it
// could be read once, warn is told of what goes wrong later, and it is read again.
func Watch(ctx context.Context, c *cluster.Connection, counts func(namespace string) bool, filter status.Filter,
	show func(r *Reader, found report.Status, first bool) error, warn func(error)) error {
	var last []byte
	for ctx.Err() == nil {
		read, err := Read(ctx, c, counts)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && last == nil:
			return err
		case err != nil: // it may come back
			warn(err)
			pause(ctx, retryDelay)
			continue
		}
		found := read.Status(filter)
		var text bytes.Buffer
		if err := doc.WriteJSON(&text, found); err != nil {
			return err
		}
		if !bytes.Equal(text.Bytes(), last) {
			if err := show(read, found, last == nil); err != nil {
				return err
			}
			last = text.Bytes()
		}
		read.awaitChange(ctx)
	}
	return nil
}

// awaitChange returns when something has changed of what was listed, or it is time
// to look again.
func (r *Reader) awaitChange(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rereadAfter)
	defer cancel()
	config := *r.Config
	config.Timeout = 0 // which would end the watch
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		pause(ctx, rereadAfter)
		return
	}
	changed := make(chan struct{}, 1)
	for resource, version := range r.versions {
		w, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			pause(ctx, retryDelay) // the list is too old, or the server has gone
			return
		}
		defer w.Stop()
		go tellFirst(ctx, w, changed)
	}
	select {
	case <-changed:
		pause(ctx, gatherDelay)
	case <-ctx.Done():
	}
}

// tellFirst tells of the first change, or of the end of the watch.
func tellFirst(ctx context.Context, w watch.Interface, changed chan<- struct{}) {
	select {
	case <-w.ResultChan():
		select {
		case changed <- struct{}{}:
		default:
		}
	case <-ctx.Done():
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
