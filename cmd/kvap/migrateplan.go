package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/planning"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// planFlags are the flags of migrate plan.
type planFlags struct {
	sourceFlags
	resources []string
	param     []string
	output    string
	exempt    []string
	convert.Flags
	clusterFlags
	viewFlags
}

func newMigratePlan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [PATH...]",
		Short: "Say what each policy becomes, and in which order they go",
		Long: `Plan says what each policy becomes: native, mixed (some of its rules need kvap's
webhook), webhook or unsupported; every code with its way out; what will be different
on purpose; what existing objects violate; what a request costs before and after; and
in which waves the policies go, the safest first. It changes nothing.

Without PATH, the policies are those of the cluster, and its objects are put before
them, as if they were created now. With PATH, policy files and folders, or - for
standard input, no cluster is asked; --resource gives objects.

The cost of a request is how many webhooks are called at most: Kyverno's by how it
registers policies, and kvap's by what stays with it. Native objects are counted as the
controller makes them: rules that match alike share one, while kvap convert makes one
for each policy. For files, say the release of the cluster with --kubernetes-version:
mutate rules are native from Kubernetes 1.36 on.

Exit codes: 0 clean, 2 usage or unreadable input, 3 a runtime error, 4 some of the
input was left out.`,
		Example: `  kvap migrate plan
  kvap migrate plan -o html > change-request.html
  kvap migrate plan policies/ --resource objects.yaml -o markdown
  kubectl get clusterpolicies.kyverno.io -o yaml | kvap migrate plan -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.files = slices.Concat(args, f.files)
			return runMigratePlan(cmd, f)
		},
	}
	fs := command.InOrder(cmd)
	f.sourceFlags.add(fs, "a file or folder to read, as if it were a PATH", "a kustomize folder to render and read")
	fs.StringSliceVar(&f.resources, "resource", nil, "a file or folder of objects; with a cluster, beside those that it has")
	fs.StringSliceVar(&f.param, "param", nil, "a file of ConfigMaps, params, Namespaces and other objects that rules look up")
	command.AddChoice(fs, &f.output, "output", "table", "table, json, markdown or html", "table", "json", "markdown", "html")
	fs.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces of the cluster whose PolicyExceptions count; none for none, * for all")
	addPackedByMatch(fs, &f.Flags)
	addMutations(fs, &f.Flags)
	fs.Lookup("params").DefValue, f.Params = "kvap", "kvap" // as the controller does by default
	f.addConnection(fs)
	f.viewFlags.add(fs, "", "all diagnostics, with their places; else only errors")
	command.AddRecursive(fs)
	return cmd
}

func runMigratePlan(cmd *cobra.Command, f planFlags) error {
	if err := input.StdinOnce(f.files, f.resources, f.param); err != nil {
		return err
	}
	if _, err := command.ExceptionNamespaces(f.exempt); err != nil {
		return err
	}
	choices, err := f.Choices()
	if err != nil {
		return err
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	progress := newProgress(cmd.ErrOrStderr(), false)
	o := planning.Options{
		Files: f.files, Kustomize: f.kustomize, Resources: f.resources, Params: f.param, Choices: choices,
		Counts: excepts(f.exempt), Stdin: cmd.InOrStdin(), Progress: progress.show,
	}
	if !f.fromFiles() {
		if o.Cluster, err = f.connect(); err != nil {
			return err
		}
		if o.Choices, err = f.ChoicesFor(o.Cluster.Release, choices); err != nil {
			return err
		}
	}
	p, err := planning.New(ctx, o)
	if err != nil {
		return err
	}
	progress.during(fmt.Sprintf("converting %s", doc.Count(len(p.Sources), "file", "files")), p.Compile)
	progress.clear()
	if p.Done.Empty() {
		if err := f.errorsOnly().say(cmd, p.Done.Found.Sort(), p.Sources); err != nil {
			return err
		}
		return f.nothing(p)
	}
	plan, err := p.Plan(ctx)
	progress.clear()
	if err != nil {
		return err
	}
	if err := f.errorsOnly().say(cmd, p.Done.Found.Sort(), p.Sources); err != nil {
		return err
	}
	if err := f.write(cmd, plan); err != nil {
		return exit.Runtime(err)
	}
	if len(p.Idle) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: PolicyExceptions of these namespaces do not count: %[1]s; where the controller and Kyverno count them, say --exception-namespaces %[1]s\n",
			strings.Join(slices.Compact(slices.Sorted(slices.Values(p.Idle))), ","))
	}
	if err := p.LeftOut.Err("the plan"); err != nil {
		return err
	}
	if p.Done.Found.HasErrors() || len(p.Done.Unread) > 0 {
		return exit.Partly(nil)
	}
	return nil
}

// nothing is the end of a plan of no policies.
func (f planFlags) nothing(p *planning.Planning) error {
	if f.fromFiles() {
		return convert.NoPolicy(f.files, f.kustomize, p.Done.Found, f.verbose)
	}
	if err := p.LeftOut.Err("the plan"); err != nil {
		return err
	}
	return exit.Usage(errors.New("the cluster has no policies of Kyverno; name files as PATH"))
}

func (f planFlags) write(cmd *cobra.Command, plan report.Plan) error {
	if err := f.writeDocument(cmd, cmd.OutOrStdout(), f.output, plan.Document(), nil); err != nil || f.output != "table" || plan.Totals.Unsupported == plan.Totals.Policies {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "next: kvap migrate shadow "+f.allToShadow())
	return err
}

// allToShadow are the arguments by which shadow takes what was planned.
func (f planFlags) allToShadow() string {
	if !f.fromFiles() {
		return "--all"
	}
	args := ""
	for _, path := range f.files {
		args += "-f " + path + " "
	}
	if f.kustomize != "" {
		args += "-k " + f.kustomize + " "
	}
	return args + "--output-dir DIR"
}
