package live

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// kyvernoLabel is on all webhook configurations of Kyverno.
const kyvernoLabel = "webhook.kyverno.io/managed-by"

// A kyvernoWatch says what Kyverno has the API server ask it.
type kyvernoWatch struct {
	*cluster.Connection
	served registration.Table
	// validating and mutating are Kyverno's webhooks for resources.
	validating, mutating []admissionregistrationv1.ValidatingWebhook
	configurations       []*admissionregistrationv1.ValidatingWebhookConfiguration // both kinds have the same form, as far as this goes
	alive                heartbeat
	unread               error  // why it is not known whether it is alive
	version              string // of its image; "" where that is not known
}

func newKyvernoWatch(c *cluster.Connection) (kyvernoWatch, error) {
	k := kyvernoWatch{Connection: c}
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return k, err
	}
	k.served, err = world.Discover(client)
	return k, err
}

// read reads Kyverno's webhook configurations, and whether it is alive.
func (k *kyvernoWatch) read(ctx context.Context) error {
	k.validating, k.mutating, k.configurations = nil, nil, nil
	now, err := readHeartbeat(ctx, k.Connection)
	if k.unread = err; err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	k.alive = now.after(k.alive)
	if k.version, _, err = imageVersion(ctx, k.Connection, now); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		items, _, err := k.List(ctx, apischema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: "v1", Resource: resource})
		if err != nil {
			return err
		}
		for i := range items {
			if _, ok := items[i].GetLabels()[kyvernoLabel]; !ok {
				continue
			}
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, c); err != nil {
				return err
			}
			k.configurations = append(k.configurations, c)
			k.add(c.Webhooks)
		}
	}
	return nil
}

// add takes the webhooks by which Kyverno judges resources. Of its others, one is
// registered for every kind: it is about labels for cleaning up.
func (k *kyvernoWatch) add(hooks []admissionregistrationv1.ValidatingWebhook) {
	for _, h := range hooks {
		switch {
		case strings.Contains(h.Name, "validate.kyverno.svc"):
			k.validating = append(k.validating, h)
		case strings.Contains(h.Name, "mutate.kyverno.svc"):
			k.mutating = append(k.mutating, h)
		}
	}
}

// judges tells whether Kyverno was seen to judge requests by a policy: it says that
// it is ready, and the API server asks it about what the policy is about.
func (k *kyvernoWatch) judges(o *unstructured.Unstructured) migrate.Judging {
	switch {
	case migrate.KyvernoIsOff(o):
		return migrate.Judging{Why: "admission is off in it"}
	case len(k.validating)+len(k.mutating) == 0:
		return migrate.Judging{Why: "Kyverno has registered no webhook; see that it runs"}
	case k.unread != nil:
		return migrate.Judging{Why: k.unread.Error()}
	case k.alive.silent(time.Now()) != "":
		return migrate.Judging{Why: k.alive.silent(time.Now()) + "; see that it runs"}
	case k.givesUp(o):
		return migrate.Judging{Why: "Kyverno " + k.version + " carries out no policy of kyverno.io"}
	case !kyvernoReady(o):
		return migrate.Judging{Why: "Kyverno has not said that it is ready"}
	}
	policies := migrate.PoliciesOf(o)
	for _, p := range policies {
		p.FailurePolicy = policy.Ignore // what kvap would leave out, Kyverno does not
	}
	want, _ := registration.Configure(policies, k.served, registration.Options{URL: "https://localhost"})
	if c := want.Validating; c != nil && slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return !covered(w.Rules, k.validating, o) }) {
		return migrate.Judging{Why: "Kyverno's webhook is not registered for all that it is about"}
	}
	if c := want.Mutating; c != nil && slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return !covered(w.Rules, k.mutating, o) }) {
		return migrate.Judging{Why: "Kyverno's webhook is not registered for all that it changes"}
	}
	return migrate.Judging{Yes: true}
}

// givesUp tells of a policy that Kyverno carries out no more, from its version 1.20 on.
func (k *kyvernoWatch) givesUp(o *unstructured.Unstructured) bool {
	return migrate.IsLegacy(sourceRef(o)) && givesUp(k.version)
}

