package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/verify"
)

// A comparing is a run of compare.
type comparing struct {
	flags    compareFlags
	names    []string
	choices  choices
	stdin    io.Reader
	cluster  *cluster.Connection // nil where everything is in files
	progress *progress

	setting  *compareSetting
	ledger   *evidence.Ledger
	requests *tail
	audit    *tail
	looked   int // objects
	shadow   rehearsals
	unread   int // lines of files

	found diag.List
	told  map[string]bool
	left  []error // what could not be read of the cluster, or recorded there
}

// run looks once, or again and again until the time is over or the context ends.
func (c *comparing) run(ctx context.Context, show func(report.Comparison)) error {
	end := time.Now().Add(c.flags.wait)
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
		next := time.Now().Add(c.flags.every)
		for time.Now().Before(next) && time.Now().Before(end) {
			c.progress.show("%s; looking again in %s, for %s more; Ctrl-C ends it", result.Totals,
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
func (c *comparing) look(ctx context.Context, last bool) error {
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
	c.shadow.tell(c.ledger)
	if err := c.replay(ctx, last); err != nil {
		return err
	}
	return c.readLog(last)
}

// begin reads what is compared. Where that has changed, the evidence begins anew.
func (c *comparing) begin(ctx context.Context) error {
	if c.ledger != nil && c.cluster == nil {
		return nil
	}
	setting, err := c.read(ctx)
	if err != nil {
		return err
	}
	if c.ledger != nil && setting.mark == c.setting.mark {
		return nil
	}
	if c.ledger != nil {
		c.tell(diag.Warnf(diag.Pos{}, diag.Conflict, "policies or native objects have changed meanwhile, so the evidence began anew"))
	}
	choices := c.choices
	choices.translate.Schemas = setting.schemas
	judges, err := setting.judges(choices)
	if err != nil {
		return &exit{exitUsage, err}
	}
	c.tell(setting.found...)
	if setting.silent != "" {
		c.tell(diag.Warnf(diag.Pos{}, diag.Conflict, "%s: what it reports is of then, and nobody judges by it now", setting.silent))
	}
	c.setting, c.ledger, c.unread = setting, evidence.New(judges, setting.known), 0
	c.ledger.Natives(setting.natives)
	if c.requests, err = newTail(c.flags.requests, c.stdin); err != nil {
		return &exit{exitUsage, fmt.Errorf("--requests: %w", err)}
	}
	if c.audit, err = newTail(c.flags.audit, c.stdin); err != nil {
		return &exit{exitUsage, fmt.Errorf("--audit-log: %w", err)}
	}
	c.audit.lost = func(path string) {
		c.tell(diag.Warnf(diag.Pos{File: path}, diag.MissingObject,
			"the log was rotated, and what came after it was read last is not beside it; give the folder of the logs, and look more often (--every)"))
	}
	return c.search(ctx, choices)
}

func (c *comparing) read(ctx context.Context) (s *compareSetting, err error) {
	if c.cluster == nil {
		s, err = c.settingOfFiles()
	} else {
		s, err = c.settingOfCluster(ctx)
	}
	if err != nil {
		return nil, err
	}
	to, err := c.selection()
	if err == nil {
		err = s.limit(to)
	}
	if err != nil {
		return nil, &exit{exitUsage, err}
	}
	s.ownNatives()
	return s, nil
}

// selection is which policies the flags mean. Of files all are meant.
func (c *comparing) selection() (selection, error) {
	out := selection{names: c.names, every: c.flags.allNamespaces || c.cluster == nil}
	if c.cluster != nil {
		out.namespace = c.cluster.Namespace
	}
	var err error
	if out.labels, err = labels.Parse(c.flags.selector); err != nil {
		return out, fmt.Errorf("-l %s: %w", c.flags.selector, err)
	}
	return out, nil
}

// search has verify look for requests that nobody has sent.
func (c *comparing) search(ctx context.Context, choices choices) error {
	requests, during, _ := c.flags.search() // checked
	if requests == 0 && during == 0 {
		return nil
	}
	o := verify.Options{Setting: verify.Setting{Translate: choices.translate, Seed: 1, Deployed: c.setting.deployed}, Requests: requests, Time: during}
	o.Translate.Exceptions = c.setting.exceptions
	for _, one := range c.setting.known {
		o.Params = append(o.Params, &unstructured.Unstructured{Object: one})
	}
	for i, p := range c.setting.policies {
		if p.Invalid {
			continue
		}
		o.Progress = func(tried int) {
			c.progress.show("verify %d/%d %s: %d requests", i+1, len(c.setting.policies), p.Name, tried)
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
func (c *comparing) objects(ctx context.Context) error {
	register, err := c.register(ctx)
	if err != nil {
		return err
	}
	given, err := c.readFiles("--resource", c.flags.resources)
	if err != nil {
		return err
	}
	items := make(chan evidence.Item, 64)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(items)
		send := func(o *unstructured.Unstructured, at string) error {
			for _, item := range c.about(o, at, register) {
				select {
				case items <- item:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}
		failed <- c.eachObject(ctx, given, send)
	}()
	c.ledger.Judge(ctx, func(yield func(evidence.Item) bool) {
		for item := range items {
			c.looked++
			c.progress.show("%d objects judged", c.looked/3)
			if !yield(item) {
				return
			}
		}
	}, c.unjudged)
	cancel()
	if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// eachObject is each of the given objects, and of those that the cluster has.
func (c *comparing) eachObject(ctx context.Context, given []manifest.Object, send func(*unstructured.Unstructured, string) error) error {
	for _, o := range given {
		if err := send(&unstructured.Unstructured{Object: o.Value}, o.Pos.String()); err != nil {
			return err
		}
	}
	if c.cluster == nil {
		return nil
	}
	return c.clusterObjects(ctx, send)
}

// unjudged tells of what the judges could not read.
func (c *comparing) unjudged(i evidence.Item, err error) {
	c.tell(diag.Errorf(diag.Pos{File: i.At}, diag.BadRequest, "%s was not judged: %v", i.Subject, err))
}

// about are the requests that could be made about an object: what would be asked if it
// were created, changed in nothing, and deleted. Reports are about the first.
func (c *comparing) about(o *unstructured.Unstructured, at string, register *evidence.Register) []evidence.Item {
	reported := register.Of(o)
	c.shadow.see(string(o.GetUID()))
	o.SetManagedFields(nil)
	object := manifest.Object{Value: o.Object}
	var out []evidence.Item
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
		client := judge.Client{
			Schemas: c.setting.schemas, Operation: operation, Namespace: "default", User: "kubernetes-admin",
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
			item.Reported = reported
		}
		out = append(out, item)
	}
	return out
}

// register is what Kyverno has reported.
func (c *comparing) register(ctx context.Context) (*evidence.Register, error) {
	out := &evidence.Register{}
	given, err := c.readFiles("--policy-reports", c.flags.reports)
	if err != nil {
		return nil, err
	}
	for _, o := range given {
		if !evidence.IsReport(o.Value) {
			c.tell(diag.Warnf(o.Pos, diag.OtherKind, "%s is no PolicyReport; it is passed over", o.Title()))
			continue
		}
		out.Add(o.Value)
	}
	if c.cluster != nil {
		err = c.clusterReports(ctx, out)
	}
	return out, err
}

// replay puts recorded requests before both judges.
func (c *comparing) replay(ctx context.Context, last bool) error {
	var failed error
	c.ledger.Judge(ctx, func(yield func(evidence.Item) bool) {
		failed = c.requests.each(last, func(text []byte, at diag.Pos) bool {
			l := requestLine{pos: at, text: text}
			return yield(evidence.Item{Source: evidence.Requests, At: at.String(), Request: func() (*judge.Request, error) {
				_, request, found := l.read()
				if request == nil {
					return nil, errors.New(found.Sort()[0].Message)
				}
				return request, nil
			}})
		})
	}, func(i evidence.Item, err error) {
		c.unread++
		c.unjudged(i, err)
	})
	if failed != nil {
		return &exit{exitUsage, fmt.Errorf("--requests: %w", failed)}
	}
	return ctx.Err()
}

// readLog reads what is new in the audit log.
func (c *comparing) readLog(last bool) error {
	err := c.audit.each(last, func(text []byte, at diag.Pos) bool {
		if err := c.ledger.Audit(text, at.String()); err != nil {
			c.unread++
			c.tell(diag.Errorf(at, diag.BadRequest, "%v", err))
		}
		return true
	})
	if err != nil {
		return &exit{exitUsage, fmt.Errorf("--audit-log: %w", err)}
	}
	for _, name := range c.ledger.Strange() {
		c.tell(diag.Warnf(diag.Pos{}, diag.MissingObject,
			"the audit log speaks of the ValidatingAdmissionPolicy %s, which is not among the native objects; what it found counts for no rule", name))
	}
	return nil
}

// silent warns of files that were named, and had nothing to say of any rule.
func (c *comparing) silent(result report.Comparison) {
	heard := map[evidence.Source]bool{}
	for _, r := range result.Rules {
		for _, e := range r.Evidence {
			heard[evidence.Source(e.Source)] = heard[evidence.Source(e.Source)] || e.Seen+e.Unclear > 0
		}
	}
	for _, one := range []struct {
		flag   string
		source evidence.Source
		paths  []string
		lines  *tail
	}{
		{"--resource", evidence.Objects, c.flags.resources, nil}, {"--policy-reports", evidence.Reports, c.flags.reports, nil},
		{"--requests", evidence.Requests, c.flags.requests, c.requests}, {"--audit-log", evidence.Audit, c.flags.audit, c.audit},
	} {
		if len(one.paths) == 0 || heard[one.source] {
			continue
		}
		what := "nothing in it"
		if one.lines != nil {
			what = fmt.Sprintf("none of its %s", count(one.lines.total(), "line", "lines"))
		}
		c.tell(diag.Warnf(diag.Pos{File: one.paths[0]}, diag.MissingObject,
			"%s: %s is about a rule that is compared, so it is no evidence", one.flag, what))
	}
}
