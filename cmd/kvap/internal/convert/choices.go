package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// Flags are the choices of translation as the user gave them, which mean the same for each verb.
type Flags struct {
	Release    string
	CRDs       []string
	Pack       string
	Params     string
	Existing   string
	Operations string
	Action     string
	Guard      string
	AnyGroup   bool
	Mutations  string // "" for a verb that leaves all of them to the webhook
}

// DefaultFlags are those of a user who says nothing.
func DefaultFlags() Flags {
	return Flags{
		Release: cel.Default.String(), Pack: string(translate.PackPolicy), Params: string(translate.ParamsConfigMap),
		Existing: string(translate.AllowExisting), Operations: asWritten, Guard: string(translate.GuardAuto),
	}
}

// What becomes of mutate rules.
const (
	MutationsAuto    = "auto"
	mutationsNative  = "native"
	mutationsWebhook = "webhook"
)

// Choices are what the flags ask for.
func (f Flags) Choices() (Choices, error) {
	c := Choices{Operations: f.Operations, Action: f.Action}
	release, err := input.Release(f.Release)
	if err != nil {
		return c, err
	}
	schemas, err := Schemas(release, f.CRDs)
	if err != nil {
		return c, err
	}
	c.Translate = translate.Options{
		Release: release, Schemas: schemas, Pack: translate.Pack(f.Pack), Params: translate.Params(f.Params),
		Existing: translate.Existing(f.Existing), Guard: translate.Guard(f.Guard), AnyGroup: f.AnyGroup,
		Mutations: f.Mutations == mutationsNative || f.Mutations == MutationsAuto && release.Supports(mutating.Stable),
	}
	return c, nil
}

// ChoicesFor takes the release of a cluster where the user names none that it differs
// from.
func (f Flags) ChoicesFor(cluster string, chosen Choices) (Choices, error) {
	release, err := cel.ParseRelease(cluster)
	if err != nil || !release.IsSupported() || f.Release != cel.Default.String() {
		return chosen, nil //nolint:nilerr // the release that was asked for, or the default, does
	}
	f.Release = release.String()
	return f.Choices()
}

// FlagWords are the words that flags may be, by the names of the flags.
func FlagWords() map[string][]string {
	return map[string][]string{
		"kubernetes-version":  releases(),
		"pack":                input.Words(translate.PackRule, translate.PackPolicy, translate.PackMatch),
		"params":              input.Words(translate.ParamsConfigMap, translate.ParamsKvap),
		"existing-violations": input.Words(translate.AllowExisting, translate.DenyExisting),
		"operations":          {asWritten, createUpdate},
		"action":              {"Enforce", "Audit", "Warn", "Shadow"},
		"guard":               input.Words(translate.GuardAuto, translate.GuardNever),
		"mutations":           {MutationsAuto, mutationsNative, mutationsWebhook},
	}
}

// releases are the Kubernetes releases that can be asked for.
func releases() []string {
	var out []string
	for _, r := range cel.Supported() {
		out = append(out, r.String())
	}
	return out
}

// Choices are what the flags ask for.
type Choices struct {
	Translate  translate.Options
	Emit       vap.EmitOptions
	Operations string
	Action     string
	// To is ToKyverno for policies of Kyverno's kinds in CEL, in a version of their group;
	// native objects otherwise.
	To, Version string
}

// Rewrite carries out the choices that are about the policies themselves.
func (c Choices) Rewrite(policies []*policy.Policy) {
	for _, p := range policies {
		if c.Operations == createUpdate {
			p.LimitOperations(cel.ReadsField)
		}
		switch c.Action {
		case "Enforce", "Audit":
			p.Enact(policy.Action(c.Action), false)
		case "Warn":
			p.Enact(policy.Audit, true)
		case "Shadow":
			p.Rehearse()
		}
	}
}

// What rules are judged on that list no operations.
const (
	asWritten    = "as-written"
	createUpdate = "create-update"
)

// Schemas are the types of a release, those of the CRDs in the paths, and those that
// projects publish.
func Schemas(release cel.Release, paths []string) (*schema.Set, error) {
	set, err := schema.Builtin(release.String())
	if err != nil {
		return nil, exit.Runtime(err)
	}
	set = set.WithPublished()
	if len(paths) == 0 {
		return set, nil
	}
	sources, found, err := input.Read(paths, nil)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--crds: %w", err))
	}
	if !slices.ContainsFunc(sources, func(s input.Source) bool { return bytes.Contains(s.Data, []byte("CustomResourceDefinition")) }) {
		return nil, exit.Usage(fmt.Errorf("--crds: there is no CustomResourceDefinition in %s", strings.Join(paths, ", ")))
	}
	for _, s := range sources {
		next, ds := set.WithCRDFile(s.Name, s.Data)
		found = append(found, ds...)
		set = next
	}
	if err := found.Sort().Err(); err != nil {
		return nil, exit.Usage(fmt.Errorf("--crds: %w", err))
	}
	return set, nil
}
