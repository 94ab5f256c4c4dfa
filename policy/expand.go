package policy

import (
	"slices"
	"strings"
)

// Rules that match Pod are repeated for the kinds that make pods. The step is
// textual, as it is upstream: the rule's source is rewritten and read again, so
// that everything in it, messages included, goes the same way.

// An expansion is one of the two variants of a rule.
type expansion struct {
	name string   // as in Rule.Expansion
	keys []string // where the pod stands in the controller
}

func controllerExpansion() expansion {
	return expansion{"autogen", []string{"spec", "template"}}
}

func cronJobExpansion() expansion {
	return expansion{"autogen-cronjob", []string{"spec", "jobTemplate", "spec", "template"}}
}

// Template is where a rule of an expansion has the pod: the keys to the template in a
// controller. It is nil for a rule as written.
func (rule *Rule) Template() []string {
	for _, x := range []expansion{controllerExpansion(), cronJobExpansion()} {
		if x.name == rule.Expansion {
			return x.keys
		}
	}
	return nil
}

// Expand returns the rules as written, and then those generated for pod
// controllers: for each rule the one for controllers and the one for CronJob.
//
// The engine evaluates a generated rule for its Controllers only, and its match
// block names no others. A rule as written whose name starts with autogen- is not
// evaluated for them, if anything is generated: RulesFor says so for one kind.
func Expand(p *Policy) []*Rule {
	return append(slices.Clone(p.Rules), p.generate(p.controllers())...)
}

// RulesFor returns the rules that the engine evaluates for objects of a kind, in
// its order. The kind is the bare name of the top-level resource's.
func (p *Policy) RulesFor(kind string) []*Rule {
	if !slices.Contains(p.controllers(), kind) {
		return p.Rules
	}
	generated := p.generate([]string{kind})
	if len(generated) == 0 {
		return p.Rules
	}
	var rules []*Rule
	for _, rule := range p.Rules {
		if !isGeneratedName(rule.Name) {
			rules = append(rules, rule)
		}
	}
	return append(rules, generated...)
}

// Expands tells that rules are generated from one as written.
func (p *Policy) Expands(rule *Rule) bool { return rule.expandable() && len(p.controllers()) > 0 }

func isGeneratedName(name string) bool { return strings.HasPrefix(name, "autogen-") }

// controllers are the kinds that the policy is expanded for, sorted; none when it
// is not. The annotation's entries count exactly as they stand, spaces included.
func (p *Policy) controllers() []string {
	if p.InCEL() || !p.eligible() {
		return nil
	}
	text, ok := p.Annotations[autogenControllers]
	switch {
	case !ok:
		return podControllers()
	case text == "none":
		return nil
	}
	list := strings.Split(text, ",")
	slices.Sort(list)
	return slices.Compact(list)
}

