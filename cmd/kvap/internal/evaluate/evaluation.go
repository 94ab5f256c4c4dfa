package evaluate

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/compare"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/proven"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// Options say what is judged, for whom, and how the answers are written.
type Options struct {
	Resources []string // files and folders of objects
	Old       []string // the same objects as they were
	Requests  []string // files of recorded requests
	Documents []string // files that are no objects of a cluster
	Lookups   []string // files of what rules look up
	// AsWritten objects are not filled in as an API server does.
	AsWritten bool

	Operation    string
	User         string
	Groups       []string
	Roles        []string // bound to the user, as namespace:name
	ClusterRoles []string
	Namespace    string            // of resources that name none
	Labels       map[string]string // of every request's namespace

	Output                 string // one of Outputs
	FailOn                 string // one of FailOns
	Quiet, Verbose, Colour bool
	Registry               *proven.Recorded // of images; nil where there is none
	Progress               func(format string, args ...any)
	Stdin                  io.Reader
	Stdout                 io.Writer
}

// Outputs are the forms of the answers.
func Outputs() []string { return []string{"table", "wide", "json", "yaml", "jsonl"} }

// FailOns are what may end a run with an exit code of its own.
func FailOns() []string { return []string{"disagree", "deny", "never"} }

// An Evaluation is a run of eval.
type Evaluation struct {
	options  Options
	judges   *judge.Judges
	schemas  *schema.Set
	defaults *defaulting.Defaulter // nil where objects are as they were recorded
	objects  []map[string]any      // that rules look up
	contexts []judge.Context       // what else would be said to them
	out      writer

	Sources []input.Source
	Found   diag.List
	unread  bool // whether there are policies of kinds that are not read
	totals  totals
	told    map[string]bool // warnings, by their text
	missing map[diag.Pos]judge.Lookup
	unknown map[judge.Lookup]bool
}

// New reads what rules look up.
func New(o Options) (*Evaluation, error) {
	e := &Evaluation{options: o, told: map[string]bool{}, missing: map[diag.Pos]judge.Lookup{}, unknown: map[judge.Lookup]bool{}}
	e.out = o.newOutput()
	return e, e.readObjects()
}

// ByFiles has policies and native objects of files judge.
func (e *Evaluation) ByFiles(paths []string, kustomize string, choices convert.Choices) error {
	read, err := convert.Read(paths, kustomize, e.options.Stdin, choices.Translate.Release)
	if err != nil {
		return err
	}
	e.Sources = append(e.Sources, read.Sources...)
	e.Found = append(e.Found, read.Unjudged...)
	e.unread = len(read.Unread) > 0
	if read.Empty() {
		return convert.NoPolicy(paths, kustomize, nil, false)
	}
	err = e.compile(compare.Setting{
		Policies: read.Policies, Exceptions: read.Exceptions, Found: read.Found, Deployed: read.Deployed, Known: read.Params,
		Schemas: choices.Translate.Schemas,
	}, choices)
	if err == nil && e.options.Verbose { // what the translation leaves to the webhook is not what is asked here
		e.Found = append(e.Found, e.judges.Compiled.Diagnostics...)
	}
	return err
}

// ByCluster has what a cluster has judge, with all native policies in it as they are. Of
// those that deny a request, an API server names one. Exceptions count in some namespaces.
func (e *Evaluation) ByCluster(ctx context.Context, c *cluster.Connection, choices convert.Choices, counts func(namespace string) bool) error {
	there, left, err := compare.Whole(ctx, compare.Options{Cluster: c, Translate: choices.Translate, Counts: counts})
	if err != nil {
		return exit.Runtime(err)
	}
	for _, err := range left {
		e.Found = append(e.Found, diag.Errorf(diag.Pos{}, diag.Unreadable, "left out: %v", err))
	}
	return e.compile(*there, choices)
}

