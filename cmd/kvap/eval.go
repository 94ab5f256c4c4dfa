package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/proven"
	"github.com/kvap/kvap/schema"
)

// evalFlags are the flags of eval as the user gave them.
type evalFlags struct {
	files     []string
	kustomize string
	resources []string
	requests  []string
	documents []string
	output    string
	failOn    string

	operation    string
	old          []string
	user         string
	groups       []string
	roles        []string
	clusterRoles []string
	namespace    string
	labels       map[string]string

	param   []string
	context []string

	kubeconfig string
	timeout    time.Duration
	exempt     []string

	convert.Flags
	registryFlags

	quiet, verbose, noColor bool
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
built-in kinds are brought to the form that the API server gives them; its
defaults are not filled in.

--requests takes JSON Lines, plain or gzipped. A line is an AdmissionRequest, an
AdmissionReview, or {"id","request","namespaceLabels","roles","clusterRoles"}.

--json takes a JSON or YAML document that is no object of a cluster, such as a plan of
Terraform or a Dockerfile as JSON. Policies with evaluation.mode JSON judge it; no API
server does, so only the interpreter answers.

With -o jsonl there is one line for each line of input, in order:
  {"id","results":[{"policy","rule","target":"native|webhook",
    "native":"allow|deny|error|nomatch","interp":"pass|fail|skip|error|none","message"}]}
A deny means that a validation is false, whatever the policy's action makes of it.
Where mutate rules change the object, the line has "object": what it is after them.

A violation alone is no reason for the exit code 1; with --fail-on deny it is.

Exit codes: 0 the two agree, 1 they disagree on something, 2 usage or nothing could
be read, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap eval policies/ --resource pod.yaml
  kvap eval vap.yaml binding.yaml --resource pod.yaml
  kvap eval policy.yaml --resource new.yaml --old old.yaml --user alice --group dev
  kvap eval -f pod.yaml -q
  kvap eval policies/ --requests recorded.jsonl.gz --param configmaps.yaml -o jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return eval(cmd, slices.Concat(args, f.files), f)
		},
	}
	f.register(cmd)
	return cmd
}

// register makes the flags known, in the order in which help lists them.
func (f *evalFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder of policies, as if it were a PATH")
	fs.StringVarP(&f.kustomize, "kustomize", "k", "", "a kustomize folder to render and read")
	fs.StringSliceVar(&f.resources, "resource", nil, "a file or folder of resources, or - for standard input")
	fs.StringSliceVar(&f.requests, "requests", nil, "a file of recorded requests, or - for standard input")
	fs.StringSliceVar(&f.documents, "json", nil, "a JSON or YAML document that is no object of a cluster, for policies with evaluation.mode JSON, or - for standard input")
	fs.StringVarP(&f.output, "output", "o", "table", "table, wide, json, yaml or jsonl")
	fs.StringVar(&f.failOn, "fail-on", "disagree", "what ends with 1: disagree (the two judges differ), deny (that, or a violation) or never")
	fs.StringVar(&f.operation, "operation", "", "what is done with the resources: CREATE (default), UPDATE (default with --old) or DELETE")
	fs.StringSliceVar(&f.old, "old", nil, "a file with the resources as they were, for UPDATE")
	fs.StringVar(&f.user, "user", "kubernetes-admin", "who acts on the resources")
	fs.StringSliceVar(&f.groups, "group", []string{"system:authenticated"}, "the user's groups")
	fs.StringSliceVar(&f.roles, "role", nil, "roles bound to the user, as namespace:name")
	fs.StringSliceVar(&f.clusterRoles, "cluster-role", nil, "cluster roles bound to the user")
	fs.StringVarP(&f.namespace, "namespace", "n", "default", "the namespace of resources that name none")
	fs.StringToStringVar(&f.labels, "namespace-labels", nil, "labels of every request's namespace, as key=value")
	fs.StringSliceVar(&f.param, "param", nil, "a file of ConfigMaps, params, Namespaces and other objects that rules look up")
	fs.StringSliceVar(&f.context, "context", nil, "the same; also a Context of the Kyverno command line")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "without policies, the kubeconfig file of the cluster; else KUBECONFIG, else ~/.kube/config")
	fs.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long a request to that cluster may take")
	fs.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces of that cluster whose PolicyExceptions count; none for none, * for all")
	addChoices(fs, &f.Flags)
	f.registryFlags.add(fs)
	addMutations(fs, &f.Flags)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "of the table only violations and disagreements, of the diagnostics only errors")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "rules that have nothing to say too, and notes")
	fs.BoolVar(&f.noColor, "no-color", false, "no colours on a terminal; NO_COLOR does the same")
	addRecursive(fs)
	completeWords(cmd)
	completeOutput(cmd, false, evalOutputs()...)
}

