package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/compare"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/record"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/recording"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// recordFlags are the flags of migrate record as the user gave them.
type recordFlags struct {
	sourceFlags
	dir    string
	sample float64
	size   string
	masked []string
	remove bool
	recording.Options
	clusterFlags
	allNamespaces bool
	quiet         bool
}

func newMigrateRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record [POLICY...] --output-dir DIR",
		Short: "Record admission requests of a cluster, for compare",
		Long: `Record has the API server send it the requests that the policies are about, and
keeps a sample of them in a folder, for kvap migrate compare --requests. It admits
everything. It runs until the time of --for is over, or Ctrl-C, and then takes its
ValidatingWebhookConfiguration, kvap-record, away again.

What it costs the cluster: one call of a webhook for each of these requests, with the
failure policy Ignore and a timeout of one second (--webhook-timeout). An answer waits
for nothing: what cannot be taken at once is dropped, and counted.

Values of Secrets are masked wherever they stand, and so are fields chosen by --mask,
such as spec.containers.env.value, ConfigMap/data.* or metadata.annotations[acme.io/key].
Managed fields and kubectl's copy of an object are left out. The files can be read by
nobody else, and never take more than --max-size: the oldest go.

The API server must reach the webhook: by --webhook-url https://HOST:PORT, where this
machine is called HOST, or by --webhook-service in a Pod. Without either, it listens on
loopback, which is enough for an API server on this machine, as that of kvap-dev.

If the process is killed, the configuration stays behind and does no harm: API servers
go on without an answer. Record again, or kvap migrate record --remove, takes it away.

Exit codes: 0 all were recorded, 2 usage, 3 a runtime error, 4 some were not.`,
		Example: `  kvap migrate record --output-dir recorded/ --for 1h --webhook-url https://10.0.0.5:9443 --webhook-address :9443
  kvap migrate record require-labels --output-dir recorded/ --sample 0.1 --mask spec.containers.env.value
  kvap migrate record --remove`,
		RunE: func(cmd *cobra.Command, args []string) error { return runRecord(cmd, args, f) },
	}
	fs := command.InOrder(cmd)
	fs.StringVar(&f.dir, "output-dir", "", "the folder for the recorded requests")
	f.sourceFlags.add(fs, "a file or folder of policies, in place of those of the cluster", "a kustomize folder to render and read, as if it were a file")
	fs.DurationVar(&f.For, "for", 0, "how long to record, for instance 1h; until Ctrl-C by default")
	fs.Float64Var(&f.sample, "sample", 1, "the share of requests that is kept, for instance 0.1")
	fs.StringVar(&f.size, "max-size", "256Mi", "what the files may take; 16Mi at least")
	fs.StringSliceVar(&f.masked, "mask", nil, "a field whose value is masked, as KIND/PATH or PATH; values of Secrets are anyway")
	fs.StringSliceVar(&f.ExcludeNamespaces, "exclude-namespaces", vap.DefaultExcludedNamespaces(), "whose requests are not recorded; none for none")
	fs.StringSliceVar(&f.ExcludeGroups, "exclude-groups", []string{"system:nodes"}, "groups whose requests are not recorded, as Kyverno does not judge them; none for none")
	fs.BoolVar(&f.remove, "remove", false, "only take away the configuration that an earlier run left behind")
	fs.StringVar(&f.Address, "webhook-address", "127.0.0.1:0", "where to listen")
	fs.StringVar(&f.URL, "webhook-url", "", "where the API server finds the webhook: https://HOST:PORT")
	fs.StringVar(&f.Service, "webhook-service", "", "the service of the webhook in place of a URL, as name or namespace/name; port 443")
	fs.StringVar(&f.Certificates, "webhook-certs", "", "a folder with tls.crt, tls.key and ca.crt, in place of certificates made for the run")
	fs.DurationVar(&f.Timeout, "webhook-timeout", time.Second, "how long the API server waits for an answer at most: 1s to 5s")
	fs.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	f.clusterFlags.add(fs)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	command.AddRecursive(fs)
	return cmd
}

// check tells what is wrong with the flags.
func (f *recordFlags) check() (size int64, err error) {
	switch {
	case f.remove:
		return 0, nil
	case f.dir == "":
		return 0, errors.New("record needs --output-dir DIR, a folder for the requests")
	case f.sample <= 0 || f.sample > 1:
		return 0, fmt.Errorf("--sample %v: want a share of more than 0, and of 1 at most", f.sample)
	case f.For < 0:
		return 0, fmt.Errorf("--for %s: want a time to go on for, such as 1h", f.For)
	case f.Timeout < time.Second || f.Timeout > record.MaxTimeout*time.Second || f.Timeout%time.Second != 0:
		return 0, fmt.Errorf("--webhook-timeout %s: want 1s to %ds", f.Timeout, record.MaxTimeout)
	case f.Service != "" && f.URL != "":
		return 0, errors.New("--webhook-service and --webhook-url exclude each other")
	}
	if f.URL != "" || f.Service != "" {
		if err := f.Endpoint.Check(); err != nil {
			return 0, err
		}
	}
	quantity, err := resource.ParseQuantity(f.size)
	if err != nil || quantity.Value() < record.Smallest {
		return 0, fmt.Errorf("--max-size %s: want a size such as 256Mi, and %d MiB at least", f.size, record.Smallest>>20)
	}
	return quantity.Value(), nil
}

