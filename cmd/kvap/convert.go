package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/folder"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// convertFlags are the flags of convert as the user gave them.
type convertFlags struct {
	sourceFlags
	output     string
	outputDir  string
	remainder  string
	report     string
	reportForm string
	strict     bool
	prune      bool
	force      bool
	empty      bool

	convert.Flags
	namespaces []string
	static     bool
	param      []string
	to         string
	kyverno    string

	viewFlags
}

func newConvert() *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert PATH...",
		Short: "Convert policies into ValidatingAdmissionPolicies and bindings",
		Long: `Convert reads policy files and folders, with - for standard input, and writes
ValidatingAdmissionPolicies, their bindings and params, and for Kubernetes 1.36 and newer
MutatingAdmissionPolicies: to standard output, or to a folder with one file for each
policy. Rules that have no native form stay behind; a folder gets them in remainder/, as
valid policies: of kvap.dev those that the webhook of kvap's controller carries out, and
in NAME.kyverno.yaml those that nothing but Kyverno does. With --remainder-kind kyverno
all are Kyverno's, which takes them up to its version 1.19. PolicyExceptions among the
input count.

A summary goes to standard error; of more than 40 policies it lists those that are
not native throughout, unless -v or -o wide asks for all. Where the report goes to
standard output, objects do not: name a folder for them with -o.

Exit codes: 0 clean, 1 a remainder under --strict, 2 usage or unreadable input,
3 a runtime error, 4 some of the input was left out, or a resource was guessed.
Where --strict finds a remainder as well, an error in the input exits with 4, and what
was left out or guessed otherwise with 1.`,
		Example: `  kvap convert policies/ > native.yaml
  kvap convert policies/ -o native/
  kustomize build overlay/ | kvap convert - --strict
  kvap convert policies/ --report - --report-format markdown`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConvert(cmd, args, f)
		},
	}
	fs := command.InOrder(cmd)
	f.sourceFlags.add(fs, "a file or folder to read, as if it were a PATH", "a kustomize folder to render and read")
	fs.StringVarP(&f.output, "output", "o", "", "yaml (default, also -) or json on standard output, or a folder to write; wide: yaml, and a summary of all policies")
	fs.StringVar(&f.outputDir, "output-dir", "", "a folder to write; -o then says the format of its files")
	command.AddChoice(fs, &f.remainder, "remainder-kind", convert.RemainderKvap, "what the policies of remainder/ are of: kvap (kvap.dev/v1alpha1, for its controller) or kyverno (for Kyverno up to 1.19)", convert.RemainderKvap, convert.RemainderKyverno)
	fs.BoolVar(&f.prune, "prune", false, "remove files of the folder that an earlier run wrote, and this one did not")
	fs.BoolVar(&f.force, "force", false, "replace files of the folder that kvap did not write, or that are among the input")
	fs.StringVar(&f.report, "report", "", "write a report to this file, or - for standard output")
	command.AddChoice(fs, &f.reportForm, "report-format", "", "text, json, markdown, sarif, junit, github or html (default by the file's ending; text without one)", "text", "json", "markdown", "sarif", "junit", "github", "html")
	fs.BoolVar(&f.strict, "strict", false, "exit with 1 when a rule has no native form, does something else than it seems, or a key stands twice")
	fs.BoolVar(&f.empty, "allow-empty", false, "it is no error where there is nothing to convert, and files without policies are passed over")
	addChoices(fs, &f.Flags)
	addMutations(fs, &f.Flags)
	fs.StringSliceVar(&f.namespaces, "exclude-namespaces", vap.DefaultExcludedNamespaces(), "namespaces that bindings leave out; none for none")
	fs.BoolVar(&f.static, "static", false, "make static manifests for an API server's own folder")
	fs.StringSliceVar(&f.param, "param", nil, "files of ConfigMaps and other params that --static writes into the policies")
	command.AddChoice(fs, &f.to, "to", convert.ToNative, "what policies become: native objects of the API server, or kyverno: ValidatingPolicies, MutatingPolicies and DeletingPolicies of policies.kyverno.io", convert.ToNative, convert.ToKyverno)
	command.AddChoice(fs, &f.kyverno, "kyverno-version", "1.19", "with --to kyverno, the version of Kyverno that they are for", convert.KyvernoVersions()...)
	f.viewFlags.add(fs, "no summary, and of the diagnostics only errors", "notes too, such as what was passed over, and all policies in the summary")
	command.AddRecursive(fs)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json", "wide"}, cobra.ShellCompDirectiveDefault)) // as in offer
	return cmd
}

