package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// choiceFlags are the choices of translation, which mean the same for each verb.
type choiceFlags struct {
	release    string
	crds       []string
	pack       string
	params     string
	existing   string
	operations string
	action     string
	guard      string
	mutations  string // "" for a verb that leaves all of them to the webhook
}

func (f *choiceFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.release, "kubernetes-version", cel.Default.String(), "the oldest Kubernetes release that must take the objects")
	f.addShared(fs)
}

// addShared adds the choices other than the release.
func (f *choiceFlags) addShared(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.crds, "crds", nil, "files and folders of CustomResourceDefinitions, for the types of custom kinds")
	fs.StringVar(&f.pack, "pack", "policy", "what shares an object: rule, policy or match")
	fs.StringVar(&f.params, "params", "configmap", "what holds params: configmap or kvap")
	fs.StringVar(&f.existing, "existing-violations", "allow", "what an update of a violating object does: allow (as Kyverno) or deny")
	fs.StringVar(&f.operations, "operations", "as-written", "what rules that list no operations are judged on: as-written (all, as Kyverno) or create-update")
	fs.StringVar(&f.action, "action", "", "one action for all rules, whatever they say: Enforce, Audit or Warn; or Shadow, which audits what they will find once they are enforced")
	fs.StringVar(&f.guard, "guard", "auto", "whether objects stop good requests at a match condition: auto or never")
}

// addMutations adds the choice of what becomes of mutate rules.
func (f *choiceFlags) addMutations(fs *pflag.FlagSet) {
	fs.StringVar(&f.mutations, "mutations", mutationsAuto,
		"what becomes of mutate rules and MutatingPolicies: auto (native for Kubernetes 1.36 and newer), native (from 1.34 on, in v1beta1) or webhook")
}

// What becomes of mutate rules.
const (
	mutationsAuto    = "auto"
	mutationsNative  = "native"
	mutationsWebhook = "webhook"
)

func mutationChoices() []string { return []string{mutationsAuto, mutationsNative, mutationsWebhook} }

// choices are what the flags ask for.
type choices struct {
	translate  translate.Options
	emit       vap.EmitOptions
	operations string
	action     string
}

func (f choiceFlags) choices() (choices, error) {
	c := choices{operations: f.operations, action: f.action}
	if err := f.check(); err != nil {
		return c, err
	}
	release, err := supported(f.release)
	if err != nil {
		return c, err
	}
	var schemas *schema.Set
	if schemas, err = loadSchemas(release, f.crds); err != nil {
		return c, err
	}
	c.translate = translate.Options{
		Release: release, Schemas: schemas, Pack: translate.Pack(f.pack), Params: translate.Params(f.params),
		Existing: translate.Existing(f.existing), Guard: translate.Guard(f.guard),
		Mutations: f.mutations == mutationsNative || f.mutations == mutationsAuto && release.Supports(mutating.Stable),
	}
	return c, nil
}

// defaultChoices are those of a verb without such flags.
func defaultChoices() (choices, error) {
	flags := choiceFlags{}
	flags.add(pflag.NewFlagSet("", pflag.ContinueOnError))
	return flags.choices()
}

// check compares the flags that are words with the words that they may be.
func (f choiceFlags) check() error {
	for _, flag := range []struct {
		name, value string
		allowed     []string
	}{
		{"--pack", f.pack, packs()},
		{"--params", f.params, paramsKinds()},
		{"--existing-violations", f.existing, existings()},
		{"--operations", f.operations, operationChoices()},
		{"--action", f.action, append([]string{""}, actionChoices()...)},
		{"--guard", f.guard, guards()},
		{"--mutations", f.mutations, append([]string{""}, mutationChoices()...)},
	} {
		if _, err := oneOf(flag.name, flag.value, flag.allowed...); err != nil {
			return err
		}
	}
	return nil
}

const createUpdate = "create-update"

func packs() []string { return words(translate.PackRule, translate.PackPolicy, translate.PackMatch) }

func paramsKinds() []string { return words(translate.ParamsConfigMap, translate.ParamsKvap) }

func existings() []string { return words(translate.AllowExisting, translate.DenyExisting) }

func operationChoices() []string { return []string{"as-written", createUpdate} }

func actionChoices() []string { return []string{"Enforce", "Audit", "Warn", "Shadow"} }

func guards() []string { return words(translate.GuardAuto, translate.GuardNever) }

func words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// releases are the Kubernetes releases that can be asked for.
func releases() []string {
	var out []string
	for _, r := range cel.Supported() {
		out = append(out, r.String())
	}
	return out
}

// supported reads a Kubernetes release.
func supported(text string) (cel.Release, error) {
	release, err := cel.ParseRelease(text)
	if err != nil {
		return release, fmt.Errorf("--kubernetes-version %s: %w", text, err)
	}
	if !release.IsSupported() {
		return release, fmt.Errorf("--kubernetes-version %s: kvap compiles for %s to %s", text, cel.Oldest, cel.Latest)
	}
	return release, nil
}

// rewrite carries out the choices that are about the policies themselves.
func (c choices) rewrite(policies []*policy.Policy) {
	for _, p := range policies {
		if c.operations == createUpdate {
			p.LimitOperations(cel.ReadsField)
		}
		switch c.action {
		case "Enforce", "Audit":
			p.Enact(policy.Action(c.action), false)
		case "Warn":
			p.Enact(policy.Audit, true)
		case "Shadow":
			p.Rehearse()
		}
	}
}

// oneOf finds a flag's value among those that are allowed.
func oneOf[T ~string](flag, value string, allowed ...T) (T, error) {
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	var words []string
	for _, a := range allowed {
		if a != "" {
			words = append(words, string(a))
		}
	}
	return "", fmt.Errorf("%s %s: want one of %s", flag, value, strings.Join(words, ", "))
}
