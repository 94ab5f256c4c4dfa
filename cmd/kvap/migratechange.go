package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/infiles"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// changeFlags are the flags of the verbs that change where a policy stands.
type changeFlags struct {
	clusterFlags
	sourceFlags
	all       bool
	every     bool // namespaces
	selector  string
	output    string
	outputDir string
	remainder string
	force     bool
	dryRun    string
	yes       bool
	ownedToo  bool
	wait      time.Duration
	settle    time.Duration

	accept string
	maxAge time.Duration
	way    string
	to     string
}

// A changeVerb is what the verbs differ in.
type changeVerb struct {
	name, short, long, example string
	confirm                    bool
	flags                      func(*cobra.Command, *changeFlags)
}

func newMigrateChange(v changeVerb) *cobra.Command {
	f := changeFlags{way: "auto", to: string(v1alpha1.StageNone)}
	cmd := &cobra.Command{
		Use: v.name + " [POLICY...]", Short: v.short, Example: v.example,
		Long: v.long + `

Policies are named as NAME or NAMESPACE/NAME, or chosen by --all or -l. The cluster
needs a running kvap-controller. Each policy has a record (kubectl get migrations),
into which the intention is written first; a run that was ended in between, however,
is gone on with by running it again.

--output-dir writes what would be done as kustomize components, one for each step and
policy, and changes nothing in a cluster; with -f, none is asked. They have policies of
kvap.dev take the place of Kyverno's, into which nothing is written: Kyverno 1.20 takes no
change of them. --remainder-kind kyverno is for those who stay on 1.19 or earlier. A policy
that Argo CD, Flux or Helm manages is refused otherwise.

Exit codes: 0 done, 1 refused, 2 usage or unreadable input, 3 a runtime error, 4 some
of the policies were left.`,
		RunE: func(cmd *cobra.Command, args []string) error { return runMigrateChange(cmd, v, args, f) },
	}
	fs := command.InOrder(cmd)
	if v.flags != nil {
		v.flags(cmd, &f)
	}
	fs.BoolVar(&f.all, "all", false, "all policies")
	fs.BoolVarP(&f.every, "all-namespaces", "A", false, "namespaced policies of all namespaces")
	fs.StringVarP(&f.selector, "selector", "l", "", "policies with these labels")
	f.sourceFlags.add(fs, "take the policies of this file or folder; with --output-dir no cluster is asked", "a kustomize folder to render and read, as with -f")
	command.AddChoice(fs, &f.output, "output", "table", "table, json or markdown", "table", "json", "markdown")
	fs.StringVar(&f.outputDir, "output-dir", "", "write what would be done into this folder, as kustomize components, in place of doing it")
	command.AddChoice(fs, &f.remainder, "remainder-kind", convert.RemainderKvap, "with --output-dir, what the steps write into: kvap (policies of kvap.dev/v1alpha1) or kyverno (Kyverno's own, which it takes up to 1.19)", convert.RemainderKvap, convert.RemainderKyverno)
	fs.BoolVar(&f.force, "force", false, "replace files of that folder that kvap did not write, or that were changed since")
	command.AddChoice(fs, &f.dryRun, "dry-run", "none", "none; client: say what would be done; server: have the API server try it too", "none", "client", "server")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fs.BoolVar(&f.ownedToo, "ignore-gitops", false, "also change policies that Argo CD, Flux or Helm manages")
	fs.DurationVar(&f.wait, "wait", 5*time.Minute, "how long to wait for the controller or Kyverno; with several policies, two seconds longer for each")
	fs.DurationVar(&f.settle, "settle", 5*time.Second, "for how long a webhook must be registered to count as judging")
	f.clusterFlags.add(fs)
	return cmd
}

func newMigrateShadow() *cobra.Command {
	return newMigrateChange(changeVerb{
		name: migrate.Shadow, short: "Have policies judged beside Kyverno, without effect",
		long: `Shadow has the controller make the native objects of policies with the action Audit,
never Deny, and waits until they are seen to judge. Rules without a native form are
judged by kvap's webhook, which admits always and changes nothing. Kyverno goes on as
before, and nothing is written into its policies: the controller goes by the record. What both find is held against Kyverno by kvap migrate compare.`,
		example: `  kvap migrate shadow require-owner
  kvap migrate shadow --all --dry-run=client
  kvap migrate shadow -f policies/ --output-dir migration/`,
	})
}

