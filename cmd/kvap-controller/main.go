package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/incluster"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
)

// controllerFlags are the flags as the user gave them.
type controllerFlags struct {
	kubeconfig, context string
	release, reports    string
	exclude, exceptions []string
	results             []string // of reports
	memoryLimit         int64
	verbose             bool
	incluster.Options
}

func main() {
	os.Exit(command.Run(newRoot(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func newRoot() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "kvap-controller",
		Short: "Keep a cluster's native policies in step with its policies",
		Long: `kvap-controller watches ClusterPolicies, Policies, ValidatingPolicies and
PolicyExceptions of Kyverno, where these are installed, and the policies of kvap's
own kinds, and keeps the ValidatingAdmissionPolicies that they are translated to in
the cluster. What became of each policy is in its PolicyTranslation
(kubectl get ptrans).

A policy says by the annotation or label kvap.dev/mode what is done with it: shadow
has it judged with the action Audit, so that nothing changes for users; enforce has
kvap enforce it; off leaves it alone. --mode is for those that say nothing, but for
kvap's own kinds, which are enforced.

It runs in the cluster by its service account, or elsewhere with --kubeconfig. The
definitions in deploy/crds must be installed. It logs JSON on standard error.

Exit codes: 0 it was told to end, 2 usage, 3 a runtime error.`,
		Example: `  kvap-controller --kubeconfig ~/.kube/config
  kvap-controller --mode enforce --leader-elect --metrics-bind-address :8080`,
		Args: command.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error { return runController(cmd, f) },
	}
	flags := command.InOrder(cmd)
	f.add(flags)
	return cmd
}

func (f *controllerFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "the cluster; without it that of KUBECONFIG, ~/.kube/config or the Pod")
	fs.StringVar(&f.context, "context", "", "the context of the kubeconfig file")
	fs.StringVarP(&f.Controller.Namespace, "namespace", "n", "", "kvap's own namespace, for its lease; that of the context or the Pod by default")
	command.AddChoice(fs, &f.Controller.Mode, "mode", "shadow", "what to do with policies that do not say: shadow, enforce or off", controller.Modes()...)
	fs.StringVar(&f.release, "kubernetes-version", "", "the oldest Kubernetes release that must take the objects; the API server's by default")
	command.AddChoice(fs, &f.Controller.Mutations, "mutations", controller.MutationsAuto, "who runs rules that mutate: auto, the API server where it serves MutatingAdmissionPolicies and a rule may run twice; native, the same, and an error where it does not; or webhook", controller.MutationsAuto, controller.MutationsNative, controller.MutationsWebhook)
	fs.StringSliceVar(&f.exclude, "exclude-namespaces", vap.DefaultExcludedNamespaces(), "what bindings leave out; none for none")
	fs.StringSliceVar(&f.exceptions, "exception-namespaces", []string{"none"}, "the namespaces whose PolicyExceptions count; none for none, * for all")
	fs.IntVar(&f.Controller.NamespaceLimit, "namespace-limit", 100, "how many native rules, and objects, the Policies of one namespace have at most; 0 for no limit")
	fs.BoolVar(&f.Controller.LeaderElection, "leader-elect", false, "of several replicas, only one writes")
	fs.StringVar(&f.Controller.MetricsAddress, "metrics-bind-address", "0", "where metrics are served, for instance :8080; 0 for nowhere")
	fs.StringVar(&f.Controller.HealthAddress, "health-probe-bind-address", "0", "where /healthz and /readyz are served; 0 for nowhere")
	fs.StringVar(&f.Controller.PprofAddress, "pprof-bind-address", "0", "where profiles are served, for instance 127.0.0.1:6060; 0 for nowhere")
	fs.StringVar(&f.Webhook.Address, "webhook-address", "0", "where the webhook listens that serves rules without a native form, for instance :9443; 0 for nowhere")
	fs.StringVar(&f.Webhook.Service, "webhook-service", "", "the service of the webhook, as name or namespace/name; port 443")
	fs.StringVar(&f.Webhook.URL, "webhook-url", "", "where the API server finds the webhook, in place of a service: https://HOST:PORT")
	fs.StringVar(&f.Webhook.Certificates, "webhook-certs", "", "a folder with tls.crt, tls.key and ca.crt, as cert-manager writes it, in place of kvap's own authority")
	fs.DurationVar(&f.Webhook.Validity, "webhook-certs-validity", 365*24*time.Hour, "how long kvap's own authority is valid; certificates are for a quarter of it, and all are renewed in time")
	fs.StringVar(&f.Webhook.Owner, "webhook-owner", "", "a ClusterRole: when it is deleted, as kvap is uninstalled, the webhook configurations go with it")
	fs.StringVar(&f.Webhook.ClientCA, "webhook-client-ca", "", "a file with who signs the client certificate of the API server; who shows none is not answered. None is asked for by default")
	fs.StringSliceVar(&f.Webhook.ClientNames, "webhook-client-names", nil, "the names that such a certificate may have; any by default")
	command.AddChoice(fs, (*string)(&f.Events.Verdicts), "events", "violations", "which verdicts of rules become Events: violations, with what could not be judged or carried out; all, what passes, is skipped by an exception or was changed or made, too; or none", input.Words(incluster.AllVerdictEvents()...)...)
	fs.StringSliceVar(&f.Events.Omit, "omit-events", nil, "Events that are not made, by their reasons or by the part that would make them: of "+strings.Join(incluster.Omissible(), ", "))
	fs.StringVar(&f.Events.AuditLog, "audit-log", "", "a file that an API server writes with --audit-log-path, for Events about what native policies decide. It is for a controller that runs where the log is, as on control plane nodes, and each reads the log of one API server")
	command.AddChoice(fs, (*string)(&f.Webhook.Policies), "validate-policies", "auto", "policies that the webhook refuses when they are written wrongly: own for the kinds of kvap.dev, all for Kyverno's too, none, or auto for all where Kyverno does not do it", input.Words(incluster.AllPolicyChecks()...)...)
	fs.StringSliceVar(&f.Webhook.ExcludeGroups, "webhook-exclude-groups", []string{"system:nodes"}, "groups whose users the webhook does not judge")
	fs.StringSliceVar(&f.Webhook.Services, "apicall-services", nil, "URLs below which rules may ask services; none by default")
	fs.StringSliceVar(&f.Webhook.Registries, "image-registries", nil, "registries, perhaps with a repository, that rules may ask for images; none by default")
	fs.StringVar(&f.Webhook.TrustFile, "sigstore-trusted-root", "", command.TrustedRootHelp+", read again when it changes; that of the public Sigstore, as it was when kvap was built, by default")
	fs.StringSliceVar(&f.Webhook.TrustDigests, "sigstore-trusted-root-digest", nil, "the hash that the trusted root must have, as sha256:…; of several, one of them. Any file is taken by default")
	fs.StringVar(&f.Webhook.TUFMirror, "sigstore-tuf-mirror", "", "a TUF repository that has the trusted root in place of a file, as https://tuf-repo-cdn.sigstore.dev; it is asked every hour")
	fs.StringVar(&f.Webhook.TUFRoot, "sigstore-tuf-root", "", "a file with the root.json that the TUF repository is held to")
	fs.StringVar(&f.Webhook.TUFCache, "sigstore-tuf-cache", "", "a folder for what the TUF repository answered, which counts while it does not answer")
	fs.BoolVar(&f.Webhook.BindRepository, "bind-repository", false, "signatures and attestations of an image count only if they name the repository that it is in")
	fs.BoolVar(&f.Webhook.LocalRegistries, "allow-local-registries", false, "let rules that verify images ask registries at addresses of this machine and its link")
	command.AddChoice(fs, &f.reports, "reports", "none", "scan the objects that are there, and report what violates: wgpolicyk8s, openreports or none", "wgpolicyk8s", "openreports", "none")
	fs.StringSliceVar(&f.results, "report-results", []string{"error", "warn"}, "the results that reports list besides fail, and not only count: of error, warn, pass and skip; none for none. With pass or skip there is a report about each object that a rule is about")
	command.AddChoice(fs, (*string)(&f.Cleanup), "cleanup", "auto", "run CleanupPolicies, and delete what the label cleanup.kyverno.io/ttl ends: all, policies, none, or auto for all with --mode enforce and else policies", input.Words(incluster.Cleanings()...)...)
	fs.IntVar(&f.CleanupLimit, "cleanup-limit", 0, "how many objects one run of a cleanup policy deletes at most; 0 for no limit")
	fs.Int64Var(&f.memoryLimit, "memory-limit", 0, "the bytes of memory that the process may have: garbage is collected so that it stays below 90 % of them; 0 for no limit, and GOMEMLIMIT counts before it")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
}

// garbagePercent is how much garbage there may be beside what is held: the controller
// holds much and computes little, so that collecting costs next to nothing.
const garbagePercent = 40

func runController(cmd *cobra.Command, f controllerFlags) error {
	var err error
	if f.Controller, err = f.options(); err != nil {
		return err
	}
	if err := f.Webhook.Check(); err != nil {
		return err
	}
	if err := f.Events.Check(); err != nil {
		return err
	}
	config, namespace, err := cluster.Configured(f.kubeconfig, clientcmd.ConfigOverrides{CurrentContext: f.context})
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if config == nil {
		return cluster.NotConfigured()
	}
	f.Controller.Namespace = cmp.Or(f.Controller.Namespace, namespace)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if f.memoryLimit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(f.memoryLimit / 10 * 9) // what is not of Go needs memory too
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	log := command.LogTo(cmd.ErrOrStderr(), f.verbose)
	return exit.Runtime(incluster.Run(ctx, config, f.Options, log))
}

// options are what the flags mean.
func (f controllerFlags) options() (o controller.Options, err error) {
	o = f.Controller
	o.Version = command.Version()
	o.Reports = map[string]string{"wgpolicyk8s": report.PolicyReports, "openreports": report.OpenReports}[f.reports]
	if o.ReportResults, err = reportResults(f.results); err != nil {
		return o, err
	}
	if o.ExcludeNamespaces, err = command.ExcludedNamespaces(f.exclude); err != nil {
		return o, err
	}
	if o.ExceptionNamespaces, err = command.ExceptionNamespaces(f.exceptions); err != nil {
		return o, err
	}
	if f.release != "" {
		o.Release, err = input.Release(f.release)
	}
	return o, err
}

// reportResults are those of --report-results; "none" stands alone.
func reportResults(given []string) ([]string, error) {
	if slices.Equal(given, []string{"none"}) {
		return nil, nil
	}
	for _, result := range given {
		if !slices.Contains(report.OptionalResults(), result) {
			return nil, fmt.Errorf("--report-results %s: want some of %s, or none", result, strings.Join(report.OptionalResults(), ", "))
		}
	}
	return given, nil
}
