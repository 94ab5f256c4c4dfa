package policy

// Enact gives all rules of a policy one action, in place of what they, the policy
// and its overrides say; warn makes the one who asks see it too. The source follows,
// from which rules are expanded and what stays behind is written.
func (p *Policy) Enact(action Action, warn bool) {
	if p.Mutating != nil || p.Generating != nil { // which deny nothing
		return
	}
	p.Action, p.Overrides, p.EmitWarning = action, nil, warn
	spec := p.Source.Get("spec")
	if spec == nil || spec.Kind != Map {
		return
	}
	if p.Validating != nil {
		p.Validating.Actions = validationActions(action, warn)
		spec = spec.with("validationAction", nil).with("validationActions", texts(spec, p.Validating.Actions))
	} else {
		spec = spec.with("validationFailureActionOverrides", nil).with("validationFailureAction", text(spec, string(action)))
		spec = spec.with("emitWarning", nil)
		if warn {
			spec = spec.with("emitWarning", &Node{Kind: Bool, Pos: spec.Pos, Bool: true})
		}
	}
	p.Source = p.Source.with("spec", spec)
	for _, rule := range p.Rules {
		rule.dropActions()
	}
}

// Rehearse gives all rules the action Audit, but has them judged as they will be once
// they are enforced: only then does Kyverno let an update of an object through that
// violated a rule before, and a rehearsal that says otherwise is none.
func (p *Policy) Rehearse() {
	p.rehearsed = map[int]bool{}
	for _, rule := range p.Rules {
		if v := rule.Validate; v != nil && (v.Action == Enforce || v.Action == "" && p.Action == Enforce) {
			p.rehearsed[rule.Index] = true
		}
	}
	p.Enact(Audit, false)
}

// Rehearses tells whether a rule is judged as if it were enforced.
func (p *Policy) Rehearses(rule *Rule) bool { return p.rehearsed[rule.Index] }

// Rehearsed tells of a policy from which nothing is to follow.
func (p *Policy) Rehearsed() bool { return p.rehearsed != nil }

// dropActions takes out what the rule itself says of actions.
func (rule *Rule) dropActions() {
	body := rule.Source.Get("validate")
	if rule.Validate == nil || body == nil || body.Kind != Map {
		return
	}
	rule.Validate.Action, rule.Validate.Overrides = "", nil
	rule.Source = rule.Source.with("validate", body.with("failureAction", nil).with("failureActionOverrides", nil))
}

// validationActions are an action as a ValidatingPolicy has it.
func validationActions(action Action, warn bool) []string {
	switch {
	case action == Enforce:
		return []string{"Deny"}
	case warn:
		return []string{"Audit", "Warn"}
	}
	return []string{"Audit"}
}

// text is a node for s, where at is.
func text(at *Node, s string) *Node { return &Node{Kind: String, Pos: at.Pos, Str: s} }

func texts(at *Node, list []string) *Node {
	n := &Node{Kind: List, Pos: at.Pos}
	for _, s := range list {
		n.Items = append(n.Items, text(at, s))
	}
	return n
}
