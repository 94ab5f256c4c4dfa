package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/migrate/record"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/webhook/endpoint"
)

// recordFlags are the flags of migrate record as the user gave them.
type recordFlags struct {
	files     []string
	kustomize string
	dir       string
	wait      time.Duration
	sample    float64
	size      string
	masked    []string
	hold      time.Duration
	exclude   []string
	groups    []string
	remove    bool
	endpoint  endpoint.Endpoint
	certs     string
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
loopback, which is enough for an API server on this machine, as that of kvap dev.

If the process is killed, the configuration stays behind and does no harm: API servers
go on without an answer. Record again, or kvap migrate record --remove, takes it away.

Exit codes: 0 all were recorded, 2 usage, 3 a runtime error, 4 some were not.`,
		Example: `  kvap migrate record --output-dir recorded/ --for 1h --webhook-url https://10.0.0.5:9443 --webhook-address :9443
  kvap migrate record require-labels --output-dir recorded/ --sample 0.1 --mask spec.containers.env.value
  kvap migrate record --remove`,
		RunE: func(cmd *cobra.Command, args []string) error { return runRecord(cmd, args, f) },
	}
	f.register(cmd)
	return cmd
}

// register makes the flags known, in the order in which help lists them.
func (f *recordFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.dir, "output-dir", "", "the folder for the recorded requests")
	fs.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder of policies, in place of those of the cluster")
	fs.StringVarP(&f.kustomize, "kustomize", "k", "", "a kustomize folder to render and read, as if it were a file")
	fs.DurationVar(&f.wait, "for", 0, "how long to record, for instance 1h; until Ctrl-C by default")
	fs.Float64Var(&f.sample, "sample", 1, "the share of requests that is kept, for instance 0.1")
	fs.StringVar(&f.size, "max-size", "256Mi", "what the files may take; 16Mi at least")
	fs.StringSliceVar(&f.masked, "mask", nil, "a field whose value is masked, as KIND/PATH or PATH; values of Secrets are anyway")
	fs.StringSliceVar(&f.exclude, "exclude-namespaces", vap.DefaultExcludedNamespaces(), "whose requests are not recorded; none for none")
	fs.StringSliceVar(&f.groups, "exclude-groups", []string{"system:nodes"}, "groups whose requests are not recorded, as Kyverno does not judge them; none for none")
	fs.BoolVar(&f.remove, "remove", false, "only take away the configuration that an earlier run left behind")
	fs.StringVar(&f.endpoint.Address, "webhook-address", "127.0.0.1:0", "where to listen")
	fs.StringVar(&f.endpoint.URL, "webhook-url", "", "where the API server finds the webhook: https://HOST:PORT")
	fs.StringVar(&f.endpoint.Service, "webhook-service", "", "the service of the webhook in place of a URL, as name or namespace/name; port 443")
	fs.StringVar(&f.certs, "webhook-certs", "", "a folder with tls.crt, tls.key and ca.crt, in place of certificates made for the run")
	fs.DurationVar(&f.hold, "webhook-timeout", time.Second, "how long the API server waits for an answer at most: 1s to 5s")
	fs.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	f.clusterFlags.add(fs)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	addRecursive(fs)
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
	case f.wait < 0:
		return 0, fmt.Errorf("--for %s: want a time to go on for, such as 1h", f.wait)
	case f.hold < time.Second || f.hold > record.MaxTimeout*time.Second || f.hold%time.Second != 0:
		return 0, fmt.Errorf("--webhook-timeout %s: want 1s to %ds", f.hold, record.MaxTimeout)
	case f.endpoint.Service != "" && f.endpoint.URL != "":
		return 0, errors.New("--webhook-service and --webhook-url exclude each other")
	}
	if f.endpoint.URL != "" || f.endpoint.Service != "" {
		if err := f.endpoint.Check(); err != nil {
			return 0, err
		}
	}
	quantity, err := resource.ParseQuantity(f.size)
	if err != nil || quantity.Value() < record.Smallest {
		return 0, fmt.Errorf("--max-size %s: want a size such as 256Mi, and %d MiB at least", f.size, record.Smallest>>20)
	}
	return quantity.Value(), nil
}

// fromFiles tells that policies are not those of the cluster.
func (f *recordFlags) fromFiles() bool { return len(f.files) > 0 || f.kustomize != "" }

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
	ctx, stop := signal.NotifyContext(commandContext(cmd), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &recording{flags: f, Connection: c, errs: cmd.ErrOrStderr(), progress: newProgress(cmd.ErrOrStderr(), f.quiet)}
	if f.remove {
		return r.takeAway(ctx)
	}
	if r.rules, err = r.rulesOf(ctx, names, cmd.InOrStdin()); err != nil {
		return err
	}
	files, err := record.OpenFiles(f.dir, size)
	if err != nil {
		return exit.Runtime(err)
	}
	r.recorder = record.New(record.Options{Mask: mask, To: files, Sample: f.sample, Labels: r.labels.of})
	err = r.run(ctx)
	if ended := r.recorder.Close(); err == nil && ended != nil {
		err = exit.Runtime(ended)
	}
	r.progress.clear()
	return r.summary(cmd, err)
}

// summary says what was recorded, also where it ended badly.
func (r *recording) summary(cmd *cobra.Command, err error) error {
	n := r.recorder.Counts()
	fmt.Fprintf(cmd.OutOrStdout(), "recorded %s in %s", report.Count(int(n.Recorded), "request", "requests"), r.flags.dir)
	if n.PassedBy > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "; %s not in the sample", was(n.PassedBy))
	}
	if n.Lost() > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "; %s lost (%d came too fast, %d too large, %d could not be written or read)", was(n.Lost()), n.Dropped, n.TooLarge, n.Failed)
	}
	fmt.Fprintln(cmd.OutOrStdout())
	if n.Recorded > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "next: kvap migrate compare --requests %s\n", r.flags.dir)
	} else if n.PassedBy+n.Lost() == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "no request came; see that the API server reaches the webhook (--webhook-url), that somebody makes such requests, and record for longer")
	}
	if err != nil {
		return err
	}
	if n.Lost() > 0 {
		return exit.Partly(r.recorder.Trouble())
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

// removalTime is how long taking the configuration away may take once the time is over.
const removalTime = 20 * time.Second

// afterwards is a context for what must be done although ctx has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), removalTime)
}