func eval(cmd *cobra.Command, paths []string, f evalFlags) error {
	if err := f.check(paths); err != nil {
		return err
	}
	asks := f.asksCluster(paths)
	if asks && len(paths) > 0 {
		f.resources = paths
		sources, _, err := input.Read(slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "-" }), nil)
		if err != nil {
			return exit.Usage(err)
		}
		if holdPolicies(sources) {
			return errNothingToJudge
		}
	}
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	var e *evaluation
	var err error
	progress.during("compiling", func() {
		if asks {
			e, err = f.prepareCluster(cmd)
			return
		}
		e, err = f.prepare(cmd, paths)
	})
	if err != nil {
		progress.clear()
		return err
	}
	e.progress = progress
	inputs, err := f.inputs(cmd.InOrStdin(), e)
	if err != nil {
		return err
	}
	err = e.judge(cmd.Context(), inputs)
	progress.clear()
	if err != nil {
		return exit.Runtime(err)
	}
	e.reportMissing()
	if err := e.out.finish(e.totals); err != nil {
		return exit.Runtime(err)
	}
	e.found = e.found.Sort()
	shown := convertFlags{quiet: f.quiet, verbose: f.verbose, noColor: f.noColor}
	if err := shown.printDiagnostics(cmd.ErrOrStderr(), e.found, e.sources, cmd.Root().DisplayName()); err != nil {
		return exit.Runtime(err)
	}
	return e.verdict()
}

func (f evalFlags) check(paths []string) error {
	if _, err := input.OneOf("-o", f.output, evalOutputs()...); err != nil {
		return err
	}
	if _, err := input.OneOf("--fail-on", f.failOn, failOns()...); err != nil {
		return err
	}
	if _, err := input.OneOf("--operation", f.operation, "CREATE", "UPDATE", "DELETE"); err != nil && f.operation != "" {
		return fmt.Errorf("%w; a CONNECT is judged with --requests", err)
	}
	if _, err := exceptionNamespaces(f.exempt); err != nil {
		return err
	}
	switch {
	case len(paths) == 0 && f.kustomize == "" && len(f.resources)+len(f.requests)+len(f.documents) == 0:
		return errors.New("eval needs a PATH: a file or folder of policies, or of what is judged by the cluster's")
	case f.kustomize != "" && len(f.resources)+len(f.requests)+len(f.documents) == 0:
		return errNothingToJudge
	case len(f.resources) > 0 && len(f.requests) > 0:
		return errors.New("--resource and --requests exclude each other")
	case len(f.documents) > 0 && len(f.resources)+len(f.requests) > 0:
		return errors.New("--json excludes --resource and --requests")
	case len(f.documents) > 0 && len(paths) == 0 && f.kustomize == "":
		return errors.New("--json needs a PATH: a file or folder of policies with evaluation.mode JSON")
	case len(f.documents) > 0 && (f.operation != "" || len(f.old) > 0):
		return errors.New("--operation and --old are for --resource; nothing is done with a document")
	case len(f.requests) > 0 && (f.operation != "" || len(f.old) > 0):
		return errors.New("--operation and --old are for --resource; a recorded request says both itself")
	case len(f.old) > 0 && f.operation != "" && f.operation != "UPDATE":
		return fmt.Errorf("--old is for UPDATE, not for %s", f.operation)
	case f.operation == "UPDATE" && len(f.old) == 0:
		return errors.New("--operation UPDATE needs --old FILE, the resources as they were; " +
			"for an update that changes nothing, name the same file")
	case f.quiet && f.verbose:
		return errors.New("-q and -v exclude each other")
	case f.stdinReaders(paths) > 1:
		return errors.New("only one thing can be read from standard input")
	}
	return nil
}