// givesUp tells of a version of Kyverno that carries out no policy of kyverno.io.
func givesUp(version string) bool {
	v, err := semver.ParseTolerant(version)
	v.Pre = nil
	return err == nil && v.GE(semver.Version{Major: 1, Minor: 20})
}

// GivenUp is why Kyverno carries out no policy of kyverno.io; "" where it does, or that is
// not known.
func GivenUp(ctx context.Context, c *cluster.Connection) (string, error) {
	now, err := readHeartbeat(ctx, c)
	if err != nil {
		return "", err
	}
	version, _, err := imageVersion(ctx, c, now)
	if err != nil || !givesUp(version) {
		return "", err
	}
	return "Kyverno " + version + " carries out no policy of kyverno.io", nil
}

// kyvernoReady reads the status that Kyverno writes: a condition, or in older versions
// a field.
func kyvernoReady(o *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(o.Object, "status", "ready")
	older, _, _ := unstructured.NestedBool(o.Object, "status", "conditionStatus", "ready")
	return ready || older || len(ReadySince(o)) > 0
}

// ReadySince are the times since when Kyverno says of a policy that it is ready, by its conditions.
func ReadySince(o *unstructured.Unstructured) (out []time.Time) {
	for _, path := range [][]string{{"status", "conditions"}, {"status", "conditionStatus", "conditions"}} {
		list, _, _ := unstructured.NestedSlice(o.Object, path...)
		for _, one := range list {
			if c, _ := one.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
				text, _ := c["lastTransitionTime"].(string)
				at, _ := time.Parse(time.RFC3339, text) // long ago where it does not say
				out = append(out, at)
			}
		}
	}
	return out
}

// covered tells whether webhooks are asked about all that some rules name, for a policy.
func covered(want []admissionregistrationv1.RuleWithOperations, hooks []admissionregistrationv1.ValidatingWebhook, o *unstructured.Unstructured) bool {
	var have []admissionregistrationv1.RuleWithOperations
	for _, h := range hooks {
		if !ofAnother(h.Name, o) {
			have = append(have, h.Rules...)
		}
	}
	for _, w := range want {
		for _, resource := range w.Resources {
			if !slices.ContainsFunc(have, func(h admissionregistrationv1.RuleWithOperations) bool {
				return overlap(w.APIGroups, h.APIGroups) && overlap([]string{resource}, h.Resources) && overlap(w.Operations, h.Operations)
			}) {
				return false
			}
		}
	}
	return true
}

// ofAnother tells of a webhook that judges by one policy only, which is another one.
func ofAnother(name string, o *unstructured.Unstructured) bool {
	_, of, ok := strings.Cut(name, "-finegrained-")
	full := o.GetName()
	if o.GetNamespace() != "" {
		full = o.GetNamespace() + "-" + full
	}
	return ok && of != full
}

// overlap tells whether lists of groups, resources or operations have one in common.
func overlap[T ~string](a, b []T) bool {
	if slices.Contains(a, "*") || slices.Contains(b, "*") || slices.Contains(a, "*/*") || slices.Contains(b, "*/*") {
		return true
	}
	return slices.ContainsFunc(a, func(x T) bool {
		parent, _, _ := strings.Cut(string(x), "/")
		return slices.Contains(b, x) || slices.Contains(b, T(parent+"/*"))
	})
}

// A heartbeat is what Kyverno last said of being alive: it writes a lease every ten
// seconds, and has the API server ask it no more once the lease is older than maxSilence.
// The zero value is of a Kyverno that has no such lease, as older ones.
type heartbeat struct {
	lease, said string
	moved       bool // it was written while somebody looked
}

// maxSilence is how old the lease of a Kyverno that judges may be.
const maxSilence = 100 * time.Second

// readHeartbeat reads the lease.
func readHeartbeat(ctx context.Context, c *cluster.Connection) (heartbeat, error) {
	leases := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"})
	list, err := leases.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kyverno-health"})
	if err != nil {
		return heartbeat{}, readError("whether Kyverno is alive is", fmt.Errorf("leases: %w", err))
	}
	var out heartbeat
	for _, l := range list.Items {
		if said := l.GetAnnotations()["kyverno.io/last-request-time"]; said > out.said {
			out = heartbeat{lease: l.GetNamespace() + "/" + l.GetName(), said: said}
		}
	}
	return out, nil
}

