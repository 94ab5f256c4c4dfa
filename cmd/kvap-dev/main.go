package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
)

// devFlags are the flags as the user gave them.
type devFlags struct {
	files   []string
	dir     string
	mode    string
	crds    []string
	kyverno string
	verbose bool
	// registries are those that rules may ask for images.
	registries []string
}

func main() {
	os.Exit(command.Run(newRoot(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func newRoot() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "kvap-dev [PATH...]",
		Short: "Run a control plane on this machine, with the controller and your policies",
		Long: `kvap-dev starts etcd, kube-apiserver and kube-controller-manager on loopback, defines
kvap's kinds and stand-ins for Kyverno's, runs the controller in the same process and
applies the policies of the paths. It prints the path of a kubeconfig file and what to
try with it. Ctrl-C ends all of it and leaves nothing behind but the folder of --dir,
with the data of etcd, logs and kubeconfig files in it. There are no nodes: Pods stay
Pending, but admission is as in any cluster.

With --kyverno something stands in for Kyverno: kvap's reference interpreter, behind
webhooks like Kyverno's. It enforces the policies, and kvap nothing until it is told to,
so that kvap migrate can be tried from plan to finish, and back. It makes no reports, and
in the background (generate, mutate of existing objects) it only deletes what a rule has
generated, when that goes.

With --kyverno=real it is Kyverno: its admission controller and its background
controller, built from their Go module the first time, which takes some twenty minutes
on two cores; KVAP_KYVERNO names a folder of binaries to take instead.

With --kyverno=1.20 it stands in for that version, to which the cluster was upgraded with
the policies in it: it carries out no policy and no exception of kyverno.io, and the API
server denies what makes or changes one.

The servers are built from their Go modules the first time, which needs Go and takes
five to eight minutes on two cores. KVAP_KUBERNETES names another version of
Kubernetes, as 1.37.2, and KVAP_CONTROLPLANE a folder of binaries to take instead.

Exit codes: 0 it was told to end, 2 usage or unreadable input, 3 a runtime error,
4 the API server refused some of the policies.`,
		Example: `  kvap-dev policies/
  kvap-dev policy.yaml --mode shadow
  kvap-dev policies/ --kyverno
  kvap-dev policies/ --kyverno=real
  kvap-dev policies/ --kyverno=1.20`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.kyverno != noKyverno && !cmd.Flags().Changed("mode") {
				f.mode = "off"
			}
			return runDev(cmd, append(args, f.files...), f)
		},
	}
	flags := command.InOrder(cmd)
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder of policies, as if it were a PATH")
	command.AddChoice(flags, &f.mode, "mode", "enforce", "what to do with policies that do not say: shadow, enforce or off; with --kyverno, off by default", controller.Modes()...)
	command.AddChoice(flags, &f.kyverno, "kyverno", noKyverno, "have Kyverno enforce the policies: stand-in, which --kyverno alone means, or real; 1.20 stands in for that version, which enforces none", kyvernos()...)
	flags.Lookup("kyverno").NoOptDefVal = kyvernoStandIn
	flags.StringSliceVar(&f.crds, "crds", nil, "files and folders of CustomResourceDefinitions to install first")
	flags.StringSliceVar(&f.registries, "image-registries", nil, "registries, perhaps with a repository, that rules may ask for images; none by default")
	flags.StringVar(&f.dir, "dir", "", "keep data, logs and kubeconfig files in this folder, which stays; a temporary one, which goes, by default")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the controller does")
	command.AddRecursive(flags)
	return cmd
}

func runDev(cmd *cobra.Command, paths []string, f devFlags) error {
	objects, err := readPolicies(paths, cmd.InOrStdin(), cmd.ErrOrStderr())
	if err != nil {
		return exit.Usage(err)
	}
	definitions, err := readDefinitions(f.crds)
	if err != nil {
		return exit.Usage(err)
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	logs := io.Discard // whoever tries policies has the terminal for them
	if f.verbose {
		logs = cmd.ErrOrStderr()
	}
	err = start(ctx, options{
		Dir: f.dir, Controller: controller.Options{Mode: f.mode, ExceptionNamespaces: []string{"*"}, Version: command.Version()}, Kyverno: f.kyverno, Registries: f.registries, Definitions: definitions, Objects: objects,
		Out: cmd.OutOrStdout(), Errs: cmd.ErrOrStderr(), Log: command.LogTo(logs, false),
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to end
	}
	return exit.Runtime(err)
}
