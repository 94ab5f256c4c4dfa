package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/suite"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
)

// testFlags are the flags of test as the user gave them.
type testFlags struct {
	file   string
	output string
	only   bool
	strict bool
	filled bool
	convert.Flags
	registryFlags

	viewFlags
}

func newTest() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Run kyverno-test.yaml suites on the translation and the interpreter",
		Long: `Test looks for kyverno-test.yaml files in the folders, and runs what they say on
the policies they name: natively, with the API server's own code, and by the
reference interpreter. A row passes when both give what it expects; where a rule
has no native form, or a mocked value stands in for what a cluster would say, the
interpreter decides alone and the reason says so.

Of mutate and generate rules the interpreter decides, on the status and on the
objects that there should be. What is signed of images is judged by --registry-dir.
Excluded: rows that Kyverno passes although no rule looked at the resource, because a name is wrong
or nothing matches. Deviates: rows on which kvap differs from Kyverno on purpose.
None of these counts as passed; --strict makes them failures.

Native policies among a suite's policies are judged as they are, in place of the
translation of the rules that they say they were made from.

A policy file that does not exist is looked for by the policy's name in the folder
where it should be.

Exit codes: 0 nothing failed, 1 a row failed, 2 usage or no row could be judged,
3 a runtime error, 4 some suites were left out.`,
		Example: `  kvap test policies/
  kvap test . -o junit > results.xml
  kvap test . --fail-only -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("test needs a DIR: a folder with kyverno-test.yaml files, or such a file")
			}
			return test(cmd, args, f)
		},
	}
	flags := command.InOrder(cmd)
	flags.StringVar(&f.file, "file-name", "kyverno-test.yaml", "the name of suites to look for in folders")
	command.AddChoice(flags, &f.output, "output", "table", "table, wide, json, junit, sarif, markdown, github or html", "table", "wide", "json", "junit", "sarif", "markdown", "github", "html")
	flags.BoolVar(&f.only, "fail-only", false, "of the table only what did not pass")
	flags.BoolVar(&f.strict, "strict", false, "exit with 1 when a row deviates, was excluded or not judged")
	flags.BoolVar(&f.filled, "defaults", false, "fill resources in as an API server does, which the Kyverno command line does not")
	addChoices(flags, &f.Flags)
	f.registryFlags.add(flags)
	addMutations(flags, &f.Flags)
	f.viewFlags.add(flags, "no progress, of the diagnostics only errors, and of the table only what did not pass", "notes too, such as which file took the place of another")
	command.AddRecursive(flags)
	return cmd
}

func test(cmd *cobra.Command, dirs []string, f testFlags) error {
	if err := f.checkView(); err != nil {
		return err
	}
	runner, err := f.runner()
	if err != nil {
		return err
	}
	files, err := f.find(dirs)
	if err != nil {
		return err
	}
	var suites []report.TestSuite
	var found diag.List
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	for i, file := range files {
		progress.show("%d/%d suites: %s", i, len(files), file)
		read, ds := suite.Read(file)
		found = append(found, ds...)
		for _, s := range read {
			results, ds := runner.Run(cmd.Context(), s)
			found = append(found, ds...)
			if len(results.Rows) > 0 {
				suites = append(suites, tested(results))
			}
		}
	}
	progress.clear()
	found = found.Sort() // suites share policies and resources: what is said twice goes
	run := report.NewTestRun(suites)
	run.Strict = f.strict
	if err := f.write(cmd, run, found); err != nil {
		return exit.Runtime(err)
	}
	if err := f.say(cmd, found, textsOf(found)); err != nil {
		return err
	}
	return f.verdict(run.Totals, found)
}

func (f testFlags) runner() (suite.Runner, error) {
	choices, err := f.Choices()
	if err != nil {
		return suite.Runner{}, err
	}
	out := suite.Runner{Schemas: choices.Translate.Schemas, Translate: choices.Translate, Rewrite: choices.Rewrite, Defaults: f.filled}
	registry, err := f.registry()
	if registry != nil {
		out.Registry, out.Metadata = registry, registry.Image
	}
	return out, err
}

// find lists the suites in folders; a file that is named is one, whatever its name.
func (f testFlags) find(dirs []string) ([]string, error) {
	var files []string
	for _, dir := range dirs {
		err := input.Walk(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() && (d.Name() == f.file || path == dir) && !slices.Contains(files, path) {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, exit.Usage(input.PathError(err))
		}
	}
	if len(files) == 0 {
		return nil, exit.Usage(fmt.Errorf("there is no %s in %s", f.file, strings.Join(dirs, ", ")))
	}
	return files, nil
}

func tested(r suite.Results) report.TestSuite {
	out := report.TestSuite{Name: r.Suite.Name, File: filepath.ToSlash(r.Suite.File), Rows: []report.TestRow{}}
	for _, row := range r.Rows {
		out.Rows = append(out.Rows, report.TestRow{
			Policy: row.Policy, Rule: row.Rule, Form: row.Form, Resource: row.Resource, Expected: row.Expected, Result: string(row.Verdict),
			Reason: row.Reason, Native: row.Native, Interp: row.Interp, Message: row.Message, Difference: row.Difference, File: row.Pos.File, Line: row.Pos.Line,
		})
	}
	return out
}

func (f testFlags) write(cmd *cobra.Command, run report.TestRun, found diag.List) error {
	d := run.Document(report.TestTable{Wide: f.output == "wide", Problems: f.only || f.quiet})
	d.Alerts = append(d.Alerts, readingAlerts(found)...)
	return f.writeDocument(cmd, cmd.OutOrStdout(), f.output, d, nil)
}

// textsOf are the files that diagnostics speak of.
func textsOf(found diag.List) []input.Source {
	var out []input.Source
	seen := map[string]bool{}
	for _, d := range found {
		if d.File == "" || seen[d.File] {
			continue
		}
		seen[d.File] = true
		if info, err := os.Stat(d.File); err != nil || !info.Mode().IsRegular() || info.Size() > input.SizeLimit {
			continue
		}
		if data, err := os.ReadFile(d.File); err == nil {
			out = append(out, input.Source{Name: d.File, Data: data})
		}
	}
	return out
}

// verdict is the exit code: suites that were left out weigh most.
func (f testFlags) verdict(t report.TestTotals, found diag.List) error {
	switch {
	case found.HasErrors() && t.Tests == 0:
		return exit.Usage(nil)
	case found.HasErrors():
		return exit.Partly(nil)
	case t.Failed > 0:
		return exit.Findings(nil)
	case f.strict && t.Passed < t.Tests:
		return exit.Findings(fmt.Errorf("--strict: %d of %d rows did not pass", t.Tests-t.Passed, t.Tests))
	case t.Tests == 0:
		return exit.Usage(errors.New("the suites have no results, so nothing was judged"))
	case t.Passed+t.Deviating == 0: // likely it was pointed at the wrong place, or names are wrong, and nobody should take that for success
		return exit.Usage(fmt.Errorf("nothing was judged: of %d rows, %d are excluded and %d not judged; the table says why", t.Tests, t.Excluded, t.NotJudged))
	}
	return nil
}