func podControllers() []string {
	return []string{"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
}

// eligible tells whether the policy is expanded at all: one rule that cannot be
// keeps all others from it, and one filter must name Pod or a controller in
// exactly these words.
func (p *Policy) eligible() bool {
	needed := false
	for _, rule := range p.Rules {
		if rule.Generate != nil || rule.Mutate.patchesJSON() {
			return false
		}
		for _, block := range []*MatchBlock{rule.Match, rule.Exclude} {
			if block == nil {
				continue
			}
			for _, f := range block.Filters() {
				if f.preventsExpansion() {
					return false
				}
				needed = needed || f.namesPods()
			}
		}
	}
	return needed
}

// preventsExpansion tells of what would not carry over from a pod to its
// controller.
func (f *Filter) preventsExpansion() bool {
	return f.Name != nil || len(f.Names) > 0 || f.Selector != nil || f.Annotations != nil ||
		len(f.Kinds) > 1 && matchesPod(f.Kinds)
}

func (f *Filter) namesPods() bool {
	return slices.ContainsFunc(f.Kinds, func(k Text) bool {
		return k.Value == "Pod" || slices.Contains(podControllers(), k.Value)
	})
}

// matchesPod looks for Pod in any form: with a group, a version, a subresource.
func matchesPod(kinds []Text) bool {
	return slices.ContainsFunc(kinds, func(k Text) bool {
		s, ok := ParseKind(k.Value)
		return ok && s.Kind == "Pod"
	})
}

// generate makes the rules for some controllers.
func (p *Policy) generate(controllers []string) []*Rule {
	var rules []*Rule
	others := slices.DeleteFunc(slices.Clone(controllers), func(kind string) bool { return kind == "CronJob" })
	for _, rule := range p.Rules {
		if !rule.expandable() {
			continue
		}
		if len(others) > 0 {
			rules = append(rules, p.variant(rule, controllerExpansion(), others))
		}
		if len(others) < len(controllers) {
			rules = append(rules, p.variant(rule, cronJobExpansion(), []string{"CronJob"}))
		}
	}
	return rules
}

// expandable tells whether a rule of an eligible policy is expanded. A rule that is
// invalid is only kept to be reported.
func (rule *Rule) expandable() bool {
	if rule.Invalid || isGeneratedName(rule.Name) || !matchesPod(rule.Match.kinds()) {
		return false
	}
	if excluded := rule.Exclude.kinds(); len(excluded) > 0 && !matchesPod(excluded) {
		return false
	}
	if rule.Mutate != nil && rule.Mutate.Existing {
		// Its patch is for the targets, whatever the trigger is (deviation 14).
		return false
	}
	v := rule.Validate
	return v == nil || v.Pattern != nil || v.AnyPattern != nil || v.Deny != nil || v.ForEach != nil || v.PodSecurity != nil || v.CEL != nil
}

// kinds are those of all filters of a block.
func (m *MatchBlock) kinds() []Text {
	if m == nil {
		return nil
	}
	var kinds []Text
	for _, f := range m.Filters() {
		kinds = append(kinds, f.Kinds...)
	}
	return kinds
}

// variant is the rule for the given controllers.
func (p *Policy) variant(rule *Rule, x expansion, controllers []string) *Rule {
	source := rule.Source.with("imageExtractors", nil)
	name := *source.Get("name")
	name.Str = x.rename(rule.Name)
	source = source.with("name", &name)
	for _, block := range []string{"match", "exclude"} {
		if n := source.Get(block); n != nil && n.Kind == Map {
			source = source.with(block, x.block(n, block, controllers))
		}
	}
	source = x.body(source)
	source = x.rewrite(source, rule.Validate != nil && rule.Validate.CEL != nil)

	r := &reader{beta: strings.HasSuffix(p.APIVersion, "/v2beta1"), again: true}
	made := r.rule(p, source)
	made.Index, made.Origin, made.Expansion, made.Controllers = rule.Index, rule.Name, x.name, controllers
	return made
}

func (x expansion) rename(name string) string {
	name = x.name + "-" + name
	return name[:min(len(name), maxName)]
}

// body moves what is laid over the object to where the pod stands. Conditions and
// expressions are left to rewrite.
func (x expansion) body(rule *Node) *Node {
	if v := rule.Get("validate"); v != nil && v.Kind == Map {
		rule = rule.with("validate", x.validate(v))
	}
	if m := rule.Get("mutate"); m != nil && m.Kind == Map {
		rule = rule.with("mutate", x.mutate(m))
	}
	return rule
}

func (x expansion) validate(v *Node) *Node {
	pivot := "pattern"
	switch {
	case present(v, "pattern"):
		v = v.with("pattern", x.wrap(v.Get("pattern")))
	case present(v, "deny"):
		pivot = "deny"
	case present(v, "podSecurity"):
		pivot = "podSecurity"
	case present(v, "anyPattern"):
		pivot = "anyPattern"
		list := *v.Get("anyPattern")
		list.Items = slices.Clone(list.Items)
		for i, pattern := range list.Items {
			list.Items[i] = x.wrap(pattern)
		}
		v = v.with("anyPattern", &list)
	}
	if message := v.Get("message"); message != nil && message.Kind == String {
		shifted := *message
		shifted.Str = shiftReferences(message.Str, pivot, strings.Join(x.keys, "/"))
		v = v.with("message", &shifted)
	}
	return v
}

func present(n *Node, key string) bool {
	v := n.Get(key)
	return v != nil && v.Kind != Null
}

// mutate wraps patches. Kyverno makes a patch that deletes the pod template of a
// foreach within a foreach; here it is wrapped as any other (deviation 14). It
// forgets the order of a foreach.
func (x expansion) mutate(m *Node) *Node {
	if present(m, "patchStrategicMerge") {
		return m.with("patchStrategicMerge", x.wrap(m.Get("patchStrategicMerge")))
	}
	loops := m.Get("foreach")
	if loops == nil || loops.Kind != List {
		return m
	}
	list := *loops
	list.Items = slices.Clone(list.Items)
	for i, entry := range list.Items {
		list.Items[i] = x.mutate(entry.with("order", nil))
	}
	return m.with("foreach", &list)
}

// wrap puts n below the keys.
func (x expansion) wrap(n *Node) *Node {
	for _, key := range slices.Backward(x.keys) {
		n = &Node{Kind: Map, Pos: n.Pos, Fields: []Field{{Key: key, Pos: n.Pos, Value: n}}}
	}
	return n
}

// rewrite replaces the paths of a pod by those of the controller's template in
// every string and every key, wherever it stands.
func (x expansion) rewrite(rule *Node, cel bool) *Node {
	template := strings.Join(x.keys, ".")
	prefix := "request."
	if cel {
		prefix = "" // CEL says object; request.object is covered by that
	}
	var pairs [][2]string
	// The spec first: the other way round, what metadata has become would be
	// taken for a pod's spec.
	for _, part := range []string{"spec", "metadata"} {
		for _, object := range []string{"object", "oldObject"} {
			pairs = append(pairs, [2]string{prefix + object + "." + part, prefix + object + "." + template + "." + part})
		}
	}
	replace := func(text string) string {
		if !strings.Contains(text, "bject.") {
			return text
		}
		for _, pair := range pairs {
			text = strings.ReplaceAll(text, pair[0], pair[1])
		}
		return text
	}
	return rule.edit(func(n *Node) {
		n.Str = replace(n.Str)
		for i := range n.Fields {
			n.Fields[i].Key = replace(n.Fields[i].Key)
		}
	})
}

// shiftReferences moves the paths of $(...) references in a message below the
// template. A reference runs to the last parenthesis before a space.
func shiftReferences(message, pivot, shift string) string {
	var out strings.Builder
	for rest := message; ; {
		i := strings.Index(rest, "$(")
		if i < 0 {
			out.WriteString(rest)
			return out.String()
		}
		end := len(rest)
		if space := strings.IndexByte(rest[i:], ' '); space >= 0 {
			end = i + space
		}
		end = i + 1 + strings.LastIndexByte(rest[i:end], ')')
		if end <= i || i > 0 && rest[i-1] == '\\' {
			out.WriteString(rest[:i+2])
			rest = rest[i+2:]
			continue
		}
		out.WriteString(rest[:i])
		out.WriteString(shiftReference(rest[i:end], pivot, shift))
		rest = rest[end:]
	}
}

func shiftReference(reference, pivot, shift string) string {
	i := strings.Index(reference, pivot)
	if i < 0 {
		return reference
	}
	if pivot == "anyPattern" {
		index, _, _ := strings.Cut(strings.TrimPrefix(reference[i+len(pivot):], "/"), "/")
		pivot += "/" + index
	}
	return strings.ReplaceAll(reference, pivot, pivot+"/"+shift)
}