func (f evalFlags) stdinReaders(paths []string) (n int) {
	for _, p := range slices.Concat(paths, f.resources, f.requests, f.documents, f.old, f.param, f.context) {
		if p == "-" {
			n++
		}
	}
	return n
}

// An evaluation is a run of eval.
type evaluation struct {
	judges   *judge.Judges
	schemas  *schema.Set
	objects  []map[string]any // that rules look up
	contexts []judge.Context  // what else would be said to them
	registry *proven.Recorded // of images; nil where there is none
	labels   map[string]string
	out      evalOutput
	failOn   string

	progress *progress

	sources []input.Source
	found   diag.List
	unread  bool // whether there are policies of kinds that are not read
	totals  evalTotals
	told    map[string]bool // warnings, by their text
	missing map[diag.Pos]judge.Lookup
}

// evalTotals count what a run has seen.
type evalTotals struct {
	requests, unread int
	violations       int // requests with one
	disagreements    int // rules on requests
	unmatched        int // requests of which no rule says anything
}

// prepare reads and compiles everything but what is to be judged.
func (f evalFlags) prepare(cmd *cobra.Command, paths []string) (*evaluation, error) {
	choices, err := f.Choices()
	if err != nil {
		return nil, err
	}
	e := &evaluation{schemas: choices.Translate.Schemas, labels: f.labels, told: map[string]bool{}, missing: map[diag.Pos]judge.Lookup{}}
	if err := e.readObjects(slices.Concat(f.param, f.context), cmd.InOrStdin()); err != nil {
		return nil, err
	}
	if e.registry, err = f.registry(); err != nil {
		return nil, err
	}
	read, err := convert.Read(paths, f.kustomize, cmd.InOrStdin(), choices.Translate.Release)
	if err != nil {
		return nil, err
	}
	e.sources = append(e.sources, read.Sources...)
	e.found = append(append(e.found, read.Found...), read.Unjudged...)
	e.unread = len(read.Unread) > 0
	e.objects = append(e.objects, read.Params...)
	if read.Empty() {
		return nil, noPolicy(paths, f.kustomize, nil, false)
	}
	choices.Rewrite(read.Policies)
	e.judges, err = judge.Compile(compile.Input{Policies: read.Policies, Exceptions: read.Exceptions, Found: read.Found},
		compile.Options{Translate: choices.Translate}, judge.Cluster{Objects: e.objects, World: e.world(), Deployed: read.Deployed})
	if err != nil {
		return nil, exit.Usage(err)
	}
	if f.verbose { // what the translation leaves to the webhook is not what is asked here
		e.found = append(e.found, e.judges.Compiled.Diagnostics...)
	}
	e.out, e.failOn = f.newOutput(cmd.OutOrStdout()), f.failOn
	return e, nil
}

// verdict is the exit code: input that was left out weighs most.
func (e *evaluation) verdict() error {
	judged := e.totals.requests - e.totals.unread
	switch {
	case judged > 0 && len(e.judges.Rules) == 0 && e.unread:
		return exit.Partly(nil)
	case judged == 0, len(e.judges.Rules) == 0:
		return exit.Usage(errors.New("nothing was judged"))
	case e.found.HasErrors():
		return exit.Partly(nil)
	case e.failOn != "never" && e.totals.disagreements > 0, e.failOn == "deny" && e.totals.violations > 0:
		return exit.Findings(nil)
	case e.unread:
		return exit.Partly(nil)
	}
	return nil
}

func evalOutputs() []string { return []string{"table", "wide", "json", "yaml", "jsonl"} }

func failOns() []string { return []string{"disagree", "deny", "never"} }
