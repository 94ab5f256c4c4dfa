package translate

import "github.com/kvap/kvap/translate/internal/api"

type (
	// Options are the choices of a translation.
	Options = api.Options
	// A Checker says what the API server of the release would refuse.
	Checker = api.Checker
	// A Step is what lowering a rule has decided at a place.
	Step = api.Step
	// Merging knows how the API server merges an apply configuration.
	Merging = api.Merging
	// A Pack says which rules share an object.
	Pack = api.Pack
	// Params says what carries the parameters of rules that read a ConfigMap.
	Params = api.Params
	// Existing says what becomes of an update of an object that violated the rule before.
	Existing = api.Existing
	// A Guard says whether policy objects have a guard.
	Guard = api.Guard
	// A Target is where a rule is judged.
	Target = api.Target
	// A Result is what became of policies.
	Result = api.Result
	// A RuleResult is what became of one rule as written.
	RuleResult = api.RuleResult
	// A Form is a rule by a name that Kyverno reports.
	Form = api.Form
	// A Place is a member of a draft.
	Place = api.Place
)

// The values of Options.
const (
	PackRule        = api.PackRule
	PackPolicy      = api.PackPolicy
	PackMatch       = api.PackMatch
	ParamsConfigMap = api.ParamsConfigMap
	ParamsKvap      = api.ParamsKvap
	AllowExisting   = api.AllowExisting
	DenyExisting    = api.DenyExisting
	GuardAuto       = api.GuardAuto
	GuardNever      = api.GuardNever
)

// Where a rule is judged.
const (
	Native      = api.Native
	Webhook     = api.Webhook
	Unsupported = api.Unsupported
)
