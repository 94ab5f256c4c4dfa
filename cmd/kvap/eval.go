package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/evaluate"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
)

// evalFlags are the flags of eval as the user gave them.
type evalFlags struct {
	sourceFlags
	context []string
	evaluate.Options

	connectTo clusterFlags // where there is no policy among the paths
	exempt    []string

	convert.Flags
	registryFlags

	viewFlags
}

func newEval() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval [PATH...] [--resource FILE | --requests FILE]",
		Short: "Judge resources or recorded requests, natively and by the interpreter",
		Long: `Eval judges resources, or recorded admission requests, by the policies in the
PATHs, twice: by what they are translated to, with the API server's own matching
and validation code, and by the reference interpreter. It prints both verdicts on
each rule. Namespaces are not excluded, and audited rules count as any other.

Native policies and bindings among the PATHs are judged as they are. Those that say
which rules they were made from are held against these, if they are there too.

Without policies, those of the cluster are meant, with the native ones that are there: eval
-f pod.yaml lists every rule that denies a Pod, where an API server names those of one native
policy and leaves the others out.

--resource takes YAML of several documents; each is a request to create it, by
kubernetes-admin in the namespace default unless flags say otherwise. Objects of
built-in kinds are brought to the form that the API server gives them, with its
defaults; those of other kinds get the defaults of their --crds. Use --no-defaults for
objects that were recorded as policies see them.

--requests takes JSON Lines, plain or gzipped. A line is an AdmissionRequest, an
AdmissionReview, or {"id","request","namespaceLabels","namespaceObject","roles",
"clusterRoles"}.

--json takes a JSON or YAML document that is no object of a cluster, such as a plan of
Terraform or a Dockerfile as JSON. Policies with evaluation.mode JSON judge it; no API
server does, so only the interpreter answers.

With -o jsonl there is one line for each line of input, in order:
  {"id","results":[{"policy","rule","target":"native|webhook",
    "native":"allow|deny|error|nomatch|unknown","interp":"pass|fail|skip|error|none|unknown",
    "message"}]}
A deny means that a validation is false, whatever the policy's action makes of it.
Where mutate rules change the object, the line has "object": what it is after them.

A violation alone is no reason for the exit code 1; with --fail-on deny it is. A rule
that errs counts as violated, for an error denies too, but not under failurePolicy
Ignore. A rule that reads more of the namespace than its name and labels is unknown
where --param does not give the Namespace, and one whose namespaceSelector decides
where neither that nor --namespace-labels gives the labels.

Exit codes: 0 the two agree, 1 they disagree on something, 2 usage or nothing could
be read, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap eval policies/ --resource pod.yaml
  kvap eval vap.yaml binding.yaml --resource pod.yaml
  kvap eval policy.yaml --resource new.yaml --old old.yaml --user alice --group dev
  kvap eval -f pod.yaml -q
  kvap eval policies/ --requests recorded.jsonl.gz --param configmaps.yaml -o jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runEvaluation(cmd, slices.Concat(args, f.files), f)
		},
	}
	fs := command.InOrder(cmd)
	f.sourceFlags.add(fs, "a file or folder of policies, as if it were a PATH", "a kustomize folder to render and read")
	fs.StringSliceVar(&f.Resources, "resource", nil, "a file or folder of resources, or - for standard input")
	fs.StringSliceVar(&f.Requests, "requests", nil, "a file of recorded requests, or - for standard input")
	fs.StringSliceVar(&f.Documents, "json", nil, "a JSON or YAML document that is no object of a cluster, for policies with evaluation.mode JSON, or - for standard input")
	command.AddChoice(fs, &f.Output, "output", "table", "table, wide, json, yaml or jsonl", evaluate.Outputs()...)
	command.AddChoice(fs, &f.FailOn, "fail-on", "disagree", "what ends with 1: disagree (the two judges differ), deny (that, or a violation) or never", evaluate.FailOns()...)
	fs.StringVar(&f.Operation, "operation", "", "what is done with the resources: CREATE (default), UPDATE (default with --old) or DELETE")
	command.Offer(fs, "operation", "CREATE", "UPDATE", "DELETE")
	fs.StringSliceVar(&f.Old, "old", nil, "a file with the resources as they were, for UPDATE")
	fs.StringVar(&f.User, "user", "kubernetes-admin", "who acts on the resources")
	fs.StringSliceVar(&f.Groups, "group", []string{"system:authenticated"}, "the user's groups")
	fs.StringSliceVar(&f.Roles, "role", nil, "roles bound to the user, as namespace:name")
	fs.StringSliceVar(&f.ClusterRoles, "cluster-role", nil, "cluster roles bound to the user")
	fs.BoolVar(&f.AsWritten, "no-defaults", false, "judge resources, and objects that rules look up, as they are, without what an API server fills in")
	fs.StringVarP(&f.Namespace, "namespace", "n", "default", "the namespace of resources that name none")
	fs.StringToStringVar(&f.Labels, "namespace-labels", nil, "labels of every request's namespace, as key=value")
	fs.StringSliceVar(&f.Lookups, "param", nil, "a file of ConfigMaps, params, Namespaces and other objects that rules look up")
	fs.StringSliceVar(&f.context, "context", nil, "the same; also a Context of the Kyverno command line")
	f.connectTo.addConnection(fs)
	fs.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces of that cluster whose PolicyExceptions count; none for none, * for all")
	addChoices(fs, &f.Flags)
	f.registryFlags.add(fs)
	addMutations(fs, &f.Flags)
	f.viewFlags.add(fs, "of the table only violations and disagreements, of the diagnostics only errors", "rules that have nothing to say too, and notes")
	command.AddRecursive(fs)
	return cmd
}

func runEvaluation(cmd *cobra.Command, paths []string, f evalFlags) error {
	if err := f.check(paths); err != nil {
		return err
	}
	// Where nobody has named policies, the cluster's are meant, and the PATHs are what is judged by them.
	given := len(f.Resources)+len(f.Requests)+len(f.Documents) > 0
	asks := f.kustomize == "" && (len(paths) == 0) == given
	if asks && len(paths) > 0 {
		f.Resources = paths
		sources, _, err := input.Read(slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "-" }), nil)
		if err != nil {
			return exit.Usage(err)
		}
		if holdPolicies(sources) {
			return nothingToJudge(paths)
		}
	}
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	var e *evaluate.Evaluation
	var err error
	progress.during("compiling", func() { e, err = f.prepare(cmd, paths, asks, progress.show) })
	if err == nil {
		err = e.Run(cmd.Context())
	}
	progress.clear()
	if err != nil {
		return err
	}
	if err := f.say(cmd, e.Found, e.Sources); err != nil {
		return err
	}
	return e.Verdict()
}

// prepare reads and compiles everything but what is to be judged.
func (f evalFlags) prepare(cmd *cobra.Command, paths []string, asks bool, progress func(string, ...any)) (*evaluate.Evaluation, error) {
	choices, err := f.Choices()
	if err != nil {
		return nil, err
	}
	if f.Registry, err = f.registry(); err != nil {
		return nil, err
	}
	o := f.Options
	o.Lookups = slices.Concat(f.Lookups, f.context)
	o.Quiet, o.Verbose, o.Colour = f.quiet, f.verbose, f.wantsColour(cmd.OutOrStdout())
	o.Stdin, o.Stdout, o.Progress = cmd.InOrStdin(), cmd.OutOrStdout(), progress
	e, err := evaluate.New(o)
	if err != nil {
		return nil, err
	}
	if !asks {
		return e, e.ByFiles(paths, f.kustomize, choices)
	}
	c, err := f.connectTo.connect()
	if own := (*exit.Error)(nil); len(paths) > 0 && errors.As(err, &own) {
		return nil, &exit.Error{Code: own.Code, Err: fmt.Errorf("there is no policy in %s, so that those of a cluster judge it: %w", input.Names(paths, ""), own.Err)}
	} else if err != nil {
		return nil, err
	}
	if choices, err = f.ChoicesFor(c.Release, choices); err != nil {
		return nil, err
	}
	return e, e.ByCluster(cmd.Context(), c, choices, excepts(f.exempt))
}

func (f evalFlags) check(paths []string) error {
	if _, err := input.OneOf("--operation", f.Operation, "CREATE", "UPDATE", "DELETE"); err != nil && f.Operation != "" {
		return fmt.Errorf("%w; a CONNECT is judged with --requests", err)
	}
	if _, err := command.ExceptionNamespaces(f.exempt); err != nil {
		return err
	}
	switch {
	case len(paths) == 0 && f.kustomize == "" && len(f.Resources)+len(f.Requests)+len(f.Documents) == 0:
		return errors.New("eval needs a PATH: a file or folder of policies, or of what is judged by the cluster's")
	case f.kustomize != "" && len(f.Resources)+len(f.Requests)+len(f.Documents) == 0:
		return nothingToJudge(nil)
	case len(f.Resources) > 0 && len(f.Requests) > 0:
		return errors.New("--resource and --requests exclude each other")
	case len(f.Documents) > 0 && len(f.Resources)+len(f.Requests) > 0:
		return errors.New("--json excludes --resource and --requests")
	case len(f.Documents) > 0 && len(paths) == 0 && f.kustomize == "":
		return errors.New("--json needs a PATH: a file or folder of policies with evaluation.mode JSON")
	case len(f.Documents) > 0 && (f.Operation != "" || len(f.Old) > 0):
		return errors.New("--operation and --old are for --resource; nothing is done with a document")
	case len(f.Requests) > 0 && (f.Operation != "" || len(f.Old) > 0):
		return errors.New("--operation and --old are for --resource; a recorded request says both itself")
	case len(f.Requests) > 0 && f.AsWritten:
		return errors.New("--no-defaults is for --resource; a recorded request is never filled in")
	case len(f.Old) > 0 && f.Operation != "" && f.Operation != "UPDATE":
		return fmt.Errorf("--old is for UPDATE, not for %s", f.Operation)
	case f.Operation == "UPDATE" && len(f.Old) == 0:
		return errors.New("--operation UPDATE needs --old FILE, the resources as they were; " +
			"for an update that changes nothing, name the same file")
	}
	if err := f.checkView(); err != nil {
		return err
	}
	return input.StdinOnce(paths, f.Resources, f.Requests, f.Documents, f.Old, f.Lookups, f.context)
}

// nothingToJudge is of PATHs with policies and nothing beside them; a file among them that
// holds none was likely meant to be judged.
func nothingToJudge(paths []string) error {
	resource := "FILE"
	for _, p := range paths {
		if sources, _, err := input.Read([]string{p}, nil); p != "-" && err == nil && len(sources) > 0 && !holdPolicies(sources) {
			resource = p
		}
	}
	return fmt.Errorf("eval needs something to judge: --resource %s or --requests FILE; without policies among the PATHs, these are judged by the cluster's", resource)
}

// holdPolicies tells whether some files may have policies.
func holdPolicies(sources []input.Source) bool {
	return slices.ContainsFunc(sources, func(s input.Source) bool { return policy.MayHold(s.Data) })
}
