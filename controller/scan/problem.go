package scan

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/compile"
)

// problems are what a scan cannot do at present.
type problems struct {
	tell func() // that one came or went; nil for nobody

	mu   sync.Mutex
	all  error // why no scan begins
	each []*problem
	of   []*compile.Rule // of the policies that are scanned
}

// A problem is what cannot be done of one resource.
type problem struct {
	resource resource
	rules    []*compile.Rule // that are about it
	unread   error           // why its objects are not read
	unheard  error           // why their changes are not heard
	scanned  bool            // its objects were listed since it is among those that are scanned
	objects  map[string]string
	example  string // the UID of one of the objects
}

func (p *problem) String() string {
	switch name := p.resource.GroupResource(); {
	case p.unread != nil:
		return fmt.Sprintf("%s cannot be read: %v", name, p.unread)
	case p.unheard != nil:
		return fmt.Sprintf("changes of %s are not heard: %v", name, p.unheard)
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
			known = known && one.scanned
		}
	}
	return text, known || text != ""
}

// begin notes that a scan begins. What could not be done before counts until it is tried
// again.
func (p *problems) begin(policies Policies, served []*metav1.APIResourceList, resources []resource) {
	p.mu.Lock()
	changed := p.all != nil || p.each == nil
	before := p.each
	p.all, p.each, p.of = nil, []*problem{}, policies.Compiled.Rules
	for _, r := range resources {
		one := &problem{resource: r, objects: map[string]string{}}
		if i := slices.IndexFunc(before, func(old *problem) bool { return old.resource == r }); i >= 0 {
			one = before[i]
		}
		rules := asked(policies, served, r.GroupVersionResource)
		one.scanned = one.scanned && !slices.ContainsFunc(rules, func(r *compile.Rule) bool { return !slices.Contains(one.rules, r) })
		one.rules = rules
		p.each = append(p.each, one)
	}
	p.mu.Unlock()
	p.changed(changed)
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
func (p *problems) set(t task, err error) {
	p.change(t.resource, func(one *problem) {
		switch {
		case t.name == "":
			one.unread, one.scanned = err, one.scanned || err == nil
		case err != nil:
			one.objects[t.uid] = fmt.Sprintf("%s: %v", nameOf(t), err)
		default:
			delete(one.objects, t.uid)
		}
	})
}

// heard notes whether changes of a resource are heard.
func (p *problems) heard(r resource, err error) {
	p.change(r, func(one *problem) { one.unheard = err })
}

// keep forgets the objects of a resource that are not there.
func (p *problems) keep(r resource, there map[string]bool) {
	p.change(r, func(one *problem) {
		for uid := range one.objects {
			if !there[uid] {
				delete(one.objects, uid)
			}
		}
	})
}

func (p *problems) change(r resource, how func(*problem)) {
	p.mu.Lock()
	i := slices.IndexFunc(p.each, func(one *problem) bool { return one.resource == r })
	if i < 0 { // of a watch of the round before
		p.mu.Unlock()
		return
	}
	one := p.each[i]
	before, scanned := one.String(), one.scanned
	how(one)
	if one.objects[one.example] == "" {
		one.example = ""
		for uid := range one.objects {
			one.example = uid
			break
		}
	}
	changed := one.String() != before || one.scanned != scanned
	p.mu.Unlock()
	p.changed(changed)
}

func (p *problems) changed(is bool) {
	if is && p.tell != nil {
		p.tell()
	}
}

func nameOf(t task) string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}