// compile makes judges of policies.
func (e *Evaluation) compile(by compare.Setting, choices convert.Choices) (err error) {
	e.schemas, choices.Translate.Schemas = by.Schemas, by.Schemas
	e.Found = append(e.Found, by.Found...)
	if !e.options.AsWritten {
		e.defaults = defaulting.New(by.Schemas)
	}
	e.objects = append(e.objects, by.Known...)
	for i, o := range e.objects {
		e.objects[i] = e.defaults.Fill(o)
	}
	choices.Rewrite(by.Policies)
	e.judges, err = judge.Compile(compile.Input{Policies: by.Policies, Exceptions: by.Exceptions, Found: by.Found},
		compile.Options{Translate: choices.Translate}, judge.ClusterState{Objects: e.objects, World: e.world(), Deployed: by.Deployed})
	if err != nil {
		return exit.Usage(err)
	}
	return nil
}

// Run judges all that is asked for, and writes the answers.
func (e *Evaluation) Run(ctx context.Context) error {
	inputs, err := e.inputs()
	if err != nil {
		return err
	}
	if err := e.judge(ctx, inputs); err != nil {
		return exit.Runtime(err)
	}
	e.reportMissing()
	e.Found = e.Found.Sort()
	return exit.Runtime(e.out.finish(e.totals))
}

// totals count what a run has seen.
type totals struct {
	Requests      int `json:"requests"`
	Violations    int `json:"violations"`    // requests with one
	Disagreements int `json:"disagreements"` // rules on requests
	NotJudged     int `json:"notJudged"`
	Unknown       int `json:"unknown"` // requests of which some rule cannot tell, for want of what was not given
	erred         int // requests with a violation that is an error alone
	unmatched     int // requests of which no rule says anything
}

// Verdict is the exit code: input that was left out weighs most.
func (e *Evaluation) Verdict() error {
	judged := e.totals.Requests - e.totals.NotJudged
	switch {
	case judged > 0 && len(e.judges.Rules) == 0 && e.unread:
		return exit.Partly(nil)
	case judged == 0, len(e.judges.Rules) == 0:
		return exit.Usage(errors.New("nothing was judged"))
	case e.Found.HasErrors():
		return exit.Partly(nil)
	case e.options.FailOn != "never" && e.totals.Disagreements > 0, e.options.FailOn == "deny" && e.totals.Violations > 0:
		return exit.Findings(nil)
	case e.unread:
		return exit.Partly(nil)
	}
	return nil
}

// batchSize is how many inputs are held at once: enough for all cores, little
// enough for large objects.
const batchSize = 256

// A judged is an input with what the judges said, or why they were not asked.
type judged struct {
	question question
	id       string
	opinions []judge.Opinion
	mutation *interp.MutationResult // nil without mutate rules
	lacks    []bool                 // of each opinion: it is not about the request, for want of a field, or of an object that was not given
	// incomplete is the path of what an object lacks, as none that an API server hands over.
	incomplete string
	found      diag.List
	unread     bool
}

