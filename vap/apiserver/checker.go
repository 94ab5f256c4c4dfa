package apiserver

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/cel"
)

// A Checker validates policies for one release, any number of them, one after the
// other. It makes each environment that it needs once: the API server's compiler
// makes them all anew for each policy, which takes longer than the compiling.
type Checker struct {
	base      *environment.EnvSet
	version   *version.Version
	library   []celgo.EnvOption      // what expressions may call besides
	variables *apiservercel.DeclType // those of the policy at hand
	declared  [sha256.Size]byte      // of their names and types
	envs      map[reach]*celgo.Env
	known     map[known]compilation
	knownSize int // bytes of text
}

// maxKnown is how many bytes of text a checker knows at most; then it begins anew.
const maxKnown = 16 << 20

// known is a text with all that it may mean: what it may read, and the types of the
// variables so far. Policies that say the same share what came of it.
type known struct {
	text     string
	reach    reach
	declared [sha256.Size]byte
}

// NewChecker makes a checker for a release: for expressions that are new there,
// which know what the release before it knew.
func NewChecker(release cel.Release) *Checker {
	v := version.MajorMinor(1, uint(release)-1)
	return &Checker{
		base: environment.MustBaseEnvSet(v), version: v,
		variables: noVariables(),
		envs:      map[reach]*celgo.Env{}, known: map[known]compilation{},
	}
}

// WithLibrary has expressions call Kyverno's CEL library, too, as no API server does.
func (c *Checker) WithLibrary() *Checker {
	c.library = kyvernoLibrary()
	return c
}

// A compilation is what came of an expression.
type compilation struct {
	output   *celgo.Type // nil where there is an error
	problem  string
	internal bool
}

func (c compilation) errors(text string, at *field.Path) field.ErrorList {
	switch {
	case c.problem == "":
		return nil
	case c.internal:
		return field.ErrorList{field.InternalError(at, fmt.Errorf("%s", c.problem))}
	}
	return field.ErrorList{field.Invalid(at, text, c.problem)}
}

// compile compiles a text, unless one has been compiled that is the same but for
// literals that do not matter.
func (c *Checker) compile(text string, r reach) compilation {
	key := known{text, r, c.declared}
	if !strings.Contains(text, "variables") {
		key.reach.variables, key.declared = false, [sha256.Size]byte{}
	}
	plain, literalsMatter := withoutLiterals(text)
	for _, t := range []string{text, plain} {
		if result, done := c.known[known{t, key.reach, key.declared}]; done {
			return result
		}
	}
	result := c.compileNew(text, key.reach, literalsMatter)
	if result.problem == "" { // a problem quotes the text
		key.text = plain
	}
	if c.knownSize += len(key.text) + len(result.problem); c.knownSize > maxKnown {
		clear(c.known)
		c.knownSize = len(key.text) + len(result.problem)
	}
	c.known[key] = result
	return result
}

// compileNew follows CompileCELExpression of k8s.io/apiserver/pkg/admission/plugin/cel.
// Where no literal matters, no program is made: making one fails only where constants
// that are functions' arguments cannot be evaluated.
func (c *Checker) compileNew(text string, r reach, literalsMatter bool) compilation {
	env, err := c.env(r)
	if err != nil {
		return compilation{problem: fmt.Sprintf("unexpected error loading CEL environment: %v", err), internal: true}
	}
	if len(text) >= longText {
		if result, ok := compileInParts(env, text, literalsMatter); ok {
			return result
		}
	}
	tree, issues := env.Compile(text)
	if issues != nil {
		return compilation{problem: "compilation failed: " + issues.String()}
	}
	if !literalsMatter {
		return compilation{output: tree.OutputType()}
	}
	if _, err := env.Program(tree, celgo.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return compilation{problem: "program instantiation failed: " + err.Error(), internal: true}
	}
	return compilation{output: tree.OutputType()}
}

// declare makes a variable known to the expressions after it.
func (c *Checker) declare(name string, t *celgo.Type) {
	c.declared = sha256.Sum256([]byte(string(c.declared[:]) + name + " " + declare(c.variables, name, t).CelType().String()))
}

// forget begins a policy.
func (c *Checker) forget() {
	clear(c.variables.Fields)
	c.declared = [sha256.Size]byte{}
}

// env is what expressions are compiled in that may read as far as that.
func (c *Checker) env(r reach) (*celgo.Env, error) {
	if env, ok := c.envs[r]; ok {
		return env, nil
	}
	env, err := extend(c.base.NewExpressionsEnv(), r, c.version.AtLeast(version.MajorMinor(1, 31)), c.variables, c.library...)
	if err == nil {
		c.envs[r] = env
	}
	return env, err
}

// Functions are the names of the functions and macros that the release takes in new policies,
// sorted.
func (c *Checker) Functions() []string {
	env := c.base.NewExpressionsEnv()
	var out []string
	for name := range env.Functions() {
		if !strings.HasPrefix(name, "_") && !strings.ContainsAny(name, "@!?[]") { // operators
			out = append(out, name)
		}
	}
	for _, m := range env.Macros() {
		out = append(out, m.Function())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
