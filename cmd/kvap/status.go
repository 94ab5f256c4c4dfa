package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/cmd/kvap/internal/status"
	"github.com/kvap/kvap/cmd/kvap/internal/status/live"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// statusFlags are the flags of status as the user gave them.
type statusFlags struct {
	clusterFlags
	all      bool
	selector string
	output   string
	watch    bool
	exempt   []string
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "Show what a cluster makes of its policies",
		Long: `Status reads ValidatingAdmissionPolicies and their bindings from a cluster, with or
without a controller in it, and the source policies where the cluster has them.
For each policy it shows where its rules are judged, whether the objects are
there, bound, find their params and are enforced, and what the cluster's type
checker says of them, at the line of the source; -o wide has a line for each rule.
ValidatingAdmissionPolicies that kvap did not make are listed as well.

Status writes nothing. It reads metadata of the objects that bindings refer to,
not what is in them. A warning of the type checker is called a known false alarm
where the types that values have at run time do not yield it.

Exit codes: 0 all is well, 1 something is not, 2 usage, 3 no cluster answers,
4 some of the objects could not be read.`,
		Example: `  kvap status
  kvap status -A -o wide
  kvap status disallow-latest-tag -o json
  kvap status --watch`,
		RunE: func(cmd *cobra.Command, args []string) error { return runStatus(cmd, args, f) },
	}
	flags := command.InOrder(cmd)
	command.AddChoice(flags, &f.output, "output", "table", "table, wide, json, yaml or name", "table", "wide", "json", "yaml", "name")
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on, and show the status again when it has changed")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	flags.StringVarP(&f.selector, "selector", "l", "", "only policies with these labels")
	flags.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces whose PolicyExceptions count, for policies of which no controller tells; none for none, * for all")
	f.clusterFlags.add(flags)
	return cmd
}

func runStatus(cmd *cobra.Command, names []string, f statusFlags) error {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return fmt.Errorf("-l %s: %w", f.selector, err)
	}
	if _, err := command.ExceptionNamespaces(f.exempt); err != nil {
		return err
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	filter := status.Filter{Names: names, Labels: selector, Namespace: c.Namespace}
	if f.all {
		filter.Namespace = ""
	}
	if f.watch {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		return exit.Runtime(live.Watch(ctx, c, excepts(f.exempt), filter, func(read *live.Reader, found report.Status, first bool) error {
			if !first && f.output != "json" {
				fmt.Fprintln(cmd.OutOrStdout(), map[string]string{"yaml": "---"}[f.output])
			}
			return f.write(cmd.OutOrStdout(), read, found)
		}, func(err error) {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s; trying again\n", diag.Inert(err.Error()))
		}))
	}
	read, err := live.Read(cmd.Context(), c, excepts(f.exempt))
	if err != nil {
		return exit.Runtime(err)
	}
	found := read.Status(filter)
	if err := f.write(cmd.OutOrStdout(), read, found); err != nil {
		return exit.Runtime(err)
	}
	return statusVerdict(read, names, found)
}

// statusVerdict is the exit code: what could not be read weighs most.
func statusVerdict(r *live.Reader, names []string, found report.Status) error {
	switch {
	case len(r.Left) > 0:
		return r.Err("the status")
	case len(names) > 0 && len(found.Policies) == 0 && len(found.Unmanaged) == 0:
		return exit.Findings(fmt.Errorf("the cluster has no policy of that name; kvap status -A lists all"))
	case found.Findings():
		return exit.Findings(nil)
	}
	return nil
}

func (f statusFlags) write(w io.Writer, r *live.Reader, s report.Status) error {
	if f.output == "name" {
		return s.WriteNames(w)
	}
	d := s.Document(r.Now(), f.output == "wide")
	if len(s.Policies) == 0 && len(s.Unmanaged) == 0 {
		d.Sections = []doc.Section{{Text: r.Nothing()}}
	}
	return d.Write(w, doc.Options{Format: f.output})
}