func runConvert(cmd *cobra.Command, args []string, f convertFlags) error {
	paths, stdin := slices.Concat(args, f.files), cmd.InOrStdin()
	choices, err := f.Choices()
	if err != nil {
		return err
	}
	if choices.Emit.ExcludeNamespaces, err = command.ExcludedNamespaces(f.namespaces); err != nil {
		return err
	}
	choices.Translate.PackMutations = choices.Translate.Pack == translate.PackMatch
	choices.Emit.Static = f.static
	if f.to == convert.ToKyverno {
		if err := f.checkKyverno(cmd); err != nil {
			return err
		}
		choices, f.remainder = choices.ForKyverno(f.kyverno), convert.RemainderKyverno
	} else if cmd.Flags().Changed("kyverno-version") {
		return errors.New("--kyverno-version is for --to kyverno")
	}
	out, err := f.destination()
	if err != nil {
		return err
	}
	var params []input.Source
	if choices.Emit.Params, params, err = f.staticParams(stdin); err != nil {
		return err
	}
	if len(paths) == 0 && f.kustomize == "" {
		return errors.New("convert needs a PATH: a file, a folder, or - for standard input")
	}
	if err := f.checkView(); err != nil {
		return err
	}
	sources, unread, err := input.Sources(paths, f.kustomize, stdin)
	if err != nil {
		return err
	}
	input.Sort(sources)
	for i := range sources {
		sources[i].Found = sources[i].Found || f.empty
	}
	if err := input.NotAmong(sources, "--report", f.report); err != nil {
		return err
	}
	defer letGarbageBe(100, 64<<20)()
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	var done *convert.Compilation
	progress.during(fmt.Sprintf("converting %s", doc.Count(len(sources), "file", "files")), func() { done = convert.Compile(sources, choices) })
	progress.clear()
	done.Found = append(append(done.Found, unread...).Sort(), done.Relations()...).Sort()
	wrote := ""
	if !done.Empty() {
		if wrote, err = out.Write(cmd.OutOrStdout(), done, slices.Concat(convert.Inputs(sources), params)); err != nil {
			return exit.Runtime(err)
		}
	}
	conversion := done.Report()
	conversion.ExcludedNamespaces = choices.Emit.ExcludeNamespaces
	if done.Kyverno == nil {
		conversion.Meets = append(conversion.Meets, done.Meets(choices.Translate.Pack, f.meetingsCompared())...)
	}
	if err := f.tell(cmd, sources, done, conversion, wrote); err != nil {
		return exit.Runtime(err)
	}
	// of cleanup policies it was said who runs them
	onSchedule := slices.ContainsFunc(done.Found, func(d diag.Diagnostic) bool { return d.Code == diag.OnSchedule })
	if done.Empty() && !onSchedule && (!f.empty || done.Found.HasErrors()) {
		return convert.NoPolicy(paths, f.kustomize, done.Found, f.verbose)
	}
	return verdict(done, conversion, f.strict)
}

// checkKyverno refuses what means nothing for policies that Kyverno carries out.
func (f convertFlags) checkKyverno(cmd *cobra.Command) error {
	for _, flag := range []string{"static", "param", "params", "pack", "guard", "exclude-namespaces", "mutations", "remainder-kind"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for native objects; --to kyverno goes without it", flag)
		}
	}
	return nil
}

