package cluster

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kvap/kvap/internal/exit"
)

// Configured is the configuration that a kubeconfig file, KUBECONFIG, ~/.kube/config or
// the Pod has for a cluster, and the namespace there; nil where none of them names one.
func Configured(kubeconfig string, overrides clientcmd.ConfigOverrides) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
	config, err := from.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := from.Namespace()
	return config, namespace, err
}

// NotConfigured tells that no configuration names a cluster.
func NotConfigured() error {
	if at := os.Getenv("KUBECONFIG"); at != "" {
		return exit.Runtime(fmt.Errorf("no cluster is configured: KUBECONFIG is %s, which is not there, or names none; correct it, or name a kubeconfig file with --kubeconfig", at))
	}
	return exit.Runtime(errors.New("no cluster is configured; name a kubeconfig file with --kubeconfig or in KUBECONFIG"))
}
