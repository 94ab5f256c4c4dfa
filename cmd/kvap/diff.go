package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/compare"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/diff"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/verify"
)

// diffFlags are the flags of diff as the user gave them.
type diffFlags struct {
	budget    string
	seed      uint64
	output    string
	save      string
	param     []string
	ignore    []string
	allowThin bool
	first     bool
	live      bool
	connectTo clusterFlags
	convert.Flags

	viewFlags
}

func newDiff() *cobra.Command {
	f := diffFlags{Flags: convert.DefaultFlags()}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Look for a request of which two sets of policies say different things",
		Long: `Diff tells whether two sets of policies say the same. OLD and NEW are each a file, a
folder or REV:PATH, which is a file or folder of a Git revision. They hold anything that
kvap judges by: Kyverno's policies, its kinds in CEL, ValidatingAdmissionPolicies with
their bindings and params, MutatingAdmissionPolicies. With --live, OLD is what a cluster
has.

Policies are paired by name, and those that are left by what they match; the rules of a
pair by name. Where rules do not pair one to one, the whole of both sides is compared.
What has no pair is a difference.

Diff makes admission requests from what both sides look at and compare with, varies those
that showed something new, and asks both sides about each: policies are judged by the
reference interpreter, native ones by the API server's own code. Where the two differ, it
makes the request as small as it can and prints it with both answers. A difference is one of

  unpaired       only one side has it
  verdict        one side finds a violation, the other none
  scope          one side finds a violation, the other is not about the request
  object         mutations make different objects of it
  failurePolicy  an error refuses on one side and admits on the other
  action         what follows from a violation differs (Deny, Warn, Audit)
  message        the violation is the same, its author's words differ

--ignore leaves out some of these. No difference found is evidence and no proof. VIOLATED
counts the requests that each side found a violation in, erred on, or changed. QUESTIONS counts what
each side asks (conditions, keys of patterns, terms of CEL): 3/4 says that three of four were
seen both to hold and to fail; -v lists the others, and evidence is thin where there are some.
Where no request matched, or none violated either side, nothing was compared, and the exit
code is 2: give a larger budget, or what the policies depend on (--crds, --param), or say
--allow-thin.

Rules that verify images, generate or clean up are not judged; they are the same where they
are written the same. ConfigMaps that rules look up are made up unless --param gives them.

Exit codes: 0 no difference was found, 1 some was, 2 something cannot be compared or read,
3 a runtime error.`,
		Example: `  kvap diff old.yaml new.yaml
  kvap diff main:policies policies
  kvap diff policy.yaml by-hand.yaml --ignore message,action
  kvap diff policies/ converted/ --budget 20000 -o markdown
  kvap diff --live policies/`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := command.InOrder(cmd)
	flags.StringVar(&f.budget, "budget", fmt.Sprint(diff.DefaultRequests), "for each pair of policies, a number of requests or a time such as 10s")
	flags.Uint64Var(&f.seed, "seed", 1, "the same seed gives the same run")
	flags.StringSliceVar(&f.ignore, "ignore", nil, "kinds of differences that do not count: "+strings.Join(kindsOfDifference(), ", "))
	command.AddChoice(flags, &f.output, "output", "table", "table, json, sarif, github or markdown", "table", "json", "sarif", "github", "markdown")
	flags.StringVar(&f.save, "save", "", "write the requests that were found to this file, for kvap eval --requests")
	flags.StringSliceVar(&f.param, "param", nil, "a file of ConfigMaps and other objects that rules of both sides look up")
	flags.BoolVar(&f.allowThin, "allow-thin", false, "a pair of which no request shows anything is no finding")
	flags.BoolVar(&f.first, "first", false, "end the search for a pair of policies with the first difference")
	flags.StringVar(&f.Release, "kubernetes-version", f.Release, "the Kubernetes release that native policies are for")
	flags.StringSliceVar(&f.CRDs, "crds", nil, "files or folders of CustomResourceDefinitions, so that the types of their kinds are known")
	flags.BoolVar(&f.live, "live", false, "OLD is what a cluster has; name NEW alone")
	f.connectTo.addConnection(flags)
	f.viewFlags.add(flags, "no progress, and of the diagnostics only errors", "what was not seen both ways, and notes")
	return cmd
}

func kindsOfDifference() (out []string) {
	for _, k := range diff.Aspects() {
		out = append(out, string(k))
	}
	return out
}

