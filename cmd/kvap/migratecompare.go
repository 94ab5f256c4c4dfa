package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/evaluate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/compare"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/evidence"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/record"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// compareFlags are the flags of migrate compare as the user gave them.
type compareFlags struct {
	sourceFlags
	resources []string
	reports   []string
	requests  []string
	audit     []string
	since     string
	param     []string
	verify    string
	wait      time.Duration
	every     time.Duration
	output    string
	save      string
	dryRun    string
	exempt    []string
	selector  string

	allNamespaces bool
	convert.Flags
	clusterFlags
	viewFlags
}

func newMigrateCompare() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare [POLICY...] [-f PATH]...",
		Short: "Gather evidence that the native policies and Kyverno say the same",
		Long: `Compare holds what takes Kyverno's place against Kyverno, rule by rule, by all
evidence that there is:

  objects   those that the cluster has (or --resource), as if they were created,
            changed and deleted, before both judges: the native policies, by the API
            server's own code, and Kyverno's rules, by the reference interpreter
  reports   what Kyverno's own PolicyReports say of these objects
  shadow    what kvap's webhook says of requests about rules without a native form, while
            Kyverno enforces them: an object that is there was admitted
  requests  that were recorded by kvap migrate record (--requests), before both judges;
            of mutate rules, what the native policies make of the object, path by path
  audit     an API server's audit log (--audit-log): what the native policies noted in
            shadow mode, against what Kyverno's webhooks denied; where the log is of the
            level Request, what they made of an object against what mutate rules make
  verify    requests that nobody has sent yet, made up from the policies

Without -f, the policies, their native objects, objects and reports are those of the
cluster, and the result is recorded there, for kvap migrate enforce. With -f, policies
and native objects are those of the files, and no cluster is asked. Compared are the
policies that are named, as NAME or NAMESPACE/NAME, or chosen by -l; else all of the
cluster's own and those of the namespace, or of all namespaces with -A.

The result has a row for each rule: what was SEEN by both sides, AGREED and DISAGREED,
what of it VIOLATED the rule, and what was UNCLEAR: one side's answer is not known.
Below are the reasons, what the evidence lacks, and each disagreement with what both
sides say. With --for, compare goes on looking, and shows how far it is on a terminal.

Exit codes: 0 no disagreement, 1 there is one, 2 usage or nothing was compared, 3 a
runtime error, 4 some of the input was left out.`,
		Example: `  kvap migrate compare
  kvap migrate compare -l team=platform -A
  kvap migrate compare require-labels --requests recorded/ --for 24h
  kvap migrate compare --audit-log /var/log/kubernetes/audit.log -o markdown
  kvap migrate compare -f policies/ -f native/ --resource dump.yaml --policy-reports reports.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCompare(cmd, args, f) },
	}
	fs := command.InOrder(cmd)
	f.sourceFlags.add(fs, "a file or folder of policies, and of the native objects in their place; no cluster is asked", "a kustomize folder to render and read, as if it were a file")
	fs.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	fs.StringVarP(&f.selector, "selector", "l", "", "policies with these labels")
	fs.StringSliceVar(&f.resources, "resource", nil, "a file or folder of objects; with a cluster, beside those that it has")
	fs.StringSliceVar(&f.reports, "policy-reports", nil, "a file or folder of Kyverno's reports, as kubectl get policyreports -A -o yaml prints them")
	fs.StringSliceVar(&f.requests, "requests", nil, "a file of recorded requests, or a folder of kvap migrate record")
	fs.StringSliceVar(&f.audit, "audit-log", nil, "an audit log of the API server, in JSON Lines, or a folder of them; with --for, read on where it is rotated")
	fs.StringVar(&f.since, "since", "", "what of the audit log counts: from this time on, as 2026-01-02T15:04:05Z, or so long ago, as 2h; all of it by default")
	fs.StringVar(&f.verify, "verify", "500", "made-up requests for each policy, a number or a time such as 5s; 0 for none")
	fs.StringSliceVar(&f.param, "param", nil, "a file of ConfigMaps, params, Namespaces and other objects that rules look up")
	fs.DurationVar(&f.wait, "for", 0, "go on looking for so long, for instance 24h; what comes in counts")
	fs.DurationVar(&f.every, "every", 30*time.Second, "with --for, how often to look")
	command.AddChoice(fs, &f.output, "output", "table", "table, json or markdown", "table", "json", "markdown")
	fs.StringVar(&f.save, "save", "", "write the requests that the sides disagree on to this file, for kvap eval --requests")
	command.AddChoice(fs, &f.dryRun, "dry-run", "none", "none; client: do not record the result; server: have the API server try it only", "none", "client", "server")
	fs.Lookup("dry-run").NoOptDefVal = "client"
	fs.StringSliceVar(&f.exempt, "exception-namespaces", []string{"none"}, "the namespaces whose PolicyExceptions count; none for none, * for all")
	addPackedByMatch(fs, &f.Flags)
	f.clusterFlags.add(fs)
	f.viewFlags.add(fs, "no progress, and of the diagnostics only errors", "notes too")
	command.AddRecursive(fs)
	return cmd
}

// check tells what is wrong with the flags.
func (f compareFlags) check(named bool) error {
	switch {
	case f.wait < 0:
		return fmt.Errorf("--for %s: want a time to go on for, such as 24h", f.wait)
	case f.every < time.Second:
		return fmt.Errorf("--every %s: want a second at least", f.every)
	case f.save == "-":
		return errSaveToOutput
	case f.selector != "" && named:
		return errors.New("name policies, or choose them by -l")
	}
	if err := f.checkView(); err != nil {
		return err
	}
	if err := input.StdinOnce(f.files, f.resources, f.reports, f.requests, f.audit, f.param); err != nil {
		return err
	}
	if _, err := command.ExceptionNamespaces(f.exempt); err != nil {
		return err
	}
	if _, err := f.from(time.Now()); err != nil {
		return err
	}
	_, _, err := f.search()
	return err
}

// from is when the part of an audit log begins that counts; zero for all of it.
func (f compareFlags) from(now time.Time) (time.Time, error) {
	if f.since == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(f.since); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, f.since)
	if err != nil {
		return at, fmt.Errorf("--since %s: want a time such as 2026-01-02T15:04:05Z, or how long ago, such as 2h", f.since)
	}
	return at, nil
}

// search is how much verify may look for.
func (f compareFlags) search() (requests int, during time.Duration, err error) {
	if requests, err = strconv.Atoi(f.verify); err == nil && requests >= 0 {
		return requests, 0, nil
	}
	if during, err = time.ParseDuration(f.verify); err == nil && during > 0 {
		return 0, during, nil
	}
	return 0, 0, fmt.Errorf("--verify %s: want a number of requests, or a time such as 5s", f.verify)
}

func runCompare(cmd *cobra.Command, names []string, f compareFlags) error {
	if err := f.check(len(names) > 0); err != nil {
		return err
	}
	choices, err := f.Choices()
	if err != nil {
		return err
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	c := &comparison{flags: f, choices: choices, stdin: cmd.InOrStdin(), progress: newProgress(cmd.ErrOrStderr(), f.quiet)}
	o, err := c.options(names)
	if err != nil {
		return err
	}
	c.Comparing = compare.New(o)
	c.Found = c.found
	err = c.Run(ctx, func(r report.Comparison) { c.live(cmd, r) })
	c.progress.clear()
	if err != nil {
		return exit.Runtime(err)
	}
	return c.finish(cmd)
}

// live shows the table so far, to those who look at a terminal.
func (c *comparison) live(cmd *cobra.Command, r report.Comparison) {
	w := cmd.OutOrStdout()
	if c.flags.wait == 0 || c.flags.quiet || c.flags.output != "table" || !isTerminal(w) {
		return
	}
	c.progress.clear()
	fmt.Fprint(w, "\x1b[H\x1b[2J")
	_ = c.flags.writeDocument(cmd, w, "table", r.Document(), nil) // the last one tells of a disk that is full
}

// finish writes the result, and records it in the cluster.
func (c *comparison) finish(cmd *cobra.Command) error {
	result := c.withUnread(c.Result())
	hideSecrets(result)
	unheard := c.unheard(result)
	if c.flags.wait > 0 && isTerminal(cmd.OutOrStdout()) && c.flags.output == "table" {
		fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
	}
	if err := c.flags.writeDocument(cmd, cmd.OutOrStdout(), c.flags.output, result.Document(), nil); err != nil {
		return exit.Runtime(err)
	}
	if err := saveDisagreements(c.flags.save, result); err != nil {
		return exit.Runtime(err)
	}
	var clean []string
	if c.Cluster != nil && c.flags.dryRun != "client" && result.Totals.Rules > result.Totals.Unseen {
		clean = c.Record(context.WithoutCancel(cmd.Context()), result)
	}
	if err := c.flags.say(cmd, append(c.Found, unheard...).Sort(), c.sources); err != nil {
		return err
	}
	for _, err := range c.Left {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: left out: %s\n", diag.Inert(err.Error()))
	}
	if len(clean) > 0 && c.flags.dryRun == "none" {
		fmt.Fprintf(cmd.ErrOrStderr(), "next: kvap migrate enforce %s\n", strings.Join(clean, " "))
	}
	return c.verdict(result)
}

// verdict is the exit code. A disagreement weighs more than what was left out.
func (c *comparison) verdict(r report.Comparison) error {
	switch {
	case r.Totals.Disagreed > 0:
		return exit.Findings(nil)
	case r.Totals.Rules == r.Totals.Unseen:
		return exit.Usage(errors.New("nothing was compared"))
	case c.Found.HasErrors(), len(c.Left) > 0, len(c.unread) > 0:
		return exit.Partly(nil)
	}
	return nil
}

// hideSecrets masks the values of Secrets in requests that are shown or saved: objects
// of the cluster have not been through the recorder.
func hideSecrets(r report.Comparison) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)                 // never fails
	mask, _ := record.NewMasker(nil, key) // there are no fields to be wrong
	for _, rule := range r.Rules {
		for i, d := range rule.Disagreements {
			var line map[string]any
			if kjson.Unmarshal(d.Request, &line) != nil {
				continue // there is none
			}
			if request, ok := line["request"].(map[string]any); ok {
				mask.Request(request)
			}
			rule.Disagreements[i].Request, _ = json.Marshal(line) // it came as JSON
		}
	}
}

// saveDisagreements writes a line for each request that the sides disagree on.
func saveDisagreements(path string, r report.Comparison) error {
	var lines []json.RawMessage
	for _, rule := range r.Rules {
		for _, d := range rule.Disagreements {
			if len(d.Request) > 0 {
				lines = append(lines, d.Request)
			}
		}
	}
	return saveLines(path, lines, 0o600)
}

// A comparison is a run of compare, and what the flags gave it.
type comparison struct {
	*compare.Comparing
	flags    compareFlags
	choices  convert.Choices
	stdin    io.Reader
	chosen   bool // by name or labels
	progress *progress
	sources  []input.Source
	found    diag.List // of reading what was given
	unread   []*policy.Unread
	requests *input.Tail
	audit    *input.Tail
}

// options are what the flags mean.
func (c *comparison) options(names []string) (o compare.Options, err error) {
	if !c.flags.fromFiles() {
		if o.Cluster, err = c.flags.connect(); err != nil {
			return o, err
		}
		if c.choices, err = c.flags.ChoicesFor(o.Cluster.Release, c.choices); err != nil {
			return o, err
		}
	}
	c.chosen = len(names) > 0 || c.flags.selector != ""
	o.Selection = live.Selection{Names: names, Every: c.flags.allNamespaces || o.Cluster == nil}
	if o.Cluster != nil {
		o.Selection.Namespace = o.Cluster.Namespace
	}
	if o.Selection.Labels, err = labels.Parse(c.flags.selector); err != nil {
		return o, fmt.Errorf("-l %s: %w", c.flags.selector, err)
	}
	o.Translate, o.Rewrite, o.Files, o.Open, o.ReadRequest = c.choices.Translate, c.choices.Rewrite, c.files, c.open, evaluate.ReadRequest
	o.Counts = excepts(c.flags.exempt)
	o.Search.Requests, o.Search.During, _ = c.flags.search() // checked
	o.Since, _ = c.flags.from(time.Now())                    // as above
	o.For, o.Every, o.TryOnly, o.Progress = c.flags.wait, c.flags.every, c.flags.dryRun == "server", c.progress.show
	return o, c.given(&o)
}

// given reads the objects that the flags name.
func (c *comparison) given(o *compare.Options) (err error) {
	if o.Resources, err = c.manifests("--resource", c.flags.resources); err != nil {
		return err
	}
	if o.Reports, err = c.manifests("--policy-reports", c.flags.reports); err != nil {
		return err
	}
	objects, err := c.manifests("--param", c.flags.param)
	for _, one := range objects {
		o.Known = append(o.Known, one.Objects()...)
	}
	return err
}

func (c *comparison) manifests(flag string, paths []string) ([]manifest.Object, error) {
	objects, sources, found, err := input.Manifests(flag, paths, c.stdin)
	c.sources, c.found = append(c.sources, sources...), append(c.found, found...)
	return objects, err
}

// files reads policies and native objects from files.
func (c *comparison) files() (*compare.Setting, error) {
	read, err := convert.Read(c.flags.files, c.flags.kustomize, c.stdin, c.choices.Translate.Release)
	if err != nil {
		return nil, err
	}
	c.sources = append(c.sources, read.Sources...)
	if read.Empty() {
		return nil, convert.NoPolicy(c.flags.files, c.flags.kustomize, nil, false)
	}
	if !c.chosen {
		c.unread = read.Unread
	}
	return &compare.Setting{
		Policies: read.Policies, Exceptions: read.Exceptions, Found: read.Found,
		Deployed: read.Deployed, Mutations: read.Mutations, Known: read.Params, Schemas: c.choices.Translate.Schemas,
	}, nil
}

// open begins to read lines.
func (c *comparison) open(lost func(path string)) (requests, audit compare.Lines, err error) {
	if c.requests, err = input.NewTail(c.flags.requests, c.stdin); err != nil {
		return nil, nil, fmt.Errorf("--requests: %w", err)
	}
	if c.audit, err = input.NewTail(c.flags.audit, c.stdin); err != nil {
		return nil, nil, fmt.Errorf("--audit-log: %w", err)
	}
	c.audit.Lost = lost
	return c.requests, c.audit, nil
}

// withUnread adds the policies that kvap does not read, of which nothing is compared.
func (c *comparison) withUnread(r report.Comparison) report.Comparison {
	if len(c.unread) == 0 {
		return r
	}
	rules := slices.Clone(r.Rules)
	for _, u := range c.unread {
		rules = append(rules, report.ComparedRule{
			Policy: strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"), Rule: u.Name, Target: report.Unsupported, Notes: []string{u.Reason},
		})
	}
	return report.NewComparison(rules)
}

// unheard warns of files that were named, and had nothing to say of any rule.
func (c *comparison) unheard(result report.Comparison) (found diag.List) {
	heard := map[evidence.Source]bool{}
	for _, r := range result.Rules {
		for _, e := range r.Evidence {
			heard[evidence.Source(e.Source)] = heard[evidence.Source(e.Source)] || e.Seen+e.Unclear > 0
		}
	}
	for _, one := range []struct {
		flag   string
		source evidence.Source
		paths  []string
		lines  *input.Tail
	}{
		{"--resource", evidence.Objects, c.flags.resources, nil}, {"--policy-reports", evidence.Reports, c.flags.reports, nil},
		{"--requests", evidence.Requests, c.flags.requests, c.requests}, {"--audit-log", evidence.Audit, c.flags.audit, c.audit},
	} {
		if len(one.paths) == 0 || heard[one.source] {
			continue
		}
		what := "nothing in it"
		if one.lines != nil {
			what = fmt.Sprintf("none of its %s", doc.Count(one.lines.Total(), "line", "lines"))
		}
		found = append(found, diag.Warnf(diag.Pos{File: one.paths[0]}, diag.MissingObject,
			"%s: %s is about a rule that is compared, so it is no evidence", one.flag, what))
	}
	return found
}
