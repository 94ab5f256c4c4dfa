package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/verify"
)

// verifyFlags are the flags of verify as the user gave them.
type verifyFlags struct {
	sourceFlags
	budget    string
	seed      uint64
	output    string
	save      string
	param     []string
	allowThin bool
	convert.Flags

	viewFlags
}

func newVerify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Look for a request on which translation and interpreter disagree",
		Long: `Verify makes admission requests from each policy and the schemas of its kinds, and
judges them twice: by what the policy is translated to, with the API server's own
code, and by the reference interpreter. It varies the requests that showed
something new. Where the two disagree, it makes the request as small as it can and
prints it with what both sides say.

Where they do not, it prints the evidence: how many requests were tried and how
many the rule applies to, and what came out. PREDICATES counts what the rule asks
(its match, its conditions, the keys of its patterns): 3/4 says that three of four
were seen both to hold and to fail; -v lists the others. Agreement is thin where a
predicate was not seen both ways, or the rule never failed or never passed. That is
so too where a rule asks only for what the API server's schema requires, or forbids
what it refuses: no request that could be made tells the two apart. A native rule that
no request matched was not compared at all, and ends the run with exit code 1: give
it a larger budget, or what it depends on (--crds, --param), or say --allow-thin.

Rules without a native form have nothing to be held against. ConfigMaps that rules
look up are made up unless --param gives them.

The PATHs are policies as they were written. Native objects among them that kvap made
from such a policy judge in place of its translation: so what is deployed is held
against its source. Of a folder that convert wrote, name the files of native objects
and not remainder/, which holds parts of policies under the names of the whole.

The budget counts for each policy: a number of requests, or a time. The same seed
tries the same requests in the same order.

Exit codes: 0 no disagreement was found, 1 one was, or a rule was never matched, 2
usage or no policy could be read, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap verify policies/
  kvap verify policy.yaml --budget 30s --crds crds/
  kvap verify policies/ native/*.yaml
  kvap verify policies/ --budget 10000 --seed 7 -o json
  kvap verify policies/ --save found.jsonl; kvap eval policies/ --requests found.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd, slices.Concat(args, f.files), f)
		},
	}
	flags := command.InOrder(cmd)
	f.sourceFlags.add(flags, "a file or folder of policies, as if it were a PATH", "a kustomize folder to render and read")
	flags.StringVar(&f.budget, "budget", "2000", "for each policy, a number of requests or a time such as 10s")
	flags.Uint64Var(&f.seed, "seed", 1, "the same seed gives the same run")
	command.AddChoice(flags, &f.output, "output", "table", "table or json", "table", "json")
	flags.StringVar(&f.save, "save", "", "write the requests that were found to this file, for kvap eval --requests")
	flags.StringSliceVar(&f.param, "param", nil, "a file of ConfigMaps and other objects that rules look up")
	flags.BoolVar(&f.allowThin, "allow-thin", false, "a native rule that no request matched is no finding")
	addChoices(flags, &f.Flags)
	addMutations(flags, &f.Flags)
	f.viewFlags.add(flags, "no progress, and of the diagnostics only errors", "what was not seen both ways, and notes")
	command.AddRecursive(flags)
	return cmd
}

func runVerify(cmd *cobra.Command, paths []string, f verifyFlags) error {
	options, choices, err := f.options(paths)
	if err != nil {
		return err
	}
	in, err := f.read(cmd, paths, &options)
	if err != nil {
		return err
	}
	if err := input.NotAmong(in.Sources, "--save", f.save); err != nil {
		return err
	}
	choices.Rewrite(in.Policies)
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	var policies []report.VerifiedPolicy
	for i, p := range in.Policies {
		options.Progress = func(tried int) {
			progress.show("%d/%d %s: %d requests", i+1, len(in.Policies), p.Name, tried)
		}
		policies = append(policies, verifyOne(cmd.Context(), p, options))
	}
	progress.clear()
	for _, u := range in.Unread {
		policies = append(policies, report.VerifiedPolicy{Name: u.Name, Kind: u.Kind, Namespace: u.Namespace, File: u.Pos.File, Refused: []string{}, Rules: []report.VerifiedRule{
			{Rule: u.Name, Target: string(report.Unsupported), Verdicts: map[string]int{}, Unseen: []report.UnseenPredicate{}},
		}})
	}
	done := report.NewVerification(f.seed, policies)
	if err := f.writeDocument(cmd, cmd.OutOrStdout(), f.output, done.Document(f.verbose), nil); err != nil {
		return exit.Runtime(err)
	}
	if err := f.saveFound(done); err != nil {
		return exit.Runtime(err)
	}
	if err := f.say(cmd, in.Found, in.Sources); err != nil {
		return err
	}
	return f.verified(done.Totals, in)
}

// verified is the exit code: what was found weighs more than what was left out.
func (f verifyFlags) verified(t report.VerificationTotals, in *convert.Input) error {
	switch {
	case t.Disagreeing > 0 || t.Refused > 0 || t.NeverMatched > 0 && !f.allowThin:
		return exit.Findings(nil)
	case t.Unsearchable > 0 && t.Unsearchable == len(in.Policies):
		return &exit.Error{Code: exit.CodeRuntime}
	case in.Found.HasErrors() && t.Native == 0:
		return exit.Usage(nil)
	case t.Unsearchable > 0 || in.Found.HasErrors() || len(in.Unread) > 0:
		return exit.Partly(nil)
	}
	return nil
}

func (f verifyFlags) options(paths []string) (verify.Options, convert.Choices, error) {
	var c convert.Choices
	o := verify.Options{Setting: verify.Setting{Seed: f.seed}}
	if err := f.checkView(); err != nil {
		return o, c, err
	}
	switch {
	case len(paths) == 0 && f.kustomize == "":
		return o, c, errors.New("verify needs a PATH: a file or folder of policies")
	case f.save == "-":
		return o, c, errSaveToOutput
	}
	var err error
	if o.Requests, o.Time, err = budgetOf(f.budget); err != nil {
		return o, c, err
	}
	c, err = f.Choices()
	o.Translate = c.Translate
	return o, c, err
}

// budgetOf is a number of requests, or a time.
func budgetOf(text string) (requests int, during time.Duration, err error) {
	if requests, err = strconv.Atoi(text); err != nil {
		if during, err = time.ParseDuration(text); err != nil {
			return 0, 0, fmt.Errorf("--budget %s: want a number of requests, or a time such as 10s", text)
		}
	}
	if requests <= 0 && during <= 0 {
		return 0, 0, fmt.Errorf("--budget %s: want more than nothing", text)
	}
	return requests, during, nil
}

// read reads the policies that can be verified, and what they look up.
func (f verifyFlags) read(cmd *cobra.Command, paths []string, o *verify.Options) (*convert.Input, error) {
	objects, sources, found, err := input.Manifests("--param", f.param, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	in, err := convert.Read(paths, f.kustomize, cmd.InOrStdin(), o.Translate.Release)
	if err != nil {
		return nil, err
	}
	in.Sources = append(in.Sources, sources...)
	in.Found = append(append(append(in.Found, found...), in.Unclaimed()...), in.Unjudged...).Sort()
	in.Policies = slices.DeleteFunc(in.Policies, func(p *policy.Policy) bool { return p.Invalid })
	for _, object := range objects {
		in.Params = append(in.Params, object.Objects()...)
	}
	for _, one := range in.Params {
		o.Params = append(o.Params, &unstructured.Unstructured{Object: one})
	}
	o.Translate.Exceptions, o.Deployed = in.Exceptions, in.Deployed
	if in.Compilation.Empty() {
		if err := f.say(cmd, in.Found, in.Sources); err != nil {
			return nil, err
		}
		return nil, exit.Usage(fmt.Errorf("there is no policy in %s that can be verified", input.Names(paths, f.kustomize)))
	}
	return in, nil
}

func verifyOne(ctx context.Context, p *policy.Policy, o verify.Options) report.VerifiedPolicy {
	out := report.VerifiedPolicy{Name: p.Name, Kind: p.Kind, Namespace: p.Within(), File: p.Pos.File, Rules: []report.VerifiedRule{}, Refused: []string{}}
	evidence, err := verify.Policy(ctx, p, o)
	if err != nil {
		out.Error = err.Error()
	}
	out.Requests = evidence.Requests
	out.Refused = append(out.Refused, evidence.Refused...)
	for _, r := range evidence.Rules {
		out.Rules = append(out.Rules, verifiedRule(r))
	}
	return out
}

func verifiedRule(r verify.RuleEvidence) report.VerifiedRule {
	out := report.VerifiedRule{
		Rule: r.Rule, Target: string(r.Target), Matched: r.Matched, Verdicts: map[string]int{},
		Predicates: r.Predicates, BothWays: r.BothWays, Unseen: []report.UnseenPredicate{},
	}
	for status, n := range r.Verdicts {
		out.Verdicts[string(status)] = n
	}
	for _, u := range r.Unseen {
		out.Unseen = append(out.Unseen, report.UnseenPredicate{At: u.At, Holds: u.Holds, Fails: u.Fails})
	}
	if c := r.Counterexample; c != nil {
		out.Counterexample = &report.CounterexampleForm{
			Tried: c.Tried, Native: string(c.Native), NativeMessage: c.NativeMessage, Interp: string(c.Status), InterpMessage: c.Message,
			Summary: c.Request.Summary(), Object: c.Request.Object, OldObject: c.Request.OldObject, Line: json.RawMessage(c.Asked.String()),
		}
		for _, u := range c.Params {
			out.Counterexample.Params = append(out.Counterexample.Params, u.Object)
		}
	}
	return out
}

// saveFound writes a line for each counterexample; none make an empty file.
func (f verifyFlags) saveFound(v report.Verification) error {
	var lines []json.RawMessage
	for _, p := range v.Policies {
		for _, r := range p.Rules {
			if r.Counterexample != nil {
				lines = append(lines, r.Counterexample.Line)
			}
		}
	}
	return saveLines(f.save, lines, 0o644)
}

// saveLines writes lines to a file, if one is named.
func saveLines(path string, lines []json.RawMessage, mode os.FileMode) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	for _, line := range lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	return os.WriteFile(path, b.Bytes(), mode)
}

// errSaveToOutput refuses to mix what is saved with what is printed.
var errSaveToOutput = errors.New("--save - would mix the requests with the table; name a file, and ./- where it is called -")
