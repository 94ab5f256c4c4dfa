package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/evaluate"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/migrate/compare"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/migrate/live"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// A comparison is a run of compare, and what the flags gave it.
type comparison struct {
	*compare.Comparing
	flags    compareFlags
	choices  convert.Choices
	stdin    io.Reader
	chosen   bool // by name or labels
	progress *progress
	sources  []input.Source
	found    diag.List // of reading what was given
	unread   []*policy.Unread
	requests *input.Tail
	audit    *input.Tail
}

// options are what the flags mean.
func (c *comparison) options(names []string) (o compare.Options, err error) {
	if !c.flags.fromFiles() {
		if o.Cluster, err = c.flags.connect(); err != nil {
			return o, err
		}
		if c.choices, err = c.flags.ChoicesFor(o.Cluster.Release, c.choices); err != nil {
			return o, err
		}
	}
	c.chosen = len(names) > 0 || c.flags.selector != ""
	o.Selection = live.Selection{Names: names, Every: c.flags.allNamespaces || o.Cluster == nil}
	if o.Cluster != nil {
		o.Selection.Namespace = o.Cluster.Namespace
	}
	if o.Selection.Labels, err = labels.Parse(c.flags.selector); err != nil {
		return o, fmt.Errorf("-l %s: %w", c.flags.selector, err)
	}
	o.Translate, o.Rewrite, o.Files, o.Open, o.ReadRequest = c.choices.Translate, c.choices.Rewrite, c.files, c.open, evaluate.ReadRequest
	o.Counts = excepts(c.flags.exempt)
	o.Search.Requests, o.Search.During, _ = c.flags.search() // checked
	o.Since, _ = c.flags.from(time.Now())                    // as above
	o.For, o.Every, o.TryOnly, o.Progress = c.flags.wait, c.flags.every, c.flags.dryRun == "server", c.progress.show
	return o, c.given(&o)
}

// given reads the objects that the flags name.
func (c *comparison) given(o *compare.Options) (err error) {
	if o.Resources, err = c.manifests("--resource", c.flags.resources); err != nil {
		return err
	}
	if o.Reports, err = c.manifests("--policy-reports", c.flags.reports); err != nil {
		return err
	}
	objects, err := c.manifests("--param", c.flags.param)
	for _, one := range objects {
		o.Known = append(o.Known, one.Objects()...)
	}
	return err
}

func (c *comparison) manifests(flag string, paths []string) ([]manifest.Object, error) {
	objects, sources, found, err := input.Manifests(flag, paths, c.stdin)
	c.sources, c.found = append(c.sources, sources...), append(c.found, found...)
	return objects, err
}

// files reads policies and native objects from files.
func (c *comparison) files() (*compare.Setting, error) {
	read, err := convert.Read(c.flags.files, c.flags.kustomize, c.stdin, c.choices.Translate.Release)
	if err != nil {
		return nil, err
	}
	c.sources = append(c.sources, read.Sources...)
	if read.Empty() {
		return nil, convert.NoPolicy(c.flags.files, c.flags.kustomize, nil, false)
	}
	if !c.chosen {
		c.unread = read.Unread
	}
	return &compare.Setting{
		Policies: read.Policies, Exceptions: read.Exceptions, Found: read.Found,
		Deployed: read.Deployed, Mutations: read.Mutations, Known: read.Params, Schemas: c.choices.Translate.Schemas,
	}, nil
}

// open begins to read lines.
func (c *comparison) open(lost func(path string)) (requests, audit compare.Lines, err error) {
	if c.requests, err = input.NewTail(c.flags.requests, c.stdin); err != nil {
		return nil, nil, fmt.Errorf("--requests: %w", err)
	}
	if c.audit, err = input.NewTail(c.flags.audit, c.stdin); err != nil {
		return nil, nil, fmt.Errorf("--audit-log: %w", err)
	}
	c.audit.Lost = lost
	return c.requests, c.audit, nil
}

// withUnread adds the policies that kvap does not read, of which nothing is compared.
func (c *comparison) withUnread(r report.Comparison) report.Comparison {
	if len(c.unread) == 0 {
		return r
	}
	rules := slices.Clone(r.Rules)
	for _, u := range c.unread {
		rules = append(rules, report.ComparedRule{
			Policy: strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"), Rule: u.Name, Target: report.Unsupported, Notes: []string{u.Reason},
		})
	}
	return report.NewComparison(rules)
}

// unheard warns of files that were named, and had nothing to say of any rule.
func (c *comparison) unheard(result report.Comparison) (found diag.List) {
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
		lines  *input.Tail
	}{
		{"--resource", evidence.Objects, c.flags.resources, nil}, {"--policy-reports", evidence.Reports, c.flags.reports, nil},
		{"--requests", evidence.Requests, c.flags.requests, c.requests}, {"--audit-log", evidence.Audit, c.flags.audit, c.audit},
	} {
		if len(one.paths) == 0 || heard[one.source] {
			continue
		}
		what := "nothing in it"
		if one.lines != nil {
			what = fmt.Sprintf("none of its %s", report.Count(one.lines.Total(), "line", "lines"))
		}
		found = append(found, diag.Warnf(diag.Pos{File: one.paths[0]}, diag.MissingObject,
			"%s: %s is about a rule that is compared, so it is no evidence", one.flag, what))
	}
	return found
}
