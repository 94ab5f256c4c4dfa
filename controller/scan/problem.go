package scan

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/compile"
)

// problems are what a scan cannot do at present.
type problems struct {
	tell func() // that one came or went; nil for nobody

	mu      sync.Mutex
	all     error // why no scan begins
	each    []*problem
	of      []*compile.Rule // of the policies that are scanned
	reports [2]error        // why those in namespaces, and of the cluster, are not known
}

// A problem is what cannot be done of one resource.
type problem struct {
	kindScan
	unread   error // why its objects are not read
	unheard  error // why their changes are not heard
	unknown  error // why their reports are not known
	finished bool  // all its objects were judged by these rules
	objects  map[types.UID]string
	example  types.UID // one of the objects
}

// A kindScan is what is scanned of one resource.
type kindScan struct {
	resource resource
	rules    []*compile.Rule // that are about it
	lacking  error           // why nothing is judged by them
	anew     bool            // not all is judged by them yet
}

// maxProblems bounds the objects of a resource of which a problem is kept. The others tell of theirs
// when they are tried again.
const maxProblems = 1000

func (p *problem) String() string {
	switch name := p.resource.GroupResource(); {
	case p.lacking != nil:
		return fmt.Sprintf("%s are not judged: %v", name, p.lacking)
	case p.unread != nil:
		return fmt.Sprintf("%s cannot be read: %v", name, p.unread)
	case p.unheard != nil:
		return fmt.Sprintf("changes of %s are not heard: %v", name, p.unheard)
	case p.unknown != nil:
		return p.unknown.Error()
	case len(p.objects) > 0:
		return fmt.Sprintf("reports about %s are not up to date, such as that of %s", name, p.objects[p.example])
	}
	return ""
}

// Problem is why reports are not up to date about objects that some rules are about; ""
// where they are. known is false until all resources are scanned that the rules are about.
func (s *Scanner) Problem(rules []*compile.Rule) (text string, known bool) {
	p := &s.problems
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all != nil {
		return fmt.Sprintf("no scan can begin: %v", p.all), true
	}
	known = p.each != nil && !slices.ContainsFunc(rules, func(r *compile.Rule) bool { return !slices.Contains(p.of, r) })
	for _, one := range p.each {
		if slices.ContainsFunc(one.rules, func(r *compile.Rule) bool { return slices.Contains(rules, r) }) {
			text = cmp.Or(text, one.String())
			known = known && one.finished
		}
	}
	return text, known || text != ""
}

// begin notes what is scanned from now on. What could not be done before counts until it is tried
// again.
func (p *problems) begin(policies Policies, scans []kindScan) {
	p.mu.Lock()
	before := p.each
	p.all, p.each, p.of = nil, []*problem{}, policies.Compiled.Rules
	for _, scan := range scans {
		one := &problem{objects: map[types.UID]string{}}
		if i := slices.IndexFunc(before, func(old *problem) bool { return old.resource == scan.resource }); i >= 0 {
			one = before[i]
		}
		one.finished = one.finished && !scan.anew
		one.kindScan, one.unknown = scan, p.reports[place(scan.resource.namespaced)]
		p.each = append(p.each, one)
	}
	p.mu.Unlock()
	p.changed(true)
}

// forget has nothing known, as before the first scan: another replica may lead meanwhile.
func (p *problems) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.each, p.of, p.reports = nil, nil, nil, [2]error{}
}

func place(namespaced bool) int {
	if namespaced {
		return 0
	}
	return 1
}

// failed notes why no scan begins; nil for one that did.
func (p *problems) failed(err error) {
	p.mu.Lock()
	changed := p.all == nil || p.all.Error() != err.Error()
	p.all = err
	p.mu.Unlock()
	p.changed(changed)
}

// set notes what came of a task.
func (p *problems) set(r resource, t task, err error) {
	if t.uid == "" {
		return // which tells by itself
	}
	p.change(r, func(one *problem) {
		if err == nil {
			delete(one.objects, t.uid)
		} else if len(one.objects) < maxProblems || one.objects[t.uid] != "" {
			one.objects[t.uid] = fmt.Sprintf("%s: %v", t, err)
		}
	})
}

// unread notes whether the objects of a resource are read.
func (p *problems) unread(r resource, err error) {
	p.change(r, func(one *problem) { one.unread = err })
}

// unheard notes whether changes of a resource are heard, which are read too.
func (p *problems) unheard(r resource, err error) {
	p.change(r, func(one *problem) { one.unheard = err })
}

// finish notes that all objects of a resource are judged.
func (p *problems) finish(r resource) {
	p.change(r, func(one *problem) { one.finished = true })
}

// unreported notes whether the reports are known that are in namespaces, or of the cluster.
func (p *problems) unreported(namespaced bool, err error) {
	p.mu.Lock()
	p.reports[place(namespaced)] = err
	changed := false
	for _, one := range p.each {
		if one.resource.namespaced == namespaced {
			before := one.String()
			one.unknown = err
			changed = changed || one.String() != before
		}
	}
	p.mu.Unlock()
	p.changed(changed)
}

func (p *problems) change(r resource, how func(*problem)) {
	p.mu.Lock()
	i := slices.IndexFunc(p.each, func(one *problem) bool { return one.resource == r })
	if i < 0 { // it is not scanned any more
		p.mu.Unlock()
		return
	}
	one := p.each[i]
	before, finished := one.String(), one.finished
	how(one)
	if one.objects[one.example] == "" {
		one.example = ""
		for uid := range one.objects {
			one.example = uid
			break
		}
	}
	changed := one.String() != before || one.finished != finished
	p.mu.Unlock()
	p.changed(changed)
}

func (p *problems) changed(is bool) {
	if is && p.tell != nil {
		p.tell()
	}
}
