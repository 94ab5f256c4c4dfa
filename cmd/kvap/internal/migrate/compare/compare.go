package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate/evidence"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	background "github.com/kvap/kvap/controller/background/live"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/verify"
)

// Options say what is compared, and by which evidence.
type Options struct {
	Cluster   *cluster.Connection // nil where everything is in files
	Selection live.Selection
	Translate translate.Options
	// Rewrite carries out choices that are about the policies themselves.
	Rewrite func([]*policy.Policy)
	// Counts tells whether exceptions of a namespace do.
	Counts func(namespace string) bool
	// Files reads what is compared where there is no cluster.
	Files func() (*Setting, error)

	// Known is what was given of what rules look up, and Resources and Reports are the
	// objects and Kyverno's reports that were given.
	Known              []map[string]any
	Resources, Reports []manifest.Object
	// Open begins to read recorded requests and an audit log. It is called again where the
	// evidence begins anew, with whom to tell of a part of a log that was lost.
	Open func(lost func(path string)) (requests, audit Lines, err error)
	// ReadRequest reads a recorded request.
	ReadRequest func(line []byte, at diag.Pos) (*judge.Request, error)
	// Search is how many requests, or for how long, verify looks for each policy.
	Search Search
	// For is how long to look, and Every how often.
	For, Every time.Duration
	// Since is from when on an audit log counts.
	Since time.Time
	// TryOnly has the API server only try what is recorded.
	TryOnly  bool
	Progress func(format string, args ...any)
}

// Search is how much verify may look for; nothing where it is zero.
type Search struct {
	Requests int
	During   time.Duration
}

// Lines are the lines of files that may grow. Each calls visit for each that is new; last
// tells that a line without an end is whole.
type Lines interface {
	Each(last bool, visit func([]byte, diag.Pos) bool) error
}

// A Comparing is a run of compare.
type Comparing struct {
	Options

	setting  *Setting
	ledger   *evidence.Ledger
	requests Lines
	audit    Lines
	looked   int // objects
	shadow   []evidence.Rehearsal
	there    map[string]bool // objects of which the shadow tells, by UID
	unread   int             // lines of files

	// Found is what is to be said at the end, each thing once, and Left what could not be
	// read of the cluster, or recorded there.
	Found diag.List
	told  map[string]bool
	Left  []error
}

// New is a comparison that has not begun.
func New(o Options) *Comparing { return &Comparing{Options: o} }

// Result is what was found so far.
func (c *Comparing) Result() report.Comparison { return c.ledger.Comparison() }

// Run looks once, or again and again until the time is over or the context ends.
func (c *Comparing) Run(ctx context.Context, show func(report.Comparison)) error {
	end := time.Now().Add(c.For)
	for {
		waits := time.Now().Before(end)
		if err := c.look(ctx, !waits); err != nil {
			if ctx.Err() != nil && c.ledger != nil {
				return nil // what was seen so far is the result
			}
			return err
		}
		if !waits {
			return nil
		}
		result := c.ledger.Comparison()
		show(result)
		next := time.Now().Add(c.Every)
		for time.Now().Before(next) && time.Now().Before(end) {
			c.Progress("%s; looking again in %s, for %s more; Ctrl-C ends it", result.Totals,
				time.Until(next).Round(time.Second), time.Until(end).Round(time.Second))
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(min(time.Second, time.Until(end))):
			}
		}
	}
}

// look reads all sources that have something new. Last tells that lines without an
// end are whole.
func (c *Comparing) look(ctx context.Context, last bool) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	c.ledger.Forget()
	c.looked = 0
	if err := c.readShadow(ctx); err != nil {
		return err
	}
	if err := c.objects(ctx); err != nil {
		return err
	}
	for _, one := range c.shadow {
		c.ledger.Shadow(one, c.there)
	}
	if err := c.replay(ctx, last); err != nil {
		return err
	}
	return c.readLog(ctx, last)
}

