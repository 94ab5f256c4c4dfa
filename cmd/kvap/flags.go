package main

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/proven"
)

// addChoices adds the choices of translation, which mean the same for each verb.
func addChoices(fs *pflag.FlagSet, f *convert.Flags) {
	fs.StringVar(&f.Release, "kubernetes-version", convert.DefaultFlags().Release, "the oldest Kubernetes release that must take the objects")
	addSharedChoices(fs, f)
}

// addPackedByMatch are they with what the controller does by default.
func addPackedByMatch(fs *pflag.FlagSet, f *convert.Flags) {
	addChoices(fs, f)
	fs.Lookup("pack").DefValue, f.Pack = "match", "match"
}

// addSharedChoices adds those other than the release.
func addSharedChoices(fs *pflag.FlagSet, f *convert.Flags) {
	d, words := convert.DefaultFlags(), convert.FlagWords()
	command.Offer(fs, "kubernetes-version", words["kubernetes-version"]...)
	fs.StringSliceVar(&f.CRDs, "crds", nil, "files and folders of CustomResourceDefinitions, for the types of custom kinds")
	command.AddChoice(fs, &f.Pack, "pack", d.Pack, "what shares an object: rule, policy, or match (up to Kubernetes 1.36, for many policies on one kind)", words["pack"]...)
	command.AddChoice(fs, &f.Params, "params", d.Params, "what holds params: configmap or kvap", words["params"]...)
	command.AddChoice(fs, &f.Existing, "existing-violations", d.Existing, "what an update of a violating object does: allow (as Kyverno) or deny", words["existing-violations"]...)
	command.AddChoice(fs, &f.Operations, "operations", d.Operations, "what rules that list no operations are judged on: as-written (all, as Kyverno) or create-update", words["operations"]...)
	command.AddChoice(fs, &f.Action, "action", "", "one action for all rules, whatever they say: Enforce, Audit or Warn; or Shadow, which audits what they will find once they are enforced", words["action"]...)
	fs.BoolVar(&f.AnyGroup, "any-group", false, "match a custom kind that a rule names without its group in every group and version, not in those that projects publish")
	command.AddChoice(fs, &f.Guard, "guard", d.Guard, "whether objects stop good requests at a match condition: auto or never", words["guard"]...)
}

// addMutations adds the choice of what becomes of mutate rules.
func addMutations(fs *pflag.FlagSet, f *convert.Flags) {
	command.AddChoice(fs, &f.Mutations, "mutations", convert.MutationsAuto,
		"what becomes of mutate rules and MutatingPolicies: auto (native for Kubernetes 1.36 and newer), native (from 1.34 on, in v1beta1) or webhook",
		convert.FlagWords()["mutations"]...)
}

// sourceFlags name policies.
type sourceFlags struct {
	files     []string
	kustomize string
}

// add adds the flags, with what they mean to the verb.
func (f *sourceFlags) add(fs *pflag.FlagSet, files, kustomize string) {
	fs.StringSliceVarP(&f.files, "filename", "f", nil, files)
	fs.StringVarP(&f.kustomize, "kustomize", "k", "", kustomize)
}

// fromFiles tells that policies are those of files, and no cluster is asked for them.
func (f sourceFlags) fromFiles() bool { return len(f.files) > 0 || f.kustomize != "" }

// registryFlags say what registries would answer, where none is asked.
type registryFlags struct{ registryDir, trustedRoot string }

func (f *registryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.registryDir, "registry-dir", "", "an OCI layout folder, or a folder of them as HOST/REPOSITORY, that answers in the place of registries: images, signatures, attestations")
	fs.StringVar(&f.trustedRoot, "sigstore-trusted-root", "", command.TrustedRootHelp+"; that of the public Sigstore, as it was when kvap was built, by default")
}

// registry is the folder; nil where there is none.
func (f *registryFlags) registry() (*proven.Recorded, error) {
	trust, err := proven.ReadTrust(f.trustedRoot)
	if err != nil || f.registryDir == "" {
		return nil, err
	}
	out, err := proven.Open(f.registryDir, trust)
	if err != nil {
		return nil, fmt.Errorf("--registry-dir: %w", err)
	}
	return out, nil
}

// clusterFlags say which cluster is meant, as whom it is asked, and where in it: kubectl's own flags.
type clusterFlags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// add adds them with the namespace of namespaced policies.
func (f *clusterFlags) add(fs *pflag.FlagSet) {
	f.addConnection(fs)
	clientcmd.FlagInfo{LongName: clientcmd.FlagNamespace, ShortName: "n", Description: "the namespace of namespaced policies; else that of the context"}.
		BindTransformingStringFlag(fs, &f.overrides.Context.Namespace, clientcmd.RemoveNamespacesPrefix)
}

// addConnection adds what says which cluster is meant. A flag of a verb's own by such a name stays what it is.
func (f *clusterFlags) addConnection(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "the kubeconfig file; else KUBECONFIG, else ~/.kube/config")
	name := func(long, value, what string) clientcmd.FlagInfo {
		if fs.Lookup(long) != nil {
			long = "" // which binds nothing
		}
		return clientcmd.FlagInfo{LongName: long, Default: value, Description: what}
	}
	clientcmd.BindOverrideFlags(&f.overrides, fs, clientcmd.ConfigOverrideFlags{
		CurrentContext: name(clientcmd.FlagContext, "", "the context of the kubeconfig file; else its current one"),
		ContextOverrideFlags: clientcmd.ContextOverrideFlags{
			ClusterName:  name(clientcmd.FlagClusterName, "", "the cluster of the kubeconfig file; else that of the context"),
			AuthInfoName: name(clientcmd.FlagAuthInfoName, "", "the user of the kubeconfig file; else that of the context"),
		},
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Impersonate:       name(clientcmd.FlagImpersonate, "", "the user to act as; you must be allowed to"),
			ImpersonateGroups: name(clientcmd.FlagImpersonateGroup, "", "a group to act as; may be given several times"),
		},
		Timeout: name(clientcmd.FlagTimeout, "30s", "how long a request to the API server may take, as 10s or 1m; 0 for no limit"),
	})
}

// connect asks the API server what it serves, so that it is known to answer.
func (f clusterFlags) connect() (*cluster.Connection, error) {
	config, namespace, err := cluster.Configured(f.kubeconfig, f.overrides)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%w; correct the kubeconfig file (--kubeconfig, else KUBECONFIG), or name another context", err))
	}
	if config == nil {
		return nil, cluster.NotConfigured()
	}
	config.QPS, config.UserAgent = -1, "kvap-cli"
	config.WarningHandler = rest.NoWarnings{}
	c, err := cluster.Connect(config, namespace)
	if err != nil {
		return nil, exit.Runtime(fmt.Errorf("no API server answers at %s: %w; check --kubeconfig and --context, and that the cluster is up", config.Host, err))
	}
	return c, nil
}

// excepts tells whether exceptions of a namespace count, by the flag.
func excepts(given []string) func(namespace string) bool {
	trusted, _ := command.ExceptionNamespaces(given) // checked
	return func(namespace string) bool {
		return slices.Contains(trusted, "*") || slices.Contains(trusted, namespace)
	}
}