// judge judges all inputs, in batches, and writes the answers in their order.
func (e *Evaluation) judge(ctx context.Context, inputs iter.Seq2[question, error]) error {
	batch := make([]judged, 0, batchSize)
	flush := func() error {
		cores.Each(len(batch), func(i int) { e.one(ctx, &batch[i]) })
		for _, j := range batch {
			if err := e.note(j); err != nil {
				return err
			}
		}
		batch = batch[:0]
		e.options.Progress("%s judged", doc.Count(e.totals.Requests, "request", "requests"))
		return nil
	}
	for in, err := range inputs {
		if err != nil { // what came before the fault counts
			e.Found = append(e.Found, diag.Errorf(in.pos, diag.Unreadable, "%v", err))
			continue
		}
		batch = append(batch, judged{question: in})
		if len(batch) == batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (e *Evaluation) one(ctx context.Context, j *judged) {
	id, request, found := j.question.read()
	j.id, j.found, j.unread = id, found, request == nil
	if j.unread {
		return
	}
	if request.NamespaceLabels == nil && len(e.options.Labels) > 0 {
		request.NamespaceLabels = e.options.Labels
	}
	if j.incomplete = request.Lacks(e.schemas); j.incomplete != "" {
		j.found = append(j.found, diag.Warnf(j.question.pos, diag.IncompleteObject,
			"%s is missing, and no API server asks a policy about such an object; what is said of it holds nowhere", j.incomplete))
	}
	var err error
	if j.opinions, err = e.judges.Judge(ctx, request); err != nil {
		j.found = append(j.found, diag.Errorf(j.question.pos, diag.BadRequest, "%v", err))
		j.unread = true
		return
	}
	j.mutation = e.judges.Mutate(ctx, request, j.opinions)
}

// silent tells that a rule says nothing of a request.
func silent(o judge.Opinion) bool { return o.Native == apiserver.NoMatch && o.Status == interp.None }

// note counts and writes one answer.
func (e *Evaluation) note(j judged) error {
	e.totals.Requests++
	e.tell(j.found)
	if j.unread {
		e.totals.NotJudged++
	}
	if !j.unread && !slices.ContainsFunc(j.opinions, func(o judge.Opinion) bool { return !silent(o) }) {
		e.totals.unmatched++
	}
	violated, found, unknown := false, false, false
	j.lacks = make([]bool, len(j.opinions))
	for i, o := range j.opinions {
		if o.Violated() {
			violated = true
			found = found || o.Native == apiserver.Deny || o.Status == interp.Fail
		}
		unknown = unknown || o.Native == apiserver.Unknown || o.Status == interp.Unknown
		j.lacks[i] = e.noteMissing(o)
		j.lacks[i] = j.lacks[i] || j.incomplete != ""
		if !o.Agree() && !j.lacks[i] {
			e.totals.Disagreements++
		}
	}
	if unknown {
		e.totals.Unknown++
	}
	if violated {
		e.totals.Violations++
		if !found {
			e.totals.erred++
		}
	}
	return e.out.write(j)
}

// tell keeps what is to be said. A warning about a kind is said once, of the first
// resource of it.
func (e *Evaluation) tell(found diag.List) {
	for _, d := range found {
		if d.Severity != diag.Error {
			e.once(d)
		} else {
			e.Found = append(e.Found, d)
		}
	}
}

// once keeps what is to be said, unless it was said.
func (e *Evaluation) once(d diag.Diagnostic) {
	if !e.told[d.Message] {
		e.told[d.Message] = true
		e.Found = append(e.Found, d)
	}
}

// noteMissing remembers the objects for want of which a rule erred. Of such a rule
// the two sides need not agree: what they say is not about the request.
func (e *Evaluation) noteMissing(o judge.Opinion) (some bool) {
	if o.Lacks != nil {
		e.unknown[*o.Lacks] = true
		return true
	}
	if o.Native == apiserver.Unknown {
		e.once(diag.Errorf(o.Rule.Rule.Pos(), diag.BadRequest, "rule %s of %s is not judged: %s; name the user in the userInfo of the request", o.Rule.Name, o.Rule.Rule.PolicyName(), o.NativeMessage))
		return true
	}
	if o.Status != interp.Error && o.Native != apiserver.Error {
		return false
	}
	for _, l := range judge.Lookups(o.Rule.Rule) {
		if !l.In(e.objects) {
			e.missing[l.Pos], some = l, true
		}
	}
	return some
}

// reportMissing says which objects were missing.
func (e *Evaluation) reportMissing() {
	for _, pos := range slices.SortedFunc(maps.Keys(e.missing), diag.Pos.Compare) {
		e.Found = append(e.Found, diag.Errorf(pos, diag.MissingObject,
			"the rule reads the %s, which was not given, so it errs; give it with --param FILE", e.missing[pos]))
	}
	inOrder := func(a, b judge.Lookup) int { return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Name, b.Name)) }
	for _, l := range slices.SortedFunc(maps.Keys(e.unknown), inOrder) {
		e.Found = append(e.Found, diag.Errorf(l.Pos, diag.MissingObject,
			"the rule reads the %s, which was not given, so it is not judged; give it with --param FILE", l))
	}
}