// begin reads what is compared. Where that has changed, the evidence begins anew.
func (c *Comparing) begin(ctx context.Context) error {
	if c.ledger != nil && c.Cluster == nil {
		return nil
	}
	setting, err := c.read(ctx)
	if err != nil {
		return err
	}
	if c.ledger != nil && setting.mark.String() == c.setting.mark.String() {
		return nil
	}
	if c.ledger != nil {
		c.tell(diag.Warnf(diag.Pos{}, diag.Conflict, "policies or native objects have changed meanwhile, so the evidence began anew"))
	}
	o := c.Options
	o.Translate.Schemas = setting.Schemas
	judges, err := setting.judges(o)
	if err != nil {
		return exit.Usage(err)
	}
	c.tell(setting.Found...)
	if setting.silent != "" {
		c.tell(diag.Warnf(diag.Pos{}, diag.Conflict, "%s: what it reports is of then, and nobody judges by it now", setting.silent))
	}
	known := evidence.Options{Known: setting.Known, Natives: setting.natives, Times: setting.times(), Since: c.Since, Whole: setting.whole}
	if c.Cluster != nil {
		objects, _, err := background.New(c.Cluster.Config, "") // which reads them as for generate rules
		if err != nil {
			return err
		}
		engine := interp.New(setting.Policies, setting.Exceptions, judge.World(setting.Known, setting.Schemas), interp.Limits{})
		known.Making = &evidence.Making{Engine: engine, Objects: objects}
	}
	c.setting, c.ledger, c.unread = setting, evidence.New(judges, known), 0
	c.requests, c.audit, err = c.Open(func(path string) {
		c.tell(diag.Warnf(diag.Pos{File: path}, diag.MissingObject,
			"the log was rotated, and what came after it was read last is not beside it; give the folder of the logs, and look more often (--every)"))
	})
	if err != nil {
		return exit.Usage(err)
	}
	return c.search(ctx, o.Translate)
}

func (c *Comparing) read(ctx context.Context) (s *Setting, err error) {
	if c.Cluster == nil {
		s, err = c.Files()
	} else {
		s, err = c.settingOfCluster(ctx)
	}
	if err == nil && c.Cluster != nil && len(s.Policies) == 0 {
		err = exit.Usage(errors.New("the cluster has no policies; name files with -f"))
	}
	if err != nil {
		return nil, err
	}
	s.Known = append(s.Known, c.Known...)
	if err := s.limit(c.Selection); err != nil {
		return nil, exit.Usage(err)
	}
	s.ownNatives()
	return s, nil
}

// Policies are the policies that would be compared, and those of other namespaces that
// nobody has named.
func Policies(ctx context.Context, o Options) (chosen, elsewhere []*policy.Policy, err error) {
	s, err := New(o).read(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s.Policies, s.elsewhere, nil
}

// Whole is what a cluster has: all its policies, and all native ones, whoever made them; and
// what could not be read of it.
func Whole(ctx context.Context, o Options) (*Setting, []error, error) {
	c := New(o)
	s, err := c.settingOfCluster(ctx)
	return s, c.Left, err
}

// search has verify look for requests that nobody has sent.
func (c *Comparing) search(ctx context.Context, choices translate.Options) error {
	if c.Search == (Search{}) {
		return nil
	}
	o := verify.Options{Setting: verify.Setting{Translate: choices, Seed: 1, Deployed: c.setting.Deployed}, Requests: c.Search.Requests, Time: c.Search.During}
	o.Translate.Exceptions = c.setting.Exceptions
	for _, one := range c.setting.Known {
		o.Params = append(o.Params, &unstructured.Unstructured{Object: one})
	}
	for i, p := range c.setting.Policies {
		if p.Invalid {
			continue
		}
		o.Progress = func(tried int) {
			c.Progress("verify %d/%d %s: %d requests", i+1, len(c.setting.Policies), p.Name, tried)
		}
		found, err := verify.Policy(ctx, p, o)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.tell(diag.Warnf(p.Pos, diag.BadRequest, "verify cannot search the policy %s: %v", p.Name, err))
		}
		c.ledger.Search(found)
	}
	return nil
}

