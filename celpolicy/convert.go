package celpolicy

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A Conversion is what became of a compilation.
type Conversion struct {
	Policies []Converted // those that have objects, in the order of the source
	// Left are native rules that have no form in Kyverno's kinds, and why.
	Left map[*compile.Rule]diag.Diagnostic
	// Found is what there is to say of the rules that have one.
	Found diag.List
}

// A Converted is a policy with the objects that take its place.
type Converted struct {
	Of      *policy.Policy
	Objects []Object
	// Rules are those of the policy that the objects have.
	Rules []*compile.Rule
}

// Options are the choices of a conversion.
type Options struct {
	Version string // of policies.kyverno.io
}

// Convert makes objects of Kyverno's kinds of native ones. Those of policies that are written in
// CEL already are left out.
func Convert(of compile.Result, o Options) Conversion {
	c := converter{options: o, result: of, out: Conversion{Left: map[*compile.Rule]diag.Diagnostic{}}}
	rules := map[*policy.Policy][]*compile.Rule{}
	for _, r := range of.Rules {
		if !r.Policy.InCEL() && len(r.Objects)+len(r.Mutating)+len(r.Generating)+len(r.Existing) > 0 {
			rules[r.Policy] = append(rules[r.Policy], r)
		}
	}
	for _, p := range of.Policies {
		if done := c.policy(p, rules[p]); len(done.Objects) > 0 {
			c.out.Policies = append(c.out.Policies, done)
		}
	}
	taken := map[place]bool{}
	for _, p := range of.Policies {
		if p.InCEL() {
			taken[place{p.Kind, p.Namespace, p.Name}] = true
		}
	}
	var made []naming
	for _, one := range c.out.Policies {
		made = append(made, naming{one.Of.Name, one.Objects})
	}
	called(taken, made)
	return c.out
}

type converter struct {
	options Options
	result  compile.Result
	out     Conversion
}

// policy converts the native objects of a policy, each by itself. The rules of one that has no
// form are left, and with them what other objects have of these rules.
func (c *converter) policy(p *policy.Policy, rules []*compile.Rule) Converted {
	var natives []native
	at := map[any]int{}
	add := func(key any, rule *compile.Rule, convert func() ([]Object, *diag.Diagnostic)) {
		i, known := at[key]
		if !known {
			i = len(natives)
			at[key] = i
			objects, why := convert()
			natives = append(natives, native{objects: objects, why: why})
		}
		natives[i].rules = append(natives[i].rules, rule)
	}
	for _, r := range rules {
		for _, i := range r.Objects {
			o := c.result.Objects[i]
			add(o.Draft, r, func() ([]Object, *diag.Diagnostic) { return c.validating(p, o) })
		}
		for _, i := range r.Mutating {
			o := c.result.Mutating[i]
			add(o.Draft, r, func() ([]Object, *diag.Diagnostic) { return c.mutating(p, o) })
		}
		for _, d := range r.Existing {
			add(d, r, func() ([]Object, *diag.Diagnostic) { return c.existing(p, d) })
		}
		for _, d := range r.Generating {
			add(d, r, func() ([]Object, *diag.Diagnostic) { return c.generating(p, d) })
		}
	}
	c.leave(natives)
	out := Converted{Of: p}
	for _, n := range natives {
		if n.why == nil {
			out.Objects = joined(out.Objects, n.objects)
		}
	}
	for _, r := range rules {
		if _, left := c.out.Left[r]; !left {
			out.Rules = append(out.Rules, r)
		}
	}
	return out
}

// A native is a native object with its form in Kyverno's kinds, or why it has none.
type native struct {
	rules   []*compile.Rule
	objects []Object
	why     *diag.Diagnostic
}

// leave leaves the rules of what has no form, until no object has a rule that is left.
func (c *converter) leave(natives []native) {
	for again := true; again; {
		again = false
		for i, n := range natives {
			for _, r := range n.rules {
				if why, left := c.out.Left[r]; left && n.why == nil {
					natives[i].why, n.why, again = &why, &why, true
				}
			}
			for _, r := range n.rules {
				if _, left := c.out.Left[r]; n.why != nil && !left {
					c.out.Left[r], again = *n.why, true
				}
			}
		}
	}
}

// maxName is how long a name of these kinds may be, for Kyverno writes it into labels.
const maxName = 63

// A place is where an object is in a cluster.
type place struct{ kind, namespace, name string }

// A naming is objects that take the place of what has a name.
type naming struct {
	name    string
	objects []Object
}

// called names the objects: one alone as what it takes the place of, and several as their native
// forms, which begin with its name. One whose name is taken gets a number.
func called(taken map[place]bool, made []naming) {
	for _, alone := range []bool{true, false} { // the name of a policy is for what takes its place
		for _, one := range made {
			of := map[string]int{}
			for _, o := range one.objects {
				of[o.Kind]++
			}
			for i := range one.objects {
				o := &one.objects[i]
				if alone != (of[o.Kind] == 1) {
					continue
				}
				name := one.name
				if !alone {
					name = strings.TrimPrefix(o.Name, o.Namespace+"-")
				}
				o.Name = vap.ShortName(name, maxName)
				for n := 2; taken[place{o.Kind, o.Namespace, o.Name}]; n++ {
					o.Name = vap.ShortName(name+"-"+strconv.Itoa(n), maxName)
				}
				taken[place{o.Kind, o.Namespace, o.Name}] = true
			}
		}
	}
}

// object is an object of a kind, without its spec. It bears the name of its native form.
func (c *converter) object(p *policy.Policy, kind, name string, d *vap.Draft) Object {
	out := Object{
		TypeMeta:   metav1.TypeMeta{APIVersion: group + "/" + c.options.Version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: d.Labels, Annotations: d.Annotations},
	}
	if p.Namespaced() {
		out.Kind, out.Namespace = "Namespaced"+kind, p.Namespace
	}
	return out
}
