package cluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Configured is the configuration that a kubeconfig file, KUBECONFIG, ~/.kube/config or
// the Pod has for a cluster, and the namespace there; nil where none of them names one.
func Configured(kubeconfig, context, namespace string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	overrides.Context.Namespace = namespace
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := from.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	namespace, _, err = from.Namespace()
	return config, namespace, err
}