// tell writes the report, the diagnostics and the summary, with what was wrote.
func (f convertFlags) tell(cmd *cobra.Command, sources []input.Source, done *convert.Compilation, conversion report.Conversion, wrote string) error {
	if err := f.writeReport(cmd, conversion, func() []report.Pair { return done.Pairs(sources) }); err != nil {
		return err
	}
	if err := f.say(cmd, done.Found, sources); err != nil {
		return err
	}
	if f.quiet || done.Empty() { // of nothing there is no summary
		return nil
	}
	if err := f.writeDocument(cmd, cmd.ErrOrStderr(), "table", conversion.Summary(f.verbose || f.output == "wide"), nil); err != nil {
		return err
	}
	_, err := io.WriteString(cmd.ErrOrStderr(), wrote)
	return err
}

// meetingsCompared is how many resources are held against what --pack match would come
// to: all in a report, and those that the summary names.
func (f convertFlags) meetingsCompared() int {
	switch {
	case f.report != "":
		return math.MaxInt
	case f.quiet:
		return 0
	}
	return report.MeetingsShown
}

// staticParams are the objects of --param, and their files.
func (f convertFlags) staticParams(stdin io.Reader) ([]*unstructured.Unstructured, []input.Source, error) {
	if len(f.param) > 0 && !f.static {
		return nil, nil, errors.New("--param is for --static: without it, params stay objects of their own")
	}
	objects, sources, found, err := input.Manifests("--param", f.param, stdin)
	if err != nil {
		return nil, nil, err
	}
	if err := found.Err(); err != nil {
		return nil, nil, exit.Usage(fmt.Errorf("--param: %w", err))
	}
	var out []*unstructured.Unstructured
	for _, o := range objects {
		out = append(out, &unstructured.Unstructured{Object: o.Value})
	}
	return out, sources, nil
}

// verdict is the exit code: an error in the input weighs more than a remainder, and under
// strict a remainder more than what else was left out or guessed.
func verdict(done *convert.Compilation, c report.Conversion, strict bool) error {
	switch {
	case done.Found.HasErrors() && c.Totals.Native+c.Totals.Webhook+c.Totals.CEL+c.Totals.Left == 0:
		return exit.Usage(nil)
	case done.Found.HasErrors():
		return exit.Partly(nil)
	case strict && c.Totals.Left > 0:
		return exit.Findings(fmt.Errorf("--strict: %d of %d rules have no form in Kyverno's kinds", c.Totals.Left, c.Totals.Rules))
	case strict && c.Totals.Native+c.Totals.CEL < c.Totals.Rules:
		return exit.Findings(fmt.Errorf("--strict: %d of %d rules have no native form", c.Totals.Rules-c.Totals.Native, c.Totals.Rules))
	case strict && done.DuplicateKeys() > 0:
		return exit.Findings(fmt.Errorf("--strict: %s twice in a mapping, see %s", doc.Count(done.DuplicateKeys(), "key stands", "keys stand"), diag.DuplicateKey))
	case strict && slices.ContainsFunc(done.Rules, withCode(diag.MutationOrder)):
		return exit.Findings(fmt.Errorf("--strict: policies may write the same field in any order, see %s", diag.MutationOrder))
	case strict && slices.ContainsFunc(done.Rules, withCode(diag.LostZero)):
		return exit.Findings(fmt.Errorf("--strict: a rule asks for what another policy writes as empty, see %s", diag.LostZero))
	case strict && slices.ContainsFunc(done.Rules, seemsOtherwise):
		return exit.Findings(fmt.Errorf("--strict: a rule does something else than it seems, as the warnings from %s to %s and %s say", diag.DeniesEvery, diag.OptionalField, diag.NeedsNoObject))
	case strict && c.Totals.Guessed > 0:
		return exit.Findings(fmt.Errorf("--strict: the resources of %d of %d rules are guessed", c.Totals.Guessed, c.Totals.Rules))
	case len(done.Unread) > 0, done.Guessed():
		return exit.Partly(nil)
	}
	return nil
}

