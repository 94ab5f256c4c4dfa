package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
)

// A bench is a control plane and the controller beside it.
type bench struct {
	n          int
	profiles   string // a folder, or nothing
	plane      *controlplane.ControlPlane
	client     client.WithWatch
	controller *exec.Cmd

	mu    sync.Mutex
	wants map[string]int64                            // generations of policies, by name
	told  map[string]v1alpha1.PolicyTranslationStatus // by the name of the policy
}

// policy is one of many, that differ in what they are about, what follows from a
// violation, and what they want.
func policy(i int, value string) *v1alpha1.ClusterPolicy {
	kinds := []string{"Pod", "ConfigMap", "Service", "Deployment", "Ingress", "Secret", "Namespace", "ServiceAccount"}
	p := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%04d", i)}}
	p.Spec.ValidationFailureAction = []string{"Audit", "Enforce"}[i%2]
	p.Spec.Rules = []v1alpha1.Rule{{
		Name:  "label",
		Match: raw(map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{kinds[i%len(kinds)]}}}}}),
		Validate: pointer(raw(map[string]any{
			"message": fmt.Sprintf("The label bench-%d is missing.", i),
			"pattern": map[string]any{"metadata": map[string]any{"=(labels)": map[string]any{fmt.Sprintf("=(bench-%d)", i): value}}},
		})),
	}}
	return p
}

func raw(v any) runtime.RawExtension {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and strings always marshal
	}
	return runtime.RawExtension{Raw: text}
}

func pointer[T any](v T) *T { return &v }

// makeAll makes all policies, and returns when all of them are enforced.
func (b *bench) makeAll(ctx context.Context) error {
	var group sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		group.Go(func() {
			for i := worker; i < b.n; i += len(errs) {
				p := policy(i, "?*")
				if err := b.client.Create(ctx, p); err != nil {
					errs[worker] = err
					return
				}
				b.want(p)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.await(ctx, v1alpha1.ConditionEnforced)
}

// changeOne changes a policy, and returns when it is enforced as it is.
func (b *bench) changeOne(ctx context.Context) error {
	p := policy(b.n/2, "other*")
	have := &v1alpha1.ClusterPolicy{}
	if err := b.client.Get(ctx, client.ObjectKeyFromObject(p), have); err != nil {
		return err
	}
	have.Spec = p.Spec
	if err := b.client.Update(ctx, have); err != nil {
		return err
	}
	b.want(have)
	return b.await(ctx, v1alpha1.ConditionEnforced)
}

// want notes the generation of a policy that its status is to be about.
func (b *bench) want(p *v1alpha1.ClusterPolicy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wants[p.Name] = p.Generation
}

// follow keeps what is told of policies, by a watch: asking again and again for all of
// it would cost more than what is measured.
func (b *bench) follow(ctx context.Context) error {
	b.wants, b.told = map[string]int64{}, map[string]v1alpha1.PolicyTranslationStatus{}
	changes, err := b.client.Watch(ctx, &v1alpha1.PolicyTranslationList{})
	if err != nil {
		return err
	}
	go func() {
		for change := range changes.ResultChan() {
			if t, ok := change.Object.(*v1alpha1.PolicyTranslation); ok {
				b.mu.Lock()
				b.told[t.Spec.Source.Name] = t.Status
				b.mu.Unlock()
			}
		}
	}()
	return nil
}

// having is of how many policies a condition is true, as they are now.
func (b *bench) having(condition string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for name, generation := range b.wants {
		if s := b.told[name]; s.SourceGeneration == generation && meta.IsStatusConditionTrue(s.Conditions, condition) {
			n++
		}
	}
	return n
}

// await returns when a condition of every policy is true.
func (b *bench) await(ctx context.Context, condition string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		n := b.having(condition)
		if n == b.n {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("of %d policies %d are %s: %w", b.n, n, condition, err)
		}
	}
}

// A count is of requests that write.
type count struct{ natives, statuses, others int }

func (c count) minus(d count) count {
	return count{c.natives - d.natives, c.statuses - d.statuses, c.others - d.others}
}

// writes counts the controller's, by the audit log.
func (b *bench) writes() (count, error) {
	var c count
	f, err := os.Open(b.plane.AuditLog())
	if err != nil {
		return c, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Verb, UserAgent, RequestURI string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return c, err
		}
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		switch {
		case e.UserAgent != "kvap-controller" || reads || strings.Contains(e.RequestURI, "dryRun="):
		case strings.Contains(e.RequestURI, "/validatingadmissionpolic"):
			c.natives++
		case strings.Contains(e.RequestURI, "/policytranslations"):
			c.statuses++
		default:
			c.others++
		}
	}
	return c, lines.Err()
}

// memoryUse is what a process holds, in MiB; zero where the system does not say.
type memoryUse struct {
	now, peak int
	program   int // of what it holds now: pages of its file, which the system may take back
}

func memoryOf(pid int) (m memoryUse) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "VmRSS:":
			m.now = kib >> 10
		case "VmHWM:":
			m.peak = kib >> 10
		case "RssFile:":
			m.program = kib >> 10
		}
	}
	return m
}
