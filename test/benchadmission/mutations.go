package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/translate"
)

// mutationRules are what changes the Pods.
//
//go:embed mutations.yaml
var mutationRules []byte

// mutationPolicies are the rules as policies of a group and version.
func mutationPolicies(apiVersion string) ([]*unstructured.Unstructured, error) {
	var rules []struct {
		Name   string `json:"name"`
		Mutate any    `json:"mutate"`
	}
	if err := yaml.UnmarshalStrict(mutationRules, &rules); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, r := range rules {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": "ClusterPolicy",
			"metadata": map[string]any{"name": r.Name, "annotations": map[string]any{"pod-policies.kyverno.io/autogen-controllers": "none"}},
			"spec": map[string]any{"rules": []any{map[string]any{
				"name": r.Name, "mutate": r.Mutate,
				"match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Pod"}}}}},
			}}},
		}})
	}
	return out, nil
}

// nativeMutations are the rules as convert makes them, with --pack match where packed.
func nativeMutations(packed bool) ([]*unstructured.Unstructured, error) {
	sources, err := mutationPolicies("kyverno.io/v1")
	if err != nil {
		return nil, err
	}
	var in compile.Input
	for _, s := range sources {
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		file, found := policy.Parse(s.GetName(), text)
		if found.HasErrors() {
			return nil, fmt.Errorf("%v", found)
		}
		in.Policies = append(in.Policies, file.Policies...)
	}
	schemas, err := schema.Builtin(compile.FirstMutations.String())
	if err != nil {
		return nil, err
	}
	result := compile.Policies(in, compile.Options{Translate: translate.Options{Release: compile.FirstMutations, Schemas: schemas, Mutations: true, Repeatable: true, PackMutations: packed}})
	for _, r := range result.Rules {
		if r.Target != translate.Native {
			return nil, fmt.Errorf("%s is not native: %s", r.PolicyName(), r.Reason)
		}
	}
	var out []*unstructured.Unstructured
	for _, group := range result.Mutating {
		for _, o := range group.All() {
			fields, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, err
			}
			out = append(out, &unstructured.Unstructured{Object: fields})
		}
	}
	return out, nil
}

// A changer is what changes Pods, or does not, between its begin and its end.
type changer struct {
	name       string
	begin, end func(context.Context) error
	changes    bool
}

// runMutations measures what changing Pods costs: nothing, the API server, and the webhook.
func runMutations(ctx context.Context, p runBounds, update string) (err error) {
	alone, err := nativeMutations(false)
	if err != nil {
		return err
	}
	packed, err := nativeMutations(true)
	if err != nil {
		return err
	}
	natives := []variant{{"MutatingAdmissionPolicies, `--pack policy`", alone}, {"MutatingAdmissionPolicies, `--pack match`", packed}}
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer plane.Stop() //nolint:errcheck // its data is in a temporary folder
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	if err := plane.InstallCRDs(ctx, definitions...); err != nil {
		return err
	}
	b, err := newBench(plane, p)
	if err != nil {
		return err
	}
	if p.profile != "" {
		return b.profile(ctx, natives, strings.Trim(natives[1].name, "`"), p.profile)
	}
	dir, err := os.MkdirTemp("", "benchadmission-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	hook := &webhookBench{bench: b, kvap: filepath.Join(dir, "kvap")}
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", hook.kvap, "github.com/kvap/kvap/cmd/kvap-controller").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	changers := b.changers(natives, hook)
	results, err := b.samplesOf(ctx, changers, p.rounds)
	if err != nil {
		return err
	}
	table := tableOfMutations(p, changers, results)
	if update == "" {
		fmt.Print(table)
		return nil
	}
	return insert(update, "bench-mutations", table)
}

// changers are nothing, the native policies, and the webhook.
func (b *bench) changers(natives []variant, hook *webhookBench) []changer {
	nothing := func(context.Context) error { return nil }
	out := []changer{{"nothing", nothing, nothing, false}}
	for _, v := range natives {
		out = append(out, changer{v.name, func(ctx context.Context) error { return b.apply(ctx, v) }, func(ctx context.Context) error { return b.remove(ctx, v) }, true})
	}
	return append(out, changer{"the webhook", hook.begin, hook.end, true})
}

// samplesOf are the samples of each changer, of which another one begins each round.
func (b *bench) samplesOf(ctx context.Context, changers []changer, rounds int) ([][]sample, error) {
	b.marks = marks()
	if _, _, err := b.throughput(ctx, goodPod, http.StatusCreated); err != nil {
		return nil, err
	}
	results := make([][]sample, len(changers))
	for round := range rounds {
		for i := range changers {
			at := (i + round) % len(changers)
			c := changers[at]
			err := c.begin(ctx)
			var s sample
			if err == nil {
				s, err = b.changing(ctx, c.changes)
			}
			if err := errors.Join(err, c.end(context.WithoutCancel(ctx)), b.settled(context.WithoutCancel(ctx), false)); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, rounds, c.name, s)
			results[at] = append(results[at], s)
		}
	}
	return results, nil
}