// Silent says since when Kyverno has said nothing, as far as its lease tells at once; ""
// where it is alive, or that is not known.
func Silent(ctx context.Context, c *cluster.Connection) (string, error) {
	h, err := readHeartbeat(ctx, c)
	return h.silent(time.Now()), err
}

// after is the heartbeat after an earlier one.
func (h heartbeat) after(before heartbeat) heartbeat {
	h.moved = before.moved || before.said != "" && h.said != before.said
	return h
}

// silent says since when Kyverno has said nothing; "" where it is alive, or that is not
// known. The clocks of the cluster and of this machine may differ, but a lease that moves
// is alive whatever they say.
func (h heartbeat) silent(now time.Time) string {
	at, err := time.Parse(time.RFC3339, h.said)
	if h.said == "" || h.moved || err != nil {
		return ""
	}
	if age := now.Sub(at); age > maxSilence || age < -maxSilence {
		return fmt.Sprintf("Kyverno has not said that it is alive since %s (lease %s)", at.UTC().Format(time.RFC3339), h.lease)
	}
	return ""
}

// UpgradeOf is what a cluster tells of its Kyverno: the version, by the image that it runs
// and by the labels of its definitions, whether it is alive, by its lease, and whether the
// API server takes policies such as those of legacy still. Nothing is changed.
func UpgradeOf(ctx context.Context, c *cluster.Connection, legacy []unstructured.Unstructured) (*report.Upgrade, error) {
	out := &report.Upgrade{Unknown: []string{}}
	beat, err := readHeartbeat(ctx, c)
	if err != nil && !apierrors.IsForbidden(err) {
		return out, err
	}
	out.Silent = beat.silent(time.Now())
	var forbidden error
	for _, read := range []func() (string, string, error){
		func() (string, string, error) { return imageVersion(ctx, c, beat) },
		func() (string, string, error) { return labelVersion(ctx, c) },
	} {
		version, seen, err := read()
		if apierrors.IsForbidden(err) {
			forbidden = err
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if out.Version == "" {
			out.Version, out.Seen = version, seen
		}
	}
	if out.Version == "" && forbidden != nil {
		out.Unknown = append(out.Unknown, readError("Kyverno's version is", forbidden).Error())
	}
	for i := range legacy {
		if out.Closed, err = Closed(ctx, c, &legacy[i]); err != nil || out.Closed != "" {
			return out, err
		}
	}
	return out, nil
}

// tag is the version at the end of the name of an image, or in a label.
var tag = regexp.MustCompile(`^v?(\d+\.\d+(\.\d+)?([-+.][0-9A-Za-z.-]+)?)$`)

// imageVersion is the version of the image of Kyverno's admission controller, in the
// namespace of its lease where that is known.
func imageVersion(ctx context.Context, c *cluster.Connection, beat heartbeat) (version, seen string, err error) {
	namespace, _, _ := strings.Cut(beat.lease, "/")
	deployments := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	list, err := deployments.Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kyverno"})
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		containers, _, _ := unstructured.NestedSlice(list.Items[i].Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			image, _ := container["image"].(string)
			name, _, _ := strings.Cut(image, "@") // the digest
			slash := strings.LastIndex(name, "/")
			repository, version, _ := strings.Cut(name[slash+1:], ":")
			if m := tag.FindStringSubmatch(version); m != nil && repository == "kyverno" {
				return m[1], "image " + image, nil
			}
		}
	}
	return "", "", nil
}

// labelVersion is the version that a label of Kyverno's definitions tells. Where it was
// installed by its chart, that is of the chart, and of its manifests it is Kyverno's.
func labelVersion(ctx context.Context, c *cluster.Connection) (version, seen string, err error) {
	const label = "app.kubernetes.io/version"
	definitions := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	list, err := definitions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		d := &list.Items[i]
		if m := tag.FindStringSubmatch(d.GetLabels()[label]); m != nil && strings.HasSuffix(d.GetName(), ".kyverno.io") {
			if strings.HasPrefix(m[1], "1.") {
				return m[1], "label of " + d.GetName(), nil
			}
			return fmt.Sprintf("that of the chart %s", m[1]), "label of " + d.GetName(), nil
		}
	}
	return "", "", nil
}