func (f diffFlags) run(cmd *cobra.Command, args []string) error {
	options, choices, err := f.options(args)
	if err != nil {
		return err
	}
	found, sources := diag.List{}, []input.Source{}
	read := func(name string) (diff.Side, error) {
		side, in, err := f.read(cmd, name, choices)
		if in != nil {
			found, sources = append(found, in.Found...), append(sources, in.Sources...)
		}
		return side, err
	}
	var old diff.Side
	names := args
	if f.live {
		names = []string{"the cluster", args[0]}
		if old, err = f.readCluster(cmd, &options, choices, &found); err != nil {
			return err
		}
	} else if old, err = read(args[0]); err != nil {
		return err
	}
	new, err := read(names[1])
	if err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	options.Progress = func(done, all int) { progress.show("%d/%d compared", done, all) }
	result, err := diff.Compare(cmd.Context(), old, new, options)
	progress.clear()
	if err != nil {
		return exit.Runtime(err)
	}
	d := f.reported(names, result)
	found = found.Sort() // which leaves nothing of the list that it was
	if err := f.write(cmd, d, found); err != nil {
		return exit.Runtime(err)
	}
	if err := f.saveFound(d); err != nil {
		return exit.Runtime(err)
	}
	if err := f.errorsOnly().say(cmd, found, sources); err != nil {
		return err
	}
	return f.verdict(d.Totals, found)
}

// verdict is the exit code: what was found weighs more than what could not be compared.
func (f diffFlags) verdict(t report.DiffTotals, found diag.List) error {
	switch {
	case t.Different > 0:
		return exit.Findings(nil)
	case t.Comparisons == 0 && t.NotJudged == 0:
		return exit.Usage(errors.New("there is nothing to compare: neither side has a rule that is judged"))
	case found.HasErrors(), t.NotJudged > 0, t.NotCompared > 0 && !f.allowThin:
		return exit.Usage(nil)
	}
	return nil
}

func (f diffFlags) options(args []string) (diff.Options, convert.Choices, error) {
	o := diff.Options{Seed: f.seed, First: f.first}
	var c convert.Choices
	if err := f.checkView(); err != nil {
		return o, c, err
	}
	switch {
	case f.live && len(args) != 1:
		return o, c, errors.New("diff --live needs NEW: a file, a folder or REV:PATH; OLD is what the cluster has")
	case !f.live && len(args) != 2:
		return o, c, errors.New("diff needs OLD and NEW: each a file, a folder or REV:PATH")
	case f.save == "-":
		return o, c, errSaveToOutput
	}
	for _, name := range f.ignore {
		kind, err := input.OneOf("--ignore", strings.TrimSuffix(name, "s"), diff.Aspects()...)
		if err != nil {
			return o, c, err
		}
		o.Ignore = append(o.Ignore, kind)
	}
	err := input.StdinOnce(args, f.param)
	if err == nil {
		o.Requests, o.Time, err = budgetOf(f.budget)
	}
	if err == nil {
		c, err = f.Choices()
	}
	if err != nil {
		return o, c, err
	}
	o.Schemas = c.Translate.Schemas
	return o, c, nil
}

// read reads a side.
func (f diffFlags) read(cmd *cobra.Command, name string, choices convert.Choices) (diff.Side, *convert.Input, error) {
	var sources []input.Source
	var found diag.List
	var err error
	if input.IsRevision(name) {
		sources, found, err = input.Revision(name)
	} else {
		sources, found, err = input.Read([]string{name}, cmd.InOrStdin())
	}
	if err != nil {
		return diff.Side{}, nil, exit.Usage(err)
	}
	in, unbound := convert.ReadToCompare(sources, found, choices.Translate.Release)
	side := diff.Side{
		Policies:   slices.DeleteFunc(in.Policies, func(p *policy.Policy) bool { return p.Invalid }),
		Exceptions: in.Exceptions, Deployed: in.Deployed, Mutations: in.Mutations, Unbound: unbound, Params: in.Params,
		Cleanups: in.Cleanups, Unread: in.Unread,
	}
	if len(side.Policies)+len(side.Deployed.Policies)+len(side.Mutations.Policies)+len(side.Cleanups)+len(side.Unread) == 0 {
		if err := f.say(cmd, in.Found, in.Sources); err != nil {
			return side, in, err
		}
		return side, in, exit.Usage(fmt.Errorf("there is no policy in %s that can be compared", name))
	}
	return side, in, nil
}

