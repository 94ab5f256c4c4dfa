package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/test/controlplane"
)

// A sample is what one round says of a variant.
type sample struct {
	good, good95 time.Duration // one worker, median and 95th percentile, a Pod that is admitted
	bad          time.Duration // one worker, median, a Pod that is denied
	perSecond    float64       // all workers, Pods that are admitted
	work         time.Duration // of the server's processors, for one of these
	badPerSecond float64
}

func (s sample) String() string {
	return fmt.Sprintf("p50 %s, p95 %s, %.0f requests/s of %.2f ms of a processor; denied: p50 %s, %.0f requests/s", ms(s.good), ms(s.good95), s.perSecond, float64(s.work)/1e6, ms(s.bad), s.badPerSecond)
}

// A bench posts Pods to one control plane.
type bench struct {
	runBounds
	plane   *controlplane.ControlPlane
	admin   dynamic.Interface
	client  *http.Client
	url     string
	marks   [][]byte // texts that answers have where changes is true, and else have not
	changes bool
}

func newBench(plane *controlplane.ControlPlane, p runBounds) (*bench, error) {
	config := plane.Config(controlplane.Admin)
	config.WarningHandler = rest.NoWarnings{}
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &bench{runBounds: p, plane: plane, admin: admin, client: client, url: plane.URL() + "/api/v1/namespaces/default/pods?dryRun=All"}, nil
}

// warmUp is how many requests go before those that count: they compile the
// policies' expressions and fill caches.
const warmUp = 40

// measure is one round of a variant. The policies are gone again afterwards.
func (b *bench) measure(ctx context.Context, v variant) (s sample, err error) {
	if err := b.apply(ctx, v); err != nil {
		return s, err
	}
	defer func() {
		err = errors.Join(err, b.remove(context.WithoutCancel(ctx), v))
	}()
	if err := b.plane.Settle(ctx); err != nil {
		return s, err
	}
	denied := http.StatusCreated
	if len(v.objects) > 0 {
		denied = http.StatusUnprocessableEntity
	}
	if _, err := b.latencies(ctx, warmUp, goodPod, http.StatusCreated); err != nil {
		return s, err
	}
	good, err := b.latencies(ctx, b.requests, goodPod, http.StatusCreated)
	if err != nil {
		return s, err
	}
	bad, err := b.latencies(ctx, b.requests, badPod, denied)
	if err != nil {
		return s, err
	}
	s = sample{good: quantile(good, 0.5), good95: quantile(good, 0.95), bad: quantile(bad, 0.5)}
	if s.perSecond, s.work, err = b.throughput(ctx, goodPod, http.StatusCreated); err != nil {
		return s, err
	}
	s.badPerSecond, _, err = b.throughput(ctx, badPod, denied)
	return s, err
}

// latencies are how long each of n requests took, one after the other.
func (b *bench) latencies(ctx context.Context, n int, pod string, want int) ([]time.Duration, error) {
	out := make([]time.Duration, n)
	for i := range out {
		began := time.Now()
		if err := b.post(ctx, pod, want); err != nil {
			return nil, err
		}
		out[i] = time.Since(began)
	}
	return out, nil
}

// throughput is how many requests all workers together make in a second, and how
// long the server's processors work for each.
func (b *bench) throughput(ctx context.Context, pod string, want int) (perSecond float64, work time.Duration, err error) {
	before, err := b.processorTime(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	end := began.Add(time.Duration(b.seconds * float64(time.Second)))
	counts, errs := make([]int, b.workers), make([]error, b.workers)
	var group sync.WaitGroup
	for w := range b.workers {
		group.Go(func() {
			for time.Now().Before(end) && errs[w] == nil {
				errs[w] = b.post(ctx, pod, want)
				counts[w]++
			}
		})
	}
	group.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	took := time.Since(began)
	after, err := b.processorTime(ctx)
	return float64(total) / took.Seconds(), (after - before) / time.Duration(max(1, total)), errors.Join(append(errs, err)...)
}

// processorTime is how long the server's processors have worked, as its metrics say.
// To write the metrics is itself some work, as much for each variant.
func (b *bench) processorTime(ctx context.Context) (time.Duration, error) {
	text, err := b.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, after, ok := bytes.Cut(text, []byte("\nprocess_cpu_seconds_total "))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	seconds, err := strconv.ParseFloat(string(line), 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("the server's metrics have no processor time: %q", line)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// get asks the server for what is no resource.
func (b *bench) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.plane.URL()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return text, err
}

// post asks for a Pod and insists on the answer.
func (b *bench) post(ctx context.Context, pod string, want int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader([]byte(pod)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != want {
		return fmt.Errorf("the answer is %s, not %d: %s", answer.Status, want, text)
	}
	for _, mark := range b.marks {
		if bytes.Contains(text, mark) != b.changes {
			return fmt.Errorf("that the Pod has %s is not %t: %s", mark, b.changes, text)
		}
	}
	return nil
}

func (b *bench) apply(ctx context.Context, v variant) error {
	for _, o := range v.objects {
		if _, err := b.resource(o.GetKind()).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes bindings before policies, as one does in a cluster.
func (b *bench) remove(ctx context.Context, v variant) error {
	var errs []error
	for _, o := range slices.Backward(v.objects) {
		errs = append(errs, b.resource(o.GetKind()).Delete(ctx, o.GetName(), metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}

func (b *bench) resource(kind string) dynamic.ResourceInterface {
	name := map[string]string{
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
		"MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
	}[kind]
	return b.admin.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(name))
}

// quantile of durations, which it sorts.
func quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[min(int(q*float64(len(ds))), len(ds)-1)]
}

// goodPod keeps to all rules; badPod violates seven of them.
const (
	goodPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"good","labels":{"app":"shop"}},"spec":{
"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
"containers":[
{"name":"shop","image":"registry.example/shop:1.2","ports":[{"containerPort":8080}],"resources":{"limits":{"memory":"64Mi"},"requests":{"cpu":"100m","memory":"64Mi"}},
"env":[{"name":"MODE","value":"active"}],"volumeMounts":[{"name":"data","mountPath":"/data"}],
"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}}},
{"name":"proxy","image":"registry.example/proxy:3.4","ports":[{"containerPort":8443}],
"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}],
"volumes":[{"name":"data","emptyDir":{}}]}}`
	badPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","labels":{"app":"shop"}},"spec":{
"hostNetwork":true,
"containers":[
{"name":"shop","image":"registry.example/shop:1.2","ports":[{"containerPort":8080,"hostPort":8080}],"securityContext":{"privileged":true}},
{"name":"proxy","image":"registry.example/proxy:3.4"}],
"volumes":[{"name":"data","emptyDir":{}}]}}`
)
