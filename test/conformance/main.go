package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

func main() {
	var c config
	flag.StringVar(&c.corpus, "corpus", "../shared/corpus", "the folder of the corpus")
	flag.StringVar(&c.only, "policy", "", "only policies whose folder has this in its name; generated is the folder of the generated rules")
	flag.StringVar(&c.release, "kubernetes-version", cel.Default.String(), "the release to translate for")
	flag.BoolVar(&c.interp, "interp", true, "ask the reference interpreter as well")
	flag.StringVar(&c.guard, "guard", string(translate.GuardAuto), "whether objects have guards: auto or never")
	flag.StringVar(&c.pack, "pack", string(translate.PackPolicy), "what shares an object: rule, policy or match")
	flag.BoolVar(&c.typeCheck, "typecheck", false, "print what the API server's type checker says of the objects; no failure")
	flag.StringVar(&c.to, "to", "", "kyverno: judge by policies of Kyverno's kinds in CEL, made of the native ones, and by nothing else")
	flag.BoolVar(&c.verbose, "v", false, "print each disagreement")
	flag.IntVar(&c.max, "max", 5, "with -v, how many disagreements of a rule to print; 0 for all")
	flag.Parse()
	ok, err := run(os.Stdout, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type config struct {
	corpus, only, release string
	to                    string
	guard, pack           string
	interp, typeCheck     bool
	verbose               bool
	max                   int
}

// run tells whether all is as recorded.
func run(w io.Writer, c config) (ok bool, err error) {
	index, err := readIndex(c.corpus)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(w, "no corpus at %s: nothing to judge\nconformance: 0 passed, 0 failed\n", c.corpus)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	compiler, err := newCompiler(c.release)
	if err != nil {
		return false, err
	}
	compiler.options.Guard, compiler.options.Pack = translate.Guard(c.guard), translate.Pack(c.pack)
	compiler.typeCheck, compiler.interp = c.typeCheck, c.interp
	subjects, err := subjectsOf(c, index)
	if err != nil {
		return false, err
	}
	if c.to == "kyverno" {
		return runKyverno(w, c, compiler, subjects)
	}
	natively, err := newMutations(c.release)
	if err != nil {
		return false, err
	}
	mutated, err := mutatingRules(w, c, natively)
	if err != nil {
		return false, err
	}
	inCEL, err := mutatingPolicies(w, c, natively)
	if err != nil {
		return false, err
	}
	mutated.subjects, mutated.passed, mutated.failed = mutated.subjects+inCEL.subjects, mutated.passed+inCEL.passed, mutated.failed+inCEL.failed
	if len(subjects) == 0 && mutated.subjects == 0 {
		return false, fmt.Errorf("no folder has %q in its name", c.only)
	}
	results := examineAll(subjects, compiler)
	return report(w, c, results, mutated), nil
}

func newCompiler(release string) (*compiler, error) {
	r, err := cel.ParseRelease(release)
	if err != nil {
		return nil, err
	}
	schemas, err := schema.Builtin(r.String())
	if err != nil {
		return nil, err
	}
	return &compiler{options: translate.Options{Release: r, Schemas: schemas.WithPublished()}}, nil
}

func subjectsOf(c config, index index) ([]recordedPolicy, error) {
	var out []recordedPolicy
	for _, e := range index.Policies {
		if strings.Contains(e.Dir, c.only) {
			out = append(out, recorded{c.corpus, e})
		}
	}
	if strings.Contains("generated", c.only) {
		rules, err := readGenerated(c.corpus)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	validating, err := readValidating(c.corpus, c.only)
	return append(out, validating...), err
}

// examineAll examines the subjects on every core; the results are in their order.
func examineAll(subjects []recordedPolicy, c *compiler) []result {
	results := make([]result, len(subjects))
	cores.Each(len(subjects), func(i int) { results[i] = examine(subjects[i], c) })
	return results
}