func newMigrateEnforce() *cobra.Command {
	return newMigrateChange(changeVerb{
		name: migrate.Enforce, confirm: true, short: "Have kvap enforce policies, then switch Kyverno off for them",
		long: `Enforce has kvap enforce policies beside Kyverno, waits until that is seen, and then
switches Kyverno off for exactly these policies. It refuses without a comparison that
is clean and no older than --max-age (kvap migrate compare); --accept goes on all the
same, with the reason in the record.

--way says how Kyverno is switched off. admission leaves the policy where it is, with
admission: false, which Kyverno takes for policies with only validate rules that are
scanned in the background too. remove deletes it, and a policy of kvap.dev with the
same spec carries on. replace leaves Kyverno the rules that nothing else carries out;
a policy of kvap.dev has the others. auto takes the first that is possible.`,
		example: `  kvap migrate enforce require-owner
  kvap migrate enforce require-owner --accept "audit only, compared by hand" --yes
  kvap migrate enforce -f policies/ --accept "compared in staging" --output-dir migration/`,
		flags: func(cmd *cobra.Command, f *changeFlags) {
			fs := cmd.Flags()
			fs.StringVar(&f.accept, "accept", "", "why it may go on without a comparison that speaks for it")
			fs.DurationVar(&f.maxAge, "max-age", 24*time.Hour, "how old a comparison may be")
			command.AddChoice(fs, &f.way, "way", "auto", "how Kyverno is switched off: auto, admission, replace or remove", "auto", "admission", "replace", "remove")
		},
	})
}

func newMigrateRollback() *cobra.Command {
	return newMigrateChange(changeVerb{
		name: migrate.Rollback, confirm: true, short: "Go back: Kyverno enforces, then kvap lets go",
		long: `Rollback leads back in the reverse order, from the record: Kyverno's policy is made
or switched on again, seen to be registered, and then kvap lets go. It works from
wherever a run was ended, and where the policy was deleted meanwhile. What was changed
in a policy since stays, but for one that was deleted or replaced: that is made again as
it was recorded.

With -f and --output-dir, the steps lead back from where those of enforce have led, to
the policies as they are in the files.`,
		example: `  kvap migrate rollback require-owner
  kvap migrate rollback --all --yes
  kvap migrate rollback require-owner --to shadow
  kvap migrate rollback -f policies/ --output-dir migration/`,
		flags: func(cmd *cobra.Command, f *changeFlags) {
			fs := cmd.Flags()
			command.AddChoice(fs, &f.way, "way", "auto", "with -f, how Kyverno was switched off, where that was said to enforce", "auto", "admission", "replace", "remove")
			command.AddChoice(fs, &f.to, "to", string(v1alpha1.StageNone), "where to end: none, as before; or shadow", "none", "shadow")
			fs.StringVar(&f.accept, "accept", "", "why changes to a policy of kvap.dev may be lost")
		},
	})
}

func runMigrateChange(cmd *cobra.Command, v changeVerb, names []string, f changeFlags) error {
	switch {
	case len(names) == 0 && !f.all && f.selector == "" && !f.fromFiles():
		return fmt.Errorf("migrate %s needs a POLICY, or --all", v.name)
	case len(names) > 0 && (f.all || f.selector != ""):
		return errors.New("name policies, or choose them by --all or -l")
	}
	goal := migrate.Goal{
		Verb: v.name, Accept: f.accept, MaxAge: f.maxAge, To: v1alpha1.MigrationStage(f.to), InFiles: f.outputDir != "",
		Apart: f.outputDir != "" && f.remainder == convert.RemainderKvap,
	}
	if f.way != "auto" {
		goal.Way = v1alpha1.MigrationWay(f.way)
	}
	if v.name == migrate.Adopt && f.fromFiles() {
		return f.adoptFiles(cmd, v, names)
	}
	if f.fromFiles() && f.outputDir != "" {
		return f.runOffline(cmd, goal, names)
	}
	ctx, stop := command.UntilTold(cmd)
	defer stop()
	progress := newProgress(cmd.ErrOrStderr(), false)
	var left []report.HandedOverPolicy
	if f.fromFiles() {
		var err error
		if names, left, err = f.namesInFiles(cmd, names); err != nil {
			return err
		}
	}
	h, err := f.newHandover(ctx, cmd, goal, names, progress)
	if err != nil {
		return err
	}
	planned := h.Plan()
	if f.dryRun == "none" && f.outputDir == "" { // what is planned is done in the cluster
		if err := f.ask(cmd, v, planned); err != nil {
			return err
		}
	}
	err = f.carryOut(ctx, h, &planned, progress)
	planned.Policies = append(planned.Policies, left...)
	if writeErr := planned.Document().Write(cmd.OutOrStdout(), doc.Options{Format: f.output}); err == nil {
		err = writeErr
	}
	if err != nil {
		return exit.Runtime(err)
	}
	return handoverVerdict(planned)
}

