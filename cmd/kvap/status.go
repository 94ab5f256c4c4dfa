package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/status"
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
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "table", "table, wide, json, yaml or name")
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on, and show the status again when it has changed")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	flags.StringVarP(&f.selector, "selector", "l", "", "only policies with these labels")
	flags.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces whose PolicyExceptions count, for policies of which no controller tells; none for none, * for all")
	f.clusterFlags.add(flags)
	completeOutput(cmd, false, statusOutputs()...)
	return cmd
}

func statusOutputs() []string { return []string{"table", "wide", "json", "yaml", "name"} }

func runStatus(cmd *cobra.Command, names []string, f statusFlags) error {
	if _, err := input.OneOf("-o", f.output, statusOutputs()...); err != nil {
		return err
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return fmt.Errorf("-l %s: %w", f.selector, err)
	}
	if _, err := exceptionNamespaces(f.exempt); err != nil {
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
		return watchStatus(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr(), filter, f)
	}
	read, err := readStatus(cmd.Context(), c, f.exempt)
	if err != nil {
		return exit.Runtime(err)
	}
	read.cluster.Filter = filter
	found := status.Of(read.cluster)
	if err := read.write(cmd.OutOrStdout(), found, f.output); err != nil {
		return exit.Runtime(err)
	}
	return read.verdict(names, found)
}

// verdict is the exit code: what could not be read weighs most.
func (r *statusReader) verdict(names []string, found report.Status) error {
	switch {
	case len(r.left) > 0:
		return r.err("the status")
	case len(names) > 0 && len(found.Policies) == 0 && len(found.Unmanaged) == 0:
		return exit.Findings(fmt.Errorf("the cluster has no policy of that name; kvap status -A lists all"))
	case found.Findings():
		return exit.Findings(nil)
	}
	return nil
}

func (r *statusReader) write(w io.Writer, s report.Status, output string) error {
	s.Notes = append([]string{}, r.notes...)
	switch output {
	case "json":
		return s.WriteJSON(w)
	case "yaml":
		return s.WriteYAML(w)
	case "name":
		return s.WriteNames(w)
	}
	if len(s.Policies) == 0 && len(s.Unmanaged) == 0 {
		_, err := fmt.Fprintln(w, r.nothing())
		return err
	}
	return s.WriteTable(w, r.cluster.Now, output == "wide")
}

// watchStatus shows the status whenever it has changed, until ctx ends.
func watchStatus(ctx context.Context, c *cluster.Connection, out, errs io.Writer, filter status.Filter, f statusFlags) error {
	var last string
	for ctx.Err() == nil {
		read, err := readStatus(ctx, c, f.exempt)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && last == "":
			return exit.Runtime(err)
		case err != nil: // it may come back
			fmt.Fprintf(errs, "warning: %s; trying again\n", diag.Inert(err.Error()))
			pause(ctx, retryDelay)
			continue
		}
		read.cluster.Filter = filter
		found := status.Of(read.cluster)
		var text asText
		if err := found.WriteJSON(&text); err != nil {
			return exit.Runtime(err)
		}
		if string(text) != last {
			if last != "" && f.output != "json" {
				fmt.Fprintln(out, separator(f.output))
			}
			if err := read.write(out, found, f.output); err != nil {
				return exit.Runtime(err)
			}
			last = string(text)
		}
		read.awaitChange(ctx)
	}
	return nil
}

// asText collects what is written.
type asText []byte

func (t *asText) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	return len(p), nil
}

func separator(output string) string {
	if output == "yaml" {
		return "---"
	}
	return ""
}