// seemsOtherwise tells of a rule that denies all or nothing, errs, or is read otherwise than who
// wrote it will have meant.
func seemsOtherwise(r *compile.Rule) bool {
	return slices.ContainsFunc(r.Codes, func(c diag.Code) bool {
		return c == diag.NeedsNoObject || diag.DeniesEvery <= c && c <= diag.OptionalField
	})
}

// withCode tells of rules with a code.
func withCode(code diag.Code) func(*compile.Rule) bool {
	return func(r *compile.Rule) bool { return slices.Contains(r.Codes, code) }
}

// destination says where objects go. Two things on standard output would be one
// thing nobody can read, so a report there takes the objects' place.
func (f convertFlags) destination() (convert.Destination, error) {
	if f.reportForm != "" && f.report == "" {
		return convert.Destination{}, errors.New("--report-format needs --report FILE, or --report - for standard output")
	}
	if ending := filepath.Ext(f.report); f.reportForm == "" && reportFormats[strings.ToLower(ending)] == "" {
		return convert.Destination{}, fmt.Errorf("--report %s: no format has the ending %s; say with --report-format which one is meant", f.report, ending)
	}
	switch f.output {
	case "-":
		f.output = "yaml"
	case "wide": // the summary is
		f.output = ""
	}
	d := convert.Destination{Dir: f.outputDir, Format: f.output, Prune: f.prune, Force: f.force, Remainder: f.remainder}
	switch f.output {
	case "", "yaml", "json":
	case "table", "name", "text", "jsonl", "xml", "markdown", "html", "sarif", "junit", "github":
		return d, fmt.Errorf("-o %s: convert writes yaml, json or a folder; a folder of that name is ./%s", f.output, f.output)
	default:
		if f.outputDir != "" {
			return d, fmt.Errorf("-o %s: with --output-dir, -o is yaml or json", f.output)
		}
		if err := isNoFile(f.output); err != nil {
			return d, err
		}
		d.Dir, d.Format = f.output, ""
	}
	if f.prune && d.Dir == "" {
		return d, errors.New("--prune is for a folder; name one with -o")
	}
	if f.force && d.Dir == "" {
		return d, errors.New("--force is for a folder; name one with -o")
	}
	if f.report == "-" && d.Dir == "" {
		if f.output != "" {
			return d, fmt.Errorf("-o %s and --report - both want standard output; write one of them to a file", f.output)
		}
		d.Silent = true
	}
	return d, nil
}

// isNoFile refuses what is meant for a file: -o names a format or a folder.
func isNoFile(output string) error {
	info, err := os.Stat(output)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("-o %s: this is a file; -o takes yaml, json or a folder, and > writes to a file", output)
	}
	switch strings.ToLower(filepath.Ext(output)) {
	case ".yaml", ".yml", ".json":
		if err != nil { // there is no folder of that name
			return fmt.Errorf("-o %s: -o takes yaml, json or a folder; for one file write > %s", output, output)
		}
	}
	if word := strings.ToLower(output); word == "yaml" || word == "json" || word == "yml" {
		return fmt.Errorf("-o %s: the formats are yaml and json; a folder of that name is ./%s", output, output)
	}
	return nil
}

// reportFormats are the formats of reports by the endings of their files.
var reportFormats = map[string]string{
	".json": "json", ".md": "markdown", ".sarif": "sarif", ".xml": "junit", ".html": "html", ".txt": "text", "": "text",
}

func (f convertFlags) writeReport(cmd *cobra.Command, c report.Conversion, pairs func() []report.Pair) error {
	if f.report == "" {
		return nil
	}
	format := cmp.Or(f.reportForm, reportFormats[strings.ToLower(filepath.Ext(f.report))])
	view := report.ConversionView{Strict: f.strict}
	if format == "html" {
		view.Pairs = pairs()
	}
	var b strings.Builder
	if err := c.Document(view).Write(&b, doc.Options{Format: format, By: by(cmd)}); err != nil {
		return err
	}
	if f.report == "-" {
		_, err := io.WriteString(cmd.OutOrStdout(), b.String())
		return err
	}
	if err := folder.WriteFile(f.report, []byte(b.String())); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
