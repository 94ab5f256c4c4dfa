//go:build e2e

package migrate

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/standin"
)

// A kyverno stands in for Kyverno, as far as handing over is about.
type kyverno struct {
	*cluster
	standin.Kyverno
	server  *httptest.Server
	webhook *webhook.Server
	world   *world.World
	seen    string                    // of the policies that were taken up
	known   map[string]*policy.Policy // by version: to read them is much work, and they seldom change
	asked   atomic.Int64              // how often it was asked about resources
}

// startKyverno runs it until the test ends, or stop is called.
func (c *cluster) startKyverno(t *testing.T) (k *kyverno, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k = &kyverno{cluster: c, known: map[string]*policy.Policy{}}
	builtin, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	if k.world, err = world.New(c.Config, world.Options{Live: true, Registries: []string{"*"}, LocalRegistries: true, Formats: judge.Formats(builtin)}); err != nil {
		t.Fatal(err)
	}
	if err := k.world.Run(ctx); err != nil {
		t.Fatal(err)
	}
	k.webhook = webhook.New(webhook.Options{World: k.world})
	mux := http.NewServeMux()
	answer := k.webhook.Handler()
	for _, path := range []string{"/validate/", "/mutate/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			k.asked.Add(1)
			answer.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc(standin.PolicyPath, standin.JudgePolicy)
	k.server = httptest.NewTLSServer(mux)
	k.Kyverno = standin.Kyverno{Client: c.Client, URL: k.server.URL, Bundle: k.bundle}
	if err := k.AskAboutPolicies(ctx); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			k.pass(ctx, t)
			k.said(ctx, t, k.SayAlive(ctx))
			time.Sleep(100 * time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		_ = k.AskNoMore(context.Background())
		k.server.Close()
	})
	t.Cleanup(stop)
	return k, stop
}

// sources are the policies that there are.
func (k *kyverno) sources(ctx context.Context) (out []*unstructured.Unstructured, err error) {
	for _, kind := range []string{"kyverno.io/v1 ClusterPolicy", "kyverno.io/v1 Policy", "policies.kyverno.io/v1 ValidatingPolicy"} {
		list, err := k.listed(ctx, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// listed are the objects of a kind, with its version before it.
func (k *kyverno) listed(ctx context.Context, kind string) (out []*unstructured.Unstructured, err error) {
	apiVersion, name, _ := strings.Cut(kind, " ")
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(name + "List")
	err = k.List(ctx, list)
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, err
}

// exceptions are those from policies of kyverno.io, of all namespaces.
func (k *kyverno) exceptions(ctx context.Context) ([]*policy.Exception, string, error) {
	list, err := k.listed(ctx, "kyverno.io/v2 PolicyException")
	if err != nil {
		return nil, "", err
	}
	var all bytes.Buffer
	for _, o := range list {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, "", err
		}
		all.WriteString("\n---\n")
		all.Write(data)
	}
	f, _ := policy.Parse("exceptions", all.Bytes())
	if len(f.Exceptions) != len(list) {
		return nil, "", fmt.Errorf("%d of %d exceptions could be read", len(f.Exceptions), len(list))
	}
	return f.Exceptions, all.String(), nil
}

// read is a policy as Kyverno sees it, which knows nothing of kvap's annotations. The
// version is the same as long as Kyverno sees the same.
func (k *kyverno) read(o *unstructured.Unstructured) (*policy.Policy, error) {
	version := fmt.Sprintf("%s %d", o.GetUID(), o.GetGeneration())
	if p := k.known[version]; p != nil {
		return p, nil
	}
	data, err := standin.Plain(o).MarshalJSON()
	if err != nil {
		return nil, err
	}
	f, found := policy.Parse(o.GetName(), data)
	if len(f.Policies) != 1 {
		return nil, fmt.Errorf("%s: %v", o.GetName(), found)
	}
	k.known[version] = f.Policies[0]
	return f.Policies[0], nil
}

// pass takes up what has changed: first it judges by the policies, then it is asked,
// then it says that they are ready.
func (k *kyverno) pass(ctx context.Context, t *testing.T) {
	sources, err := k.sources(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("Kyverno's stand-in: %v", err)
		}
		return
	}
	exceptions, seen, err := k.exceptions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("Kyverno's stand-in: %v", err)
		}
		return
	}
	k.said(ctx, t, k.RemoveDownstream(ctx, sources))
	set := webhook.PolicySet{Exceptions: exceptions}
	for _, o := range sources {
		p, err := k.read(o)
		if err != nil {
			t.Error(err)
			return
		}
		if p.Admission {
			set.Policies = append(set.Policies, webhook.Policy{Policy: p})
			seen += fmt.Sprintf(" %s %d", o.GetUID(), o.GetGeneration())
		}
	}
	if seen != k.seen {
		if !k.takeUp(ctx, t, set) {
			return
		}
		k.seen = seen
	}
	for _, o := range sources {
		k.said(ctx, t, k.SayReady(ctx, o))
	}
}

// takeUp judges by policies, and has the API server ask about what they are about.
func (k *kyverno) takeUp(ctx context.Context, t *testing.T, set webhook.PolicySet) bool {
	k.webhook.Set(set)
	var policies []*policy.Policy
	for _, p := range set.Policies {
		policies = append(policies, p.Policy)
	}
	var served registration.Table
	served = append(served, k.world.Served().All()...)
	err := k.Ask(ctx, policies, served)
	k.said(ctx, t, err)
	return err == nil
}

// said tells of what it could not say to the cluster.
func (k *kyverno) said(ctx context.Context, t *testing.T, err error) {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Errorf("Kyverno's stand-in: %v", err)
	}
}

func (k *kyverno) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
}
