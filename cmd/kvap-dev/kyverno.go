package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/standin"
	"github.com/kvap/kvap/vap"
)

// A standIn stands in for Kyverno on the control plane of dev, so that policies can
// be moved away from it and back: the reference interpreter, behind webhooks with the
// names and labels of Kyverno's. It says of policies that they are ready, and of itself
// that it is alive. It makes no reports, and in the background it only deletes what a rule
// has generated, when that goes.
type standIn struct {
	standin.Kyverno
	world   *world.World
	server  *webhook.Server
	certs   *certs.Authority
	taken   string // the policies that it judges by, as text
	celOnly bool   // as 1.20, which carries out none of kyverno.io
	down    bool   // it was scaled down
	hangs   atomic.Bool
}

// startKyverno serves until the context ends.
func startKyverno(ctx context.Context, config *rest.Config, celOnly bool, log logr.Logger) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	k := &standIn{celOnly: celOnly}
	k.Client, k.ExcludeNamespaces = c, append(vap.DefaultExcludedNamespaces(), standin.Namespace)
	if k.world, err = world.New(config, world.Options{}); err != nil {
		return err
	}
	if err := k.world.Run(ctx); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k.certs = certs.NewAuthority(certs.Options{Store: &certs.Memory{}, Names: certs.Names{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}})
	k.URL, k.Bundle = "https://"+l.Addr().String(), k.certs.Bundle
	if err := k.certs.Renew(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	k.server = webhook.New(webhook.Options{
		World: k.world, DryRun: world.DryRun, ExcludeGroups: []string{"system:nodes"}, Certificate: k.certs.Certificate,
		Roles: func(_ context.Context, u webhook.User, namespace string) ([]string, []string, error) {
			roles, clusterRoles := k.world.Roles(u.Name, u.Groups, namespace)
			return roles, clusterRoles, nil
		},
	})
	go k.serve(ctx, l)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: standin.Namespace}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	version := "v1.19.0"
	if celOnly {
		version = "v1.20.0"
	}
	if err := c.Create(ctx, standin.Deployment(version)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	go k.follow(ctx, log.WithName("kyverno"))
	return nil
}

// serve answers the API server, about resources and about policies.
func (k *standIn) serve(ctx context.Context, l net.Listener) {
	mux := http.NewServeMux()
	mux.Handle("/", k.server.Handler())
	mux.HandleFunc(standin.PolicyPath, standin.JudgePolicy)
	hanging := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if k.hangs.Load() {
			<-r.Context().Done()
			return
		}
		mux.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: hanging, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: k.certs.Certificate},
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	<-ctx.Done()
	_ = server.Close()
}

// follow takes up policies as they come and go.
func (k *standIn) follow(ctx context.Context, log logr.Logger) {
	for tick := time.NewTicker(250 * time.Millisecond); ctx.Err() == nil; {
		if err := k.pass(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			log.Error(err, "the stand-in for Kyverno")
		}
		select {
		case <-ctx.Done():
			tick.Stop()
		case <-tick.C:
		}
	}
}

// pass judges by what there is, then has the API server ask, and then says so.
// Scaled down, it ends, and with it what keeps its policies from being written.
func (k *standIn) pass(ctx context.Context) error {
	now, err := standin.ConditionOf(ctx, k.Client)
	k.hangs.Store(now.Hangs)
	switch {
	case err != nil || now.Down && k.down:
		return err
	case now.Down:
		k.down, k.taken = true, ""
		return errors.Join(k.AskNoMore(ctx), standin.Open(ctx, k.Client))
	}
	k.down = false
	if err := k.AskAboutPolicies(ctx); err != nil {
		return err
	}
	sources, err := k.sources(ctx)
	if err != nil {
		return err
	}
	var policies []*unstructured.Unstructured
	for i := range sources {
		policies = append(policies, &sources[i])
	}
	if err := k.RemoveDownstream(ctx, policies); err != nil {
		return err
	}
	set, text, err := readAsKyverno(sources)
	if err != nil {
		return err
	}
	if text != k.taken {
		var on []*policy.Policy
		for _, p := range set.Policies {
			on = append(on, p.Policy)
		}
		k.server.Set(set)
		if err := k.Ask(ctx, on, k.world.Served().All()); err != nil { // the API server, about what they are about
			return err
		}
		k.taken = text
	}
	for i := range sources {
		if err := k.SayReady(ctx, &sources[i]); err != nil {
			return err
		}
	}
	return k.SayAlive(ctx)
}

// sources are Kyverno's policies and exceptions. A kind whose definition was removed
// has none.
func (k *standIn) sources(ctx context.Context) (out []unstructured.Unstructured, err error) {
	for _, kind := range []apischema.GroupVersionKind{
		{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, {Group: "kyverno.io", Version: "v1", Kind: "Policy"},
		{Group: "policies.kyverno.io", Version: "v1", Kind: "ValidatingPolicy"}, {Group: "kyverno.io", Version: "v2", Kind: "PolicyException"},
	} {
		if k.celOnly && kind.Group == "kyverno.io" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := k.Client.List(ctx, list)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// readAsKyverno are the policies that are on, as one who knows nothing of kvap reads them.
func readAsKyverno(sources []unstructured.Unstructured) (set webhook.PolicySet, text string, err error) {
	var all strings.Builder
	for _, o := range sources {
		data, err := json.Marshal(standin.Plain(&o).Object)
		if err != nil {
			return set, "", err
		}
		f, _ := policy.Parse(o.GetName(), data)
		for _, p := range f.Policies {
			if p.Admission {
				set.Policies = append(set.Policies, webhook.Policy{Policy: p})
			}
		}
		set.Exceptions = append(set.Exceptions, f.Exceptions...)
		all.Write(append(data, '\n'))
	}
	return set, all.String(), nil
}
