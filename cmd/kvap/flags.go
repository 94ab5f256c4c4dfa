package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/proven"
)

// addRecursive accepts -R, for those whose fingers are used to it: folders are read
// with all that is in them anyway.
func addRecursive(fs *pflag.FlagSet) {
	fs.BoolP("recursive", "R", true, "accepted, and always so: folders are read with all that is in them")
}

// inOrder are the flags of a command, which help lists in the order in which they are added.
func inOrder(cmd *cobra.Command) *pflag.FlagSet {
	cmd.Flags().SortFlags = false
	return cmd.Flags()
}

// What a flag is annotated with: the words that shells offer for it, and that it takes no others.
const (
	offered  = "offered"
	noOthers = "no others"
)

// offer has shells offer words for a flag.
func offer(fs *pflag.FlagSet, name string, words ...string) {
	_ = fs.SetAnnotation(name, offered, words) // it fails only for a flag that is not there
}

// addChoice adds a flag that is one of some words, or what it is by default.
func addChoice(fs *pflag.FlagSet, p *string, name, value, usage string, words ...string) {
	short := ""
	if name == "output" {
		short = "o"
	}
	fs.StringVarP(p, name, short, value, usage)
	offer(fs, name, words...)
	_ = fs.SetAnnotation(name, noOthers, nil) // as in offer
}

// checkChoices refuses words that a flag does not take.
func checkChoices(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		if _, chosen := f.Annotations[noOthers]; chosen && err == nil && f.Value.String() != f.DefValue {
			_, err = input.OneOf(name, f.Value.String(), f.Annotations[offered]...)
		}
	})
	return err
}

// offerWords makes shells offer the words of a command's flags, and of those below it.
func offerWords(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := f.Annotations[offered]; words != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // as in offer
		}
	})
	for _, c := range cmd.Commands() {
		offerWords(c)
	}
}

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
	offer(fs, "kubernetes-version", words["kubernetes-version"]...)
	fs.StringSliceVar(&f.CRDs, "crds", nil, "files and folders of CustomResourceDefinitions, for the types of custom kinds")
	addChoice(fs, &f.Pack, "pack", d.Pack, "what shares an object: rule, policy, or match (up to Kubernetes 1.36, for many policies on one kind)", words["pack"]...)
	addChoice(fs, &f.Params, "params", d.Params, "what holds params: configmap or kvap", words["params"]...)
	addChoice(fs, &f.Existing, "existing-violations", d.Existing, "what an update of a violating object does: allow (as Kyverno) or deny", words["existing-violations"]...)
	addChoice(fs, &f.Operations, "operations", d.Operations, "what rules that list no operations are judged on: as-written (all, as Kyverno) or create-update", words["operations"]...)
	addChoice(fs, &f.Action, "action", "", "one action for all rules, whatever they say: Enforce, Audit or Warn; or Shadow, which audits what they will find once they are enforced", words["action"]...)
	fs.BoolVar(&f.AnyGroup, "any-group", false, "match a custom kind that a rule names without its group in every group and version, not in those that projects publish")
	addChoice(fs, &f.Guard, "guard", d.Guard, "whether objects stop good requests at a match condition: auto or never", words["guard"]...)
}

// addMutations adds the choice of what becomes of mutate rules.
func addMutations(fs *pflag.FlagSet, f *convert.Flags) {
	addChoice(fs, &f.Mutations, "mutations", convert.MutationsAuto,
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

// untilTold is the context of a command, until the user or the system tells it to end.
func untilTold(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// registryFlags say what registries would answer, where none is asked.
type registryFlags struct{ registryDir, trustedRoot string }

const trustedRootHelp = "a file with whom keyless signatures of images are trusted by (trusted_root.json)"

func (f *registryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.registryDir, "registry-dir", "", "an OCI layout folder, or a folder of them as HOST/REPOSITORY, that answers in the place of registries: images, signatures, attestations")
	fs.StringVar(&f.trustedRoot, "sigstore-trusted-root", "", trustedRootHelp+"; that of the public Sigstore, as it was when kvap was built, by default")
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
		return nil, exit.Usage(fmt.Errorf("%w; correct the kubeconfig file (--kubeconfig, else KUBECONFIG), or name another context", err))
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
		return exit.Runtime(fmt.Errorf("no cluster is configured: KUBECONFIG is %s, which is not there, or names none; correct it, or name a kubeconfig file with --kubeconfig", at))
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