// carryOut does what is planned in the cluster, or tries it, or writes it to a folder.
func (f changeFlags) carryOut(ctx context.Context, h *live.Handover, planned *report.Handover, progress *progress) (err error) {
	switch {
	case f.dryRun != "none":
		planned.Dry = f.dryRun
		if f.dryRun == "server" {
			h.TryOut(ctx, planned)
		}
		return nil
	case f.outputDir != "":
		planned.Folder = f.outputDir
		components, err := h.Components()
		if err != nil {
			return err
		}
		return infiles.WriteComponents(f.outputDir, components, f.force)
	}
	*planned, err = h.Run(ctx)
	progress.clear()
	return err
}

// reader reads a cluster for the verbs of migrate.
func (f clusterFlags) reader(settle time.Duration) (*live.Reader, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		return nil, err
	}
	out, err := live.NewReader(c, settle, choices.Translate)
	return out, exit.Runtime(err)
}

// newHandover reads the cluster, and chooses its policies.
func (f changeFlags) newHandover(ctx context.Context, cmd *cobra.Command, goal migrate.Goal, names []string, progress *progress) (*live.Handover, error) {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("-l %s: %w", f.selector, err))
	}
	reader, err := f.reader(f.settle)
	if err != nil {
		return nil, err
	}
	first, err := reader.Read(ctx, goal.Verb)
	if err != nil {
		return nil, exit.Runtime(err)
	}
	chosen, err := first.Choose(live.Selection{Names: names, Namespace: reader.Namespace, Every: f.every || f.all, Labels: selector})
	if err != nil {
		return nil, exit.Usage(err)
	}
	return live.NewHandover(ctx, reader, first, chosen, goal, live.Options{
		OwnedToo: f.ownedToo || f.outputDir != "", Wait: f.wait, Progress: progress.show,
		Tell: func(line string) { progress.clear(); fmt.Fprintln(cmd.ErrOrStderr(), diag.Inert(line)) },
	}), nil
}

