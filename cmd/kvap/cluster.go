package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags say which cluster is meant, and where in it.
type clusterFlags struct {
	kubeconfig string
	context    string
	namespace  string
	timeout    time.Duration
}

func (f *clusterFlags) add(fs *pflag.FlagSet) {
	f.addConnection(fs)
	fs.StringVarP(&f.namespace, "namespace", "n", "", "the namespace of namespaced policies; else that of the context")
}

// addConnection adds what says which cluster is meant.
func (f *clusterFlags) addConnection(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file; else KUBECONFIG, else ~/.kube/config")
	fs.StringVar(&f.context, "context", "", "the context of the kubeconfig file; else its current one")
	fs.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long a request to the API server may take")
}

// A connection is to an API server. Its mapper knows what was served when it began.
type connection struct {
	config    *rest.Config
	namespace string
	dynamic   dynamic.Interface
	mapper    meta.RESTMapper
	groups    []*restmapper.APIGroupResources // that are served
	release   string                          // for instance 1.36
}

// connect asks the API server what it serves, so that it is known to answer.
func (f clusterFlags) connect() (*connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loaded.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, runtimeError(errors.New("no cluster is configured; name a kubeconfig file with --kubeconfig or in KUBECONFIG"))
	case err != nil:
		return nil, &exit{exitUsage, err}
	}
	config.Timeout, config.QPS, config.UserAgent = f.timeout, -1, "kvap-cli"
	config.WarningHandler = rest.NoWarnings{}
	c := &connection{config: config}
	if c.namespace, _, err = loaded.Namespace(); err != nil {
		return nil, &exit{exitUsage, err}
	}
	if err := c.discover(); err != nil {
		return nil, runtimeError(fmt.Errorf("no API server answers at %s: %w; check --kubeconfig and --context, and that the cluster is up", config.Host, err))
	}
	return c, nil
}

func (c *connection) discover() error {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(version.Major+"."+version.Minor, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("its version %s.%s is none", version.Major, version.Minor)
	}
	c.release = fmt.Sprintf("%d.%d", major, minor)
	if c.groups, err = restmapper.GetAPIGroupResources(client); err != nil {
		return err
	}
	c.mapper = restmapper.NewDiscoveryRESTMapper(c.groups)
	c.dynamic, err = dynamic.NewForConfig(c.config)
	return err
}

// serves is the resource of a kind in the first of the versions that is served.
func (c *connection) serves(group, kind string, versions ...string) (apischema.GroupVersionResource, bool) {
	for _, v := range versions {
		if m, err := c.mapper.RESTMapping(apischema.GroupKind{Group: group, Kind: kind}, v); err == nil {
			return m.Resource, true
		}
	}
	return apischema.GroupVersionResource{}, false
}

// pageSize is how many objects are asked for at once.
const pageSize = 500

// list reads all objects of a resource, in all namespaces, and the version of the
// list from which a watch can go on.
func (c *connection) list(ctx context.Context, resource apischema.GroupVersionResource) (all []unstructured.Unstructured, version string, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.dynamic.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", resource.GroupResource(), err)
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, page.GetResourceVersion(), nil
		}
	}
}

// leftOut is what could not be read, and why. What it is part of goes on without.
type leftOut struct{ left []error }

// leave notes what may not be read. Any other error ends the reading.
func (l *leftOut) leave(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // a CRD that has just gone
		l.left = append(l.left, err)
		return nil
	}
	return err
}

// err says what was not read, and what is incomplete for that.
func (l *leftOut) err(what string) error {
	if len(l.left) == 0 {
		return nil
	}
	return &exit{exitPartly, fmt.Errorf("some objects could not be read, so %s is incomplete: %w", what, errors.Join(l.left...))}
}