func runRecord(cmd *cobra.Command, names []string, f recordFlags) error {
	size, err := f.check()
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	mask, err := record.NewMasker(f.masked, key)
	if err != nil {
		return fmt.Errorf("--mask: %w", err)
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	f.ExcludeNamespaces, f.ExcludeGroups = none(f.ExcludeNamespaces), none(f.ExcludeGroups)
	f.Errs, f.Progress = cmd.ErrOrStderr(), progress.show
	r := recording.New(c, f.Options)
	if f.remove {
		return r.TakeAway(ctx)
	}
	if err := f.choose(ctx, cmd, r, names); err != nil {
		return err
	}
	files, err := record.OpenFiles(f.dir, size)
	if err != nil {
		return exit.Runtime(err)
	}
	to := record.New(record.Options{Mask: mask, To: files, Sample: f.sample, Namespace: r.NamespaceOf})
	err = r.Run(ctx, to)
	if ended := to.Close(); err == nil {
		err = exit.Runtime(ended)
	}
	progress.clear()
	return f.summary(cmd.OutOrStdout(), to, err)
}

// choose has the requests recorded that the policies are about.
func (f *recordFlags) choose(ctx context.Context, cmd *cobra.Command, r *recording.Recording, names []string) error {
	flags := convert.DefaultFlags()
	flags.Pack = string(translate.PackMatch)
	choices, err := flags.Choices()
	if err != nil {
		return err
	}
	reading := &comparison{flags: compareFlags{sourceFlags: f.sourceFlags}, choices: choices, stdin: cmd.InOrStdin()}
	o := compare.Options{
		Translate: choices.Translate, Files: reading.files, Counts: func(string) bool { return false },
		Selection: live.Selection{Names: names, Labels: labels.Everything(), Namespace: r.Namespace, Every: f.fromFiles() || f.allNamespaces},
	}
	if !f.fromFiles() {
		o.Cluster = r.Connection
	}
	policies, elsewhere, err := compare.Policies(ctx, o)
	if err != nil {
		return exit.Runtime(err)
	}
	f.leftOut(cmd.ErrOrStderr(), elsewhere, "of other namespaces, and -A takes them")
	idle, err := r.About(policies)
	f.leftOut(cmd.ErrOrStderr(), idle, "no rule of them validates a kind that the cluster serves")
	return exit.Runtime(err)
}

// leftOut says of which policies no request is recorded.
func (f *recordFlags) leftOut(errs io.Writer, policies []*policy.Policy, why string) {
	var names []string
	for _, p := range policies {
		names = append(names, p.FullName())
	}
	if len(names) > 0 && !f.quiet {
		slices.Sort(names)
		fmt.Fprintf(errs, "left out: %s: %s\n", diag.Inert(strings.Join(names, ", ")), why)
	}
}

// summary says what was recorded, also where it ended badly.
func (f *recordFlags) summary(out io.Writer, recorder *record.Recorder, err error) error {
	n := recorder.Counts()
	fmt.Fprintf(out, "recorded %s in %s", doc.Count(int(n.Recorded), "request", "requests"), f.dir)
	if n.PassedBy > 0 {
		fmt.Fprintf(out, "; %s not in the sample", was(n.PassedBy))
	}
	if n.Lost() > 0 {
		fmt.Fprintf(out, "; %s lost (%d came too fast, %d too large, %d could not be written or read)", was(n.Lost()), n.Dropped, n.TooLarge, n.Failed)
	}
	fmt.Fprintln(out)
	if n.Recorded > 0 {
		fmt.Fprintf(out, "next: kvap migrate compare --requests %s\n", f.dir)
	} else if n.PassedBy+n.Lost() == 0 {
		fmt.Fprintln(out, "no request came; see that the API server reaches the webhook (--webhook-url), that somebody makes such requests, and record for longer")
	}
	if err != nil {
		return err
	}
	if n.Lost() > 0 {
		return exit.Partly(recorder.Trouble())
	}
	return nil
}

// was is a number of requests with its verb.
func was(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

// none is what a flag says for an empty list.
func none(list []string) []string {
	if len(list) == 1 && list[0] == "none" {
		return nil
	}
	return list
}