// objects puts objects before both judges, and their reports beside.
func (c *Comparing) objects(ctx context.Context) error {
	register, err := c.register(ctx)
	if err != nil {
		return err
	}
	c.ledger.Judge(ctx, func(yield func(evidence.Item) bool) {
		err = c.eachObject(ctx, func(o *unstructured.Unstructured, at string) error {
			for _, item := range c.about(o, at, register) {
				c.looked++
				c.Progress("%d objects judged", c.looked/3)
				if !yield(item) {
					return ctx.Err() // for which alone it ends
				}
			}
			return nil
		})
	}, c.unjudged)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// eachObject is each of the given objects, and of those that the cluster has.
func (c *Comparing) eachObject(ctx context.Context, send func(*unstructured.Unstructured, string) error) error {
	for _, o := range c.Resources {
		if err := send(&unstructured.Unstructured{Object: o.Value}, o.Pos.String()); err != nil {
			return err
		}
	}
	if c.Cluster == nil {
		return nil
	}
	look, err := c.newLook(c.setting)
	if err != nil {
		return err
	}
	passedOver, err := look.Objects(ctx, func(o *unstructured.Unstructured) error { return send(o, "") })
	for _, resource := range passedOver {
		c.leave(fmt.Errorf("objects of %s may not be read", resource))
	}
	return err
}

// unjudged tells of what the judges could not read.
func (c *Comparing) unjudged(i evidence.Item, err error) {
	c.tell(diag.Errorf(diag.Pos{File: i.At}, diag.BadRequest, "%s was not judged: %v", i.Subject, err))
}

// about are the requests that could be made about an object: what would be asked if it
// were created, changed in nothing, and deleted. Reports are about the first.
func (c *Comparing) about(o *unstructured.Unstructured, at string, register evidence.Register) []evidence.Item {
	reported := register.Of(o)
	if _, asked := c.there[string(o.GetUID())]; asked {
		c.there[string(o.GetUID())] = true
	}
	o.SetManagedFields(nil)
	object := manifest.Object{Value: o.Object}
	var out []evidence.Item
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
		client := judge.Client{
			Schemas: c.setting.Schemas, Operation: operation, Namespace: "default", User: "kubernetes-admin",
			Groups: []string{"system:authenticated"}, Guess: true,
		}
		item := evidence.Item{Source: evidence.Objects, Subject: operation + " " + cluster.Title(o), At: at, Request: func() (*judge.Request, error) {
			data, found := client.Request(object, object)
			if data == nil {
				return nil, errors.New(found.Sort()[0].Message)
			}
			return judge.NewRequest(data)
		}}
		if operation == "CREATE" {
			item.Reported, item.Made = reported, c.Cluster != nil
		}
		out = append(out, item)
	}
	return out
}

// register is what Kyverno has reported.
func (c *Comparing) register(ctx context.Context) (evidence.Register, error) {
	out := evidence.Register{}
	for _, o := range c.Reports {
		if !evidence.IsReport(o.Value) {
			c.tell(diag.Warnf(o.Pos, diag.OtherKind, "%s is no PolicyReport; it is passed over", o.Title()))
			continue
		}
		out.Add(o.Value)
	}
	if c.Cluster == nil {
		return out, nil
	}
	for _, kind := range evidence.ReportKinds() {
		if err := c.Cluster.EachOf(ctx, kind, c.leave, func(u unstructured.Unstructured) error { out.Add(u.Object); return nil }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// replay puts recorded requests before both judges.
func (c *Comparing) replay(ctx context.Context, last bool) error {
	var failed error
	c.ledger.Judge(ctx, func(yield func(evidence.Item) bool) {
		failed = c.requests.Each(last, func(text []byte, at diag.Pos) bool {
			return yield(evidence.Item{Source: evidence.Requests, At: at.String(), Request: func() (*judge.Request, error) {
				return c.ReadRequest(text, at)
			}})
		})
	}, func(i evidence.Item, err error) {
		c.unread++
		c.unjudged(i, err)
	})
	if failed != nil {
		return exit.Usage(fmt.Errorf("--requests: %w", failed))
	}
	return ctx.Err()
}

// mostTold is of how many lines that cannot be read is told what is wrong with them: a
// file that is not a log has nothing else.
const mostTold = 5

// readLog reads what is new in the audit log.
func (c *Comparing) readLog(ctx context.Context, last bool) error {
	err := c.audit.Each(last, func(text []byte, at diag.Pos) bool {
		err := c.ledger.Audit(ctx, text, at.String())
		if err == nil {
			return true
		}
		switch c.unread++; {
		case c.unread <= mostTold:
			c.tell(diag.Errorf(at, diag.BadRequest, "%v", err))
		case c.unread == mostTold+1:
			c.tell(diag.Errorf(at, diag.BadRequest, "more lines cannot be read, and are not told of"))
		}
		return true
	})
	if err != nil {
		return exit.Usage(fmt.Errorf("--audit-log: %w", err))
	}
	for _, name := range c.ledger.Strange() {
		c.tell(diag.Warnf(diag.Pos{}, diag.MissingObject,
			"the audit log speaks of the ValidatingAdmissionPolicy %s, which is not among the native objects; what it found counts for no rule", name))
	}
	return nil
}

// tell keeps what is to be said at the end, each thing once.
func (c *Comparing) tell(found ...diag.Diagnostic) {
	for _, d := range found {
		key := d.Pos.String() + d.Message
		if c.told == nil {
			c.told = map[string]bool{}
		}
		if !c.told[key] {
			c.told[key] = true
			c.Found = append(c.Found, d)
		}
	}
}