// tableOfMutations holds the others to the first changer.
func tableOfMutations(p runBounds, changers []changer, results [][]sample) string {
	var table strings.Builder
	fmt.Fprintf(&table, "kube-apiserver %s, %d CPUs, everything on one machine; %d interleaved rounds of %d requests by one worker and\n%g s of %d workers. "+
		"Medians, and in brackets the least and the\ngreatest of the rounds.\n\n", controlplane.Version(), runtime.NumCPU(), p.rounds, p.requests, p.seconds, p.workers)
	table.WriteString("| what changes the Pod | p50 added, 1 worker | p95 added | share of the bare throughput | processor time of the API server |\n|---|---|---|---|---|\n")
	for i, c := range changers[1:] {
		ss, bare := results[i+1], results[0]
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", c.name,
			spread(ss, bare, added(func(s sample) time.Duration { return s.good })), spread(ss, bare, added(func(s sample) time.Duration { return s.good95 })),
			spread(ss, bare, share(func(s sample) float64 { return s.perSecond })), spread(ss, bare, share(func(s sample) float64 { return float64(s.work) })))
	}
	return table.String()
}

// marks are what the policies write into the Pod, and nothing else does.
func marks() (out [][]byte) {
	for _, text := range []string{
		`"team":"none"`, `"cost-center":"1"`, `"acme.io/by":`, `"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"`, `"name":"ZONE"`,
		`"terminationGracePeriodSeconds":20`, `"key":"spot"`, `"pool":"general"`, `"name":"ndots"`, `"imagePullSecrets":[`,
	} {
		out = append(out, []byte(text))
	}
	return out
}

// settled waits until all Pods are changed, or none is, for a while: an API server goes on with
// what has just been deleted, and a controller that has just begun works.
func (b *bench) settled(ctx context.Context, changes bool) error {
	const quiet = time.Second
	b.changes = changes
	since := time.Now()
	for began := time.Now(); time.Since(since) < quiet; time.Sleep(20 * time.Millisecond) {
		err := b.post(ctx, goodPod, http.StatusCreated)
		if err == nil {
			continue
		}
		if since = time.Now(); since.Sub(began) > time.Minute {
			return err
		}
	}
	return nil
}

// changing is one round of what is in force. Each Pod is seen to be changed by it, or by nothing.
func (b *bench) changing(ctx context.Context, changes bool) (s sample, err error) {
	if err := b.settled(ctx, changes); err != nil {
		return s, err
	}
	if _, err := b.latencies(ctx, warmUp, goodPod, http.StatusCreated); err != nil {
		return s, err
	}
	good, err := b.latencies(ctx, b.requests, goodPod, http.StatusCreated)
	if err != nil {
		return s, err
	}
	s = sample{good: quantile(good, 0.5), good95: quantile(good, 0.95)}
	s.perSecond, s.work, err = b.throughput(ctx, goodPod, http.StatusCreated)
	return s, err
}

// A webhookBench has the webhook of kvap-controller run the rules.
type webhookBench struct {
	*bench
	kvap string
}

const controllerName = "kvap"

func (w *webhookBench) policies() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "kvap.dev", Version: "v1alpha1", Resource: "clusterpolicies"}
}

func (w *webhookBench) begin(ctx context.Context) error {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	sources, err := mutationPolicies("kvap.dev/v1alpha1")
	if err != nil {
		return err
	}
	for _, s := range sources {
		if _, err := w.admin.Resource(w.policies()).Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return w.plane.Run(ctx, controlplane.Program{Name: controllerName, Path: w.kvap, Flags: []string{
		"--kubeconfig", w.plane.Kubeconfig(controlplane.Admin), "--namespace", "default", "--mutations", "webhook",
		"--webhook-address", address, "--webhook-url", "https://" + address,
	}}, func() error { return nil })
}

// end has the policies go, and what the controller made for them.
func (w *webhookBench) end(ctx context.Context) error {
	sources, err := mutationPolicies("kvap.dev/v1alpha1")
	if err != nil {
		return err
	}
	for _, s := range sources {
		err = errors.Join(err, w.admin.Resource(w.policies()).Delete(ctx, s.GetName(), metav1.DeleteOptions{}))
	}
	if err == nil { // the controller has to take its configuration away
		err = w.settled(ctx, false)
	}
	return errors.Join(err, w.plane.Kill(controllerName))
}
