package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
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

// connect asks the API server what it serves, so that it is known to answer.
func (f clusterFlags) connect() (*cluster.Connection, error) {
	config, namespace, err := cluster.Configured(f.kubeconfig, f.context, f.namespace)
	if err != nil {
		return nil, exit.Usage(err)
	}
	if config == nil {
		return nil, noCluster()
	}
	config.Timeout, config.QPS, config.UserAgent = f.timeout, -1, "kvap-cli"
	config.WarningHandler = rest.NoWarnings{}
	c, err := cluster.Connect(config, namespace)
	if err != nil {
		return nil, exit.Runtime(fmt.Errorf("no API server answers at %s: %w; check --kubeconfig and --context, and that the cluster is up", config.Host, err))
	}
	return c, nil
}

// noCluster tells that no configuration names a cluster.
func noCluster() error {
	if at := os.Getenv("KUBECONFIG"); at != "" {
		return exit.Runtime(fmt.Errorf("no cluster is configured: KUBECONFIG is %s, which is not there, or names none", at))
	}
	return exit.Runtime(errors.New("no cluster is configured; name a kubeconfig file with --kubeconfig or in KUBECONFIG"))
}

// excepts tells whether exceptions of a namespace count, by the flag.
func excepts(given []string) func(namespace string) bool {
	trusted, _ := exceptionNamespaces(given) // checked
	return func(namespace string) bool {
		return slices.Contains(trusted, "*") || slices.Contains(trusted, namespace)
	}
}