// readCluster reads what a cluster has, with the types that it serves.
func (f diffFlags) readCluster(cmd *cobra.Command, o *diff.Options, choices convert.Choices, found *diag.List) (diff.Side, error) {
	c, err := f.connectTo.connect()
	if err != nil {
		return diff.Side{}, err
	}
	there, left, err := compare.Whole(cmd.Context(), compare.Options{Cluster: c, Translate: choices.Translate, Counts: func(string) bool { return true }})
	if err != nil {
		return diff.Side{}, exit.Runtime(err)
	}
	for _, err := range left {
		*found = append(*found, diag.Errorf(diag.Pos{}, diag.Unreadable, "left out: %v", err))
	}
	o.Schemas = there.Schemas
	for _, one := range there.Known {
		o.Params = append(o.Params, &unstructured.Unstructured{Object: one})
	}
	return diff.Side{
		Policies: there.Policies, Exceptions: there.Exceptions, Deployed: there.Deployed, Mutations: there.Mutations, Params: there.Known,
	}, nil
}

// reported fills the values that are rendered.
func (f diffFlags) reported(names []string, result diff.Compared) report.Diff {
	d := report.Diff{Old: names[0], New: names[1], Seed: f.seed, Ignored: append([]string{}, f.ignore...), Comparisons: []report.DiffComparison{}, NotJudged: []report.DiffNotJudged{}}
	for _, c := range result.Comparisons {
		one := report.DiffComparison{
			Old: partOf(c.Old, c.OldSeen, c.OldWhole), New: partOf(c.New, c.NewSeen, c.NewWhole),
			By: string(c.By), Whole: c.By == diff.ByWhole && len(c.Old.Rules)+len(c.New.Rules) > 2, Written: c.Written, Requests: c.Requests, LeftOut: c.LeftOut, Error: c.Error, Differences: []report.DiffDifference{},
		}
		for _, x := range c.Differences {
			one.Differences = append(one.Differences, differenceOf(x))
		}
		d.Comparisons = append(d.Comparisons, one)
	}
	for _, l := range result.Left {
		d.NotJudged = append(d.NotJudged, report.DiffNotJudged{Policy: l.Policy, Rule: l.Rule, Why: l.Why, File: l.Pos.File, Line: l.Pos.Line})
	}
	return report.NewDiff(d)
}

func partOf(p diff.Part, s diff.Seen, unpaired []string) report.DiffPart {
	return report.DiffPart{
		Policies: p.Policies, Rules: p.Rules, Unpaired: append([]string{}, unpaired...), File: p.Pos.File, Line: p.Pos.Line,
		Matched: s.Matched, Violated: s.Violated, Changed: s.Changed, Passed: s.Passed, Erred: s.Erred,
		Questions: s.Questions, BothWays: s.BothWays, Unseen: append([]string{}, s.Unseen...),
	}
}

func differenceOf(x diff.Difference) report.DiffDifference {
	out := report.DiffDifference{Kind: string(x.Aspect), Tried: x.Tried, Old: answerOf(x.Old), New: answerOf(x.New)}
	if x.Request == nil {
		return out
	}
	out.Summary, out.Object, out.OldObject, out.Line = x.Request.Summary(), x.Request.Object, x.Request.OldObject, json.RawMessage(x.Asked.String())
	if x.Aspect == diff.Object {
		out.Changes = textdiff.Values(madeOf(x.Asked, x.Old), madeOf(x.Asked, x.New))
	}
	for _, u := range x.Params {
		out.Params = append(out.Params, u.Object)
	}
	return out
}

// madeOf is what mutations made of the object of a request.
func madeOf(r *verify.Request, a diff.Answer) map[string]any {
	if a.After == nil {
		return r.Object
	}
	return a.After
}

func answerOf(a diff.Answer) report.DiffAnswer {
	out := report.DiffAnswer{Outcome: string(a.Outcome), Actions: append([]string{}, a.Actions...), Message: a.Text()}
	if a.Outcome == diff.Errs {
		out.FailurePolicy = "Fail"
		if a.Open {
			out.FailurePolicy = "Ignore"
		}
	}
	return out
}

func (f diffFlags) write(cmd *cobra.Command, d report.Diff, found diag.List) error {
	out := d.Document(f.verbose)
	out.Alerts = append(out.Alerts, readingAlerts(found)...)
	return f.writeDocument(cmd, cmd.OutOrStdout(), f.output, out, nil)
}

// saveFound writes a line for each request that was found; none make an empty file.
func (f diffFlags) saveFound(d report.Diff) error {
	var lines []json.RawMessage
	for _, c := range d.Comparisons {
		for _, x := range c.Differences {
			if x.Line != nil {
				lines = append(lines, x.Line)
			}
		}
	}
	return saveLines(f.save, lines, 0o644)
}