// ask shows what is about to be done, on a terminal, and waits for a yes.
func (f changeFlags) ask(cmd *cobra.Command, v changeVerb, planned report.Handover) error {
	moves := 0
	for _, p := range planned.Policies {
		moves += len(p.Moves)
	}
	if !v.confirm || f.yes || moves == 0 {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(cmd.ErrOrStderr()) || !isTerminal(in) {
		return exit.Usage(fmt.Errorf("migrate %s changes what judges requests; say --yes, or see with --dry-run=client what it does", v.name))
	}
	planned.Dry = report.Asked
	if err := planned.Document().Write(cmd.ErrOrStderr(), doc.Options{}); err != nil {
		return exit.Runtime(err)
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Go on? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return exit.Runtime(err)
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return exit.Findings(errors.New("nothing was changed"))
	}
	return nil
}

// handoverVerdict is the exit code: refused where nothing was done, partly where some was.
func handoverVerdict(h report.Handover) error {
	switch left := h.Left(); {
	case left == 0:
		return nil
	case left == len(h.Policies):
		return exit.Findings(nil)
	}
	return exit.Partly(nil)
}

func newMigrateAdopt() *cobra.Command {
	return newMigrateChange(changeVerb{
		name: migrate.Adopt, confirm: true, short: "Have policies in kvap's kinds in place of Kyverno's",
		long: `Adopt makes a policy of kvap.dev of each policy that kvap enforces, with the same name
and spec, waits until it is seen to be enforced, and then deletes the one of Kyverno's
kind, which stays in the record. After that, Kyverno's definitions can go.

With -f it changes apiVersion in files, and nothing else in them: comments stay. With
--output-dir the changed files go there.`,
		example: `  kvap migrate adopt --all
  kvap migrate adopt -f policies/ --yes
  kvap migrate adopt -f policies/ --output-dir adopted/`,
	})
}

// adoptFiles changes apiVersion of the policies in files.
func (f changeFlags) adoptFiles(cmd *cobra.Command, v changeVerb, names []string) error {
	if len(names) > 0 || f.selector != "" || f.kustomize != "" || f.dryRun == "server" {
		return fmt.Errorf("migrate adopt -f takes whole files: no names, no -l, no -k and no --dry-run=server")
	}
	if f.outputDir == "" && slices.Contains(f.files, "-") {
		return errors.New("migrate adopt -f - has no file to change; say --output-dir, for the adopted ones")
	}
	sources, unread, err := input.Sources(f.files, "", cmd.InOrStdin())
	if err != nil {
		return err
	}
	if unread.HasErrors() {
		return exit.Usage(unread[0])
	}
	adopted, err := infiles.Adopt(sources, f.outputDir)
	if err != nil {
		return exit.Usage(err)
	}
	out := adopted.Handover
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	}
	if len(out.Policies)+adopted.Already == 0 {
		return noPolicyToMove(f.files, "")
	}
	if out.Dry == "" && f.outputDir == "" {
		if err := f.ask(cmd, v, out); err != nil {
			return err
		}
	}
	if out.Dry == "" {
		if err := adopted.Write(f.force); err != nil {
			return exit.Runtime(err)
		}
	}
	if err := out.Document().Write(cmd.OutOrStdout(), doc.Options{Format: f.output}); err != nil {
		return exit.Runtime(err)
	}
	return handoverVerdict(out)
}

// compileFiles reads and compiles the policies of -f and -k.
func (f changeFlags) compileFiles(cmd *cobra.Command) (*convert.Compilation, error) {
	sources, unread, err := input.Sources(f.files, f.kustomize, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		return nil, err
	}
	done := convert.Compile(sources, choices)
	done.Found = append(done.Found, unread...).Sort()
	if err := (viewFlags{quiet: true}).say(cmd, done.Found, sources); err != nil {
		return nil, err
	}
	if done.Empty() {
		return nil, noPolicyToMove(f.files, f.kustomize)
	}
	return done, nil
}

// noPolicyToMove says that there is nothing to do.
func noPolicyToMove(files []string, kustomize string) error {
	return exit.Usage(fmt.Errorf("there is no policy in %s", input.Names(files, kustomize)))
}

// namesInFiles are the names of the policies of the files that are meant, and what is
// left of the files.
func (f changeFlags) namesInFiles(cmd *cobra.Command, names []string) (out []string, left []report.HandedOverPolicy, err error) {
	done, err := f.compileFiles(cmd)
	if err != nil {
		return nil, nil, err
	}
	if len(done.Policies) == 0 {
		return nil, nil, noPolicyToMove(f.files, f.kustomize)
	}
	choice := infiles.Choice{Names: names, Selector: f.selector}
	chosen, err := choice.Of(done.Policies)
	for _, p := range chosen {
		out = append(out, p.FullName())
	}
	return out, choice.LeftUnread(done), err
}

// runOffline writes what would be done to the policies of files, and asks no cluster.
func (f changeFlags) runOffline(cmd *cobra.Command, goal migrate.Goal, names []string) error {
	if f.dryRun == "server" {
		return errors.New("--dry-run=server asks a cluster, and with -f and --output-dir none is asked")
	}
	done, err := f.compileFiles(cmd)
	if err != nil {
		return err
	}
	out, components, err := infiles.Steps(done, goal, infiles.Choice{Names: names, Selector: f.selector})
	if err != nil {
		return err
	}
	out.Folder = f.outputDir
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	} else if err := infiles.WriteComponents(f.outputDir, components, f.force); err != nil {
		return exit.Runtime(err)
	}
	if err := out.Document().Write(cmd.OutOrStdout(), doc.Options{Format: f.output}); err != nil {
		return exit.Runtime(err)
	}
	if done.Found.HasErrors() {
		return exit.Partly(nil)
	}
	return handoverVerdict(out)
}
