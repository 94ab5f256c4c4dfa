package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/evaluate"
	"github.com/kvap/kvap/internal/incluster"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/proven"
)

// addRecursive accepts -R, for those whose fingers are used to it: folders are read
// with all that is in them anyway.
func addRecursive(fs *pflag.FlagSet) {
	fs.BoolP("recursive", "R", true, "accepted, and always so: folders are read with all that is in them")
}

// completeWords makes shells offer the words that flags may be.
func completeWords(cmd *cobra.Command) {
	words := convert.FlagWords()
	maps.Copy(words, map[string][]string{
		"reports": reportChoices(), "cleanup": input.Words(incluster.Cleanings()...), "report-format": reportFormats(),
		"fail-on": evaluate.FailOns(), "operation": {"CREATE", "UPDATE", "DELETE"},
	})
	for name, list := range words {
		if cmd.Flags().Lookup(name) != nil {
			// It fails only for a flag that is not there, or done twice.
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// completeOutput makes shells offer the formats of -o, and folders where it takes one.
func completeOutput(cmd *cobra.Command, folders bool, formats ...string) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if folders {
		directive = cobra.ShellCompDirectiveDefault
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, directive)) // as in completeWords
}

// addChoices adds the choices of translation, which mean the same for each verb.
func addChoices(fs *pflag.FlagSet, f *convert.Flags) {
	fs.StringVar(&f.Release, "kubernetes-version", convert.DefaultFlags().Release, "the oldest Kubernetes release that must take the objects")
	addSharedChoices(fs, f)
}

// addSharedChoices adds those other than the release.
func addSharedChoices(fs *pflag.FlagSet, f *convert.Flags) {
	d := convert.DefaultFlags()
	fs.StringSliceVar(&f.CRDs, "crds", nil, "files and folders of CustomResourceDefinitions, for the types of custom kinds")
	fs.StringVar(&f.Pack, "pack", d.Pack, "what shares an object: rule, policy or match")
	fs.StringVar(&f.Params, "params", d.Params, "what holds params: configmap or kvap")
	fs.StringVar(&f.Existing, "existing-violations", d.Existing, "what an update of a violating object does: allow (as Kyverno) or deny")
	fs.StringVar(&f.Operations, "operations", d.Operations, "what rules that list no operations are judged on: as-written (all, as Kyverno) or create-update")
	fs.StringVar(&f.Action, "action", "", "one action for all rules, whatever they say: Enforce, Audit or Warn; or Shadow, which audits what they will find once they are enforced")
	fs.StringVar(&f.Guard, "guard", d.Guard, "whether objects stop good requests at a match condition: auto or never")
}

// addMutations adds the choice of what becomes of mutate rules.
func addMutations(fs *pflag.FlagSet, f *convert.Flags) {
	fs.StringVar(&f.Mutations, "mutations", convert.MutationsAuto,
		"what becomes of mutate rules and MutatingPolicies: auto (native for Kubernetes 1.36 and newer), native (from 1.34 on, in v1beta1) or webhook")
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
