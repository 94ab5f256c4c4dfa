package interp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Offline is a World held in memory: it knows the objects that it was given, and
// nothing else. Its zero value is an empty world. It must not be changed while it
// is asked.
type Offline struct {
	// Objects are found by ConfigMap, Namespace, Params and, where Plural knows their
	// kinds, by API.
	Objects []map[string]any
	// Complete tells that Objects and Globals are all there is: what is not among them
	// does not exist, where otherwise nothing is known of it.
	Complete bool
	// Plural is what the API server calls a kind in paths; nil knows none.
	Plural func(apiVersion, kind string) string
	// Unscoped tells of a kind whose objects are in no namespace; nil knows of none.
	Unscoped func(apiVersion, kind string) bool
	// Answers are the answers of the API server by path, and of services by URL.
	Answers map[string][]byte
	// Mocked are the statuses of those answers that a suite gives with one.
	Mocked map[string]int
	// Images are what registries know, by reference.
	Images map[string]map[string]any
	// Metadata is what registries know of the others; nil where no registry is at hand.
	Metadata func(ctx context.Context, reference string) (map[string]any, error)
	// Proofs tells what is proven of images; nil where no registry is at hand.
	Proofs Registry
	// Globals are the data of GlobalContextEntries by name.
	Globals map[string]any
	// Hosts are the addresses of hosts.
	Hosts map[string][]netip.Addr
	// Kinds knows the kinds of resources beside the built-in ones; nil knows none.
	Kinds func(group, version, resource string) (kind string, ok bool)
	// Formats knows the formats of fields, as Typed does; nil knows none.
	Formats func(group, version, kind string, field []string) Format
	// Allow decides the authorizer checks; nil denies all.
	Allow authorizer.UnconditionalAuthorizer
	// Time is what Now answers; zero means the time of the computer.
	Time time.Time
	// Seed makes Random repeatable.
	Seed uint64

	chance sync.Mutex
	source *rand.Rand
}

// ConfigMap finds a ConfigMap among the objects.
func (o *Offline) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	return o.object("v1", "ConfigMap", namespace, name)
}

// Namespace finds a Namespace among the objects. One that is not there exists
// all the same, with no labels but its name.
func (o *Offline) Namespace(_ context.Context, name string) (map[string]any, error) {
	if object, err := o.object("v1", "Namespace", "", name); err == nil {
		return object, nil
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{"kubernetes.io/metadata.name": name},
	}}, nil
}

// Format asks Formats.
func (o *Offline) Format(group, version, kind string, field []string) Format {
	if o.Formats == nil {
		return AnyText
	}
	return o.Formats(group, version, kind, field)
}

func (o *Offline) object(apiVersion, kind, namespace, name string) (map[string]any, error) {
	for _, object := range o.Objects {
		if object["apiVersion"] == apiVersion && object["kind"] == kind &&
			metaText(object, "namespace") == namespace && metaText(object, "name") == name {
			return object, nil
		}
	}
	return nil, fmt.Errorf("there is no %s %s/%s", kind, namespace, name)
}

// Params finds objects of a kind.
func (o *Offline) Params(_ context.Context, apiVersion, kind, namespace, name string, selector *metav1.LabelSelector) ([]map[string]any, error) {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, object := range o.Objects {
		if object["apiVersion"] != apiVersion || object["kind"] != kind ||
			namespace != "" && metaText(object, "namespace") != namespace {
			continue
		}
		if name != "" && metaText(object, "name") == name ||
			name == "" && selects.Matches(labels.Set(metaMap(object, "labels"))) {
			out = append(out, object)
		}
	}
	return out, nil
}

// Service gives the answer that was set for a URL.
func (o *Offline) Service(_ context.Context, call ServiceCall) (ServiceAnswer, error) {
	if answer, ok := o.Answers[call.URL]; ok {
		if status, ok := o.Mocked[call.URL]; ok {
			return ServiceAnswer{Status: status, Body: answer, Mocked: true}, nil
		}
		return ServiceAnswer{Status: 200, Body: answer}, nil
	}
	return ServiceAnswer{}, fmt.Errorf("there is no answer for %s; services are not asked offline: give a Context with the answer, with --param FILE (in a test: context)", call.URL)
}

