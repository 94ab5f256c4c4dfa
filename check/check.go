package check

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// Options are what is known of the clusters.
type Options struct {
	// Schemas are the types of each release that is asked for.
	Schemas map[cel.Release]*schema.Set
	// Sizes are how large texts, lists and maps are assumed to be; nil and 0 mean what
	// is common.
	Sizes cel.Sizes
	// Params are objects that bindings may name; where there are none, cost is measured with
	// params that are made up.
	Params []map[string]any
	// Parts are what is looked at; none means all.
	Parts []Part
}

// A Part is a kind of findings.
type Part string

// The parts. What an API server refuses is told with each of them.
const (
	Types Part = "types"
	Costs Part = "cost"
	Lint  Part = "lint"
)

// wants tells that a part is looked at.
func (o Options) wants(p Part) bool { return len(o.Parts) == 0 || slices.Contains(o.Parts, p) }

// releases are those asked for, the oldest first.
func (o Options) releases() []cel.Release {
	var out []cel.Release
	for r := range o.Schemas {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

// A Result is what was found of an object.
type Result struct {
	Object   *Object
	Releases []cel.Release // that it was checked for, the oldest first
	// TypeChecking is what kube-controller-manager of the newest of the releases
	// writes into the status.
	TypeChecking []apiserver.TypeWarning
	Cost         []Cost
	Findings     []Finding
}

// Objects checks objects that go into the same cluster, on every core. A panic in the
// checking of one is that one's finding.
func Objects(objects []*Object, o Options) []*Result {
	out := make([]*Result, len(objects))
	workers := cores.NewPool(func() *checking {
		return &checking{options: o, tools: map[cel.Release]*tools{}, objects: objects}
	})
	cores.Each(len(objects), func(i int) {
		out[i] = &Result{Object: objects[i]}
		fault := cores.Guard(func() {
			c := workers.Take()
			out[i].Releases = c.releasesOf(objects[i])
			c.one(out[i])
			workers.Give(c)
		})
		if fault != nil { // what it worked with is not used again
			out[i].report(0, "", faulty(objects[i], fault))
		}
		out[i].sort()
	})
	tellOnce(out)
	return out
}

// A checking is what one worker has.
type checking struct {
	options Options
	tools   map[cel.Release]*tools
	objects []*Object // all there are
	counter *apiserver.Meter
}

// meter is made when it is first needed; it fails only where the library's own
// environment does.
func (c *checking) meter() *apiserver.Meter {
	if c.counter == nil {
		m, err := apiserver.NewMeter()
		if err != nil {
			panic(err)
		}
		c.counter = m
	}
	return c.counter
}

// tools are those for one release.
type tools struct {
	set     *schema.Set
	create  *apiserver.Checker
	runtime *apiserver.RuntimeTypes
	status  *apiserver.StatusChecker
}

func (c *checking) of(release cel.Release) *tools {
	if t, ok := c.tools[release]; ok {
		return t
	}
	set := c.options.Schemas[release]
	t := &tools{set: set, create: apiserver.NewChecker(release), runtime: apiserver.NewRuntimeTypes(set), status: apiserver.NewStatusChecker(set, release)}
	c.tools[release] = t
	return t
}

func (c *checking) releasesOf(o *Object) []cel.Release {
	all := c.options.releases()
	if len(o.Releases) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(r cel.Release) bool { return !slices.Contains(o.Releases, r) })
}

func (c *checking) one(r *Result) {
	s := subjectOf(r.Object)
	for _, d := range r.Object.unknown {
		r.Findings = append(r.Findings, Finding{Diagnostic: d, Field: d.Path})
	}
	if len(r.Releases) == 0 {
		return
	}
	if s != nil && s.tooLarge() {
		r.report(0, "", largePolicy())
		return
	}
	for _, release := range r.Releases {
		refused := c.acceptance(r, s, release)
		if s != nil && c.options.wants(Types) {
			c.types(r, s, release, refused)
		}
		if c.options.wants(Lint) {
			c.lintGone(r, s, release)
		}
	}
	if s != nil && c.options.wants(Types) {
		c.changes(r, s, r.Releases[0])
		c.statusTypes(r, s, r.Releases[len(r.Releases)-1])
	}
	if c.options.wants(Lint) {
		c.lint(r, s)
	}
	if s != nil && c.options.wants(Costs) {
		c.cost(r, s)
	}
}