// Image gives what was set for a reference.
func (o *Offline) Image(ctx context.Context, reference string, _ Access) (map[string]any, error) {
	if image, ok := o.Images[reference]; ok {
		return image, nil
	}
	if o.Metadata != nil {
		return o.Metadata(ctx, reference)
	}
	return nil, fmt.Errorf("nothing is known of the image %s; registries are not asked offline", reference)
}

// Registry is Proofs.
func (o *Offline) Registry() Registry { return o.Proofs }

// Global gives what was set for a name.
func (o *Offline) Global(_ context.Context, name string) (any, error) {
	if data, ok := o.Globals[name]; ok {
		return data, nil
	}
	if o.Complete {
		return nil, fmt.Errorf("there is no global context entry %s: %w", name, ErrNotFound)
	}
	return nil, fmt.Errorf("there is no global context entry %s", name)
}

// Resource is what Plural says.
func (o *Offline) Resource(_ context.Context, apiVersion, kind string) (string, error) {
	if o.Plural != nil {
		if plural := o.Plural(apiVersion, kind); plural != "" {
			return plural, nil
		}
	}
	return "", fmt.Errorf("nothing is known of the kind %s of %s offline", kind, apiVersion)
}

// Kind knows the resources that have subresources of another kind, and Kinds.
func (o *Offline) Kind(group, version, resource string) (kind string, ok bool) {
	if o.Kinds != nil {
		if kind, ok := o.Kinds(group, version, resource); ok {
			return kind, true
		}
	}
	kind = builtinKind(group, resource)
	return kind, kind != ""
}

// builtinKind is the kind of the built-in resources that have subresources.
func builtinKind(group, resource string) string {
	switch group + "/" + resource {
	case "/pods":
		return "Pod"
	case "/services":
		return "Service"
	case "/serviceaccounts":
		return "ServiceAccount"
	case "/replicationcontrollers":
		return "ReplicationController"
	case "/persistentvolumeclaims":
		return "PersistentVolumeClaim"
	case "/resourcequotas":
		return "ResourceQuota"
	case "/nodes":
		return "Node"
	case "/namespaces":
		return "Namespace"
	case "/persistentvolumes":
		return "PersistentVolume"
	case "apps/deployments":
		return "Deployment"
	case "apps/replicasets":
		return "ReplicaSet"
	case "apps/statefulsets":
		return "StatefulSet"
	case "apps/daemonsets":
		return "DaemonSet"
	case "batch/jobs":
		return "Job"
	case "batch/cronjobs":
		return "CronJob"
	case "autoscaling/horizontalpodautoscalers":
		return "HorizontalPodAutoscaler"
	case "policy/poddisruptionbudgets":
		return "PodDisruptionBudget"
	case "networking.k8s.io/ingresses":
		return "Ingress"
	case "certificates.k8s.io/certificatesigningrequests":
		return "CertificateSigningRequest"
	case "apiextensions.k8s.io/customresourcedefinitions":
		return "CustomResourceDefinition"
	case "apiregistration.k8s.io/apiservices":
		return "APIService"
	}
	return ""
}

// Authorizer is Allow, or one that denies.
func (o *Offline) Authorizer() authorizer.UnconditionalAuthorizer {
	if o.Allow != nil {
		return o.Allow
	}
	return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionDeny, "nobody is authorized offline", nil
	})
}

// Resolve gives the addresses that were set for a host.
func (o *Offline) Resolve(_ context.Context, host string) ([]netip.Addr, error) {
	if addresses, ok := o.Hosts[host]; ok {
		return addresses, nil
	}
	return nil, fmt.Errorf("the host %s is not known; names are not resolved offline", host)
}

// Now is Time, or the time of the computer.
func (o *Offline) Now() time.Time {
	if o.Time.IsZero() {
		return time.Now()
	}
	return o.Time
}

// Random is the next number of the sequence that Seed starts.
func (o *Offline) Random(n int) int {
	o.chance.Lock()
	defer o.chance.Unlock()
	if o.source == nil {
		o.source = rand.New(rand.NewPCG(o.Seed, o.Seed))
	}
	return o.source.IntN(n)
}
