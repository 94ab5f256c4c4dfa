package background

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A RuleRecord is what a rule makes, so that its objects are found when the rule is gone, or
// makes others. It is written down before the rule makes anything.
type RuleRecord struct {
	Policy v1alpha1.PolicyReference `json:"policy"`
	Rule   string                   `json:"rule"`
	Kinds  []v1alpha1.KindReference `json:"kinds,omitempty"`
	// Place tells which objects the rule makes, and of what.
	Place string `json:"place"`
	// Asks tells for which objects it does so.
	Asks string `json:"asks,omitempty"`
	// Goes tells that the objects go with the rule.
	Goes bool `json:"goes,omitempty"`
}

// A RecordStore keeps RuleRecords for as long as the cluster lives. Only who works uses it. It
// does not write over what somebody else has written since it was read or written last; after
// such an error, or another, it is to be read again.
type RecordStore interface {
	Load(ctx context.Context) ([]RuleRecord, error)
	Save(ctx context.Context, all []RuleRecord) error
}

// policy is the policy of a record, as far as its name goes.
func (d RuleRecord) policy() *policy.Policy {
	return &policy.Policy{Kind: d.Policy.Kind, Namespace: d.Policy.Namespace, Name: d.Policy.Name}
}

func (d RuleRecord) key() string { return ruleKey(keyOf(d.Policy), d.Rule) }

// records are those of all rules that generate, by ruleKey.
func (s *policySnapshot) records() map[string]RuleRecord {
	out := map[string]RuleRecord{}
	for _, p := range s.policies {
		for _, r := range p.rules {
			if r.makesObjects() {
				d := RuleRecord{Policy: p.Of, Rule: r.name, Kinds: r.makes, Place: r.place, Asks: r.asks, Goes: r.goes}
				out[d.key()] = d
			}
		}
	}
	return out
}

// mayMake tells that what a rule makes is written down, and that what it made before is
// let go of.
func (w *Worker) mayMake(r *preparedRule) bool {
	if !r.makesObjects() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records == nil || w.records[r.key()].Place == r.place
}

// doRecords brings what is written down up to date with the policies, and does what
// follows: what a rule that is gone has left is removed, and what one that makes other
// objects made before is let go of. What fails for one rule keeps no other.
func (w *Worker) doRecords(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	wanted := w.current.Load().records()
	w.mu.Lock()
	have := w.records
	w.mu.Unlock()
	if !w.read {
		all, err := w.options.Records.Load(ctx)
		if err != nil {
			return w.stuck(wanted, fmt.Errorf("what rules have made cannot be read, so nothing is made: %w", explained(err)))
		}
		have = map[string]RuleRecord{}
		for _, d := range all {
			have[d.key()] = d
		}
	}
	next := maps.Clone(wanted)
	var failures []error
	var changed []RuleRecord
	for _, key := range slices.Sorted(maps.Keys(have)) {
		was := have[key]
		now, there := wanted[key]
		var err error
		heir, renamed := heirOf(was, wanted)
		switch {
		case !there && renamed:
			err = w.relabel(ctx, was, map[string]*string{"generate.kyverno.io/rule-name": &heir.Rule})
		case !there:
			err = w.leave(ctx, was)
		case now.Place == anyPlace:
			now.Kinds = sortedKinds(now.Kinds, was.Kinds)
			next[key] = now
		case now.Place != was.Place:
			err = w.release(ctx, was)
		case was.Asks != "" && now.Asks != was.Asks:
			changed = append(changed, now)
		}
		if err != nil {
			next[key] = was
			failures = append(failures, w.tellOnce(was, err))
		}
	}
	if err := w.save(ctx, have, next); err != nil {
		return w.stuck(wanted, fmt.Errorf("what rules make cannot be written down, so nothing new is made: %w", explained(err)))
	}
	w.read = true // and not before, for until then the store alone knows what was
	for _, d := range changed {
		w.options.Tell(Notice{Policy: d.Policy, Reason: reasonChanged, Note: note(d.Rule, v1alpha1.ObjectReference{}, "what the rule is about has changed; objects that it made for what it is about no longer stay as they are")})
	}
	return errors.Join(failures...)
}

// save writes down what rules make, unless that is written, and goes by it from then on.
func (w *Worker) save(ctx context.Context, have, next map[string]RuleRecord) error {
	if !equality.Semantic.DeepEqual(have, next) {
		all := slices.SortedFunc(maps.Values(next), func(a, b RuleRecord) int { return cmp.Compare(a.key(), b.key()) })
		if err := w.options.Records.Save(ctx, all); err != nil {
			w.read = false // somebody else may have written
			return err
		}
	}
	w.mu.Lock()
	w.records = next
	w.mu.Unlock()
	w.watch()
	return nil
}

func sortedKinds(lists ...[]v1alpha1.KindReference) []v1alpha1.KindReference {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b v1alpha1.KindReference) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(all)
}

// announce writes down of what kinds a rule is about to make objects, where its text does
// not tell.
func (w *Worker) announce(ctx context.Context, r *preparedRule, targets []interp.Generated) error {
	if !r.open {
		return nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	key := r.key()
	w.mu.Lock()
	have := w.records
	w.mu.Unlock()
	d, known := have[key]
	kinds := d.Kinds
	for _, t := range targets {
		kinds = append(slices.Clip(kinds), v1alpha1.KindReference{APIVersion: t.APIVersion, Kind: t.Kind})
	}
	if kinds = sortedKinds(kinds); !known || slices.Equal(kinds, d.Kinds) {
		return nil
	}
	next := maps.Clone(have)
	d.Kinds = kinds
	next[key] = d
	if err := w.save(ctx, have, next); err != nil {
		w.queue.Add(recordsTask{}) // it is read again
		return fmt.Errorf("what the policy makes cannot be written down, so nothing is made: %w", explained(err))
	}
	return nil
}

// heirOf is a rule of the same policy that makes the same objects as one that is gone
// from it: that was only given another name.
func heirOf(was RuleRecord, wanted map[string]RuleRecord) (RuleRecord, bool) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if d := wanted[key]; keyOf(d.Policy) == keyOf(was.Policy) && d.Place == was.Place {
			return d, true
		}
	}
	return RuleRecord{}, false
}

// stuck tells of a failure the policies whose work waits for it.
func (w *Worker) stuck(wanted map[string]RuleRecord, err error) error {
	w.mu.Lock()
	written := w.records
	w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if written[key].Place != wanted[key].Place {
			_ = w.tellOnce(wanted[key], err)
		}
	}
	return err
}

// tellOnce tells of a failure that concerns one policy, when it is a new one.
func (w *Worker) tellOnce(d RuleRecord, err error) error {
	w.mu.Lock()
	before := w.toldOf[d.key()]
	w.toldOf[d.key()] = err
	w.mu.Unlock()
	if before == nil || before.Error() != err.Error() {
		w.options.Tell(Notice{Policy: d.Policy, Warning: true, Reason: reasonOf(err), Note: note(d.Rule, v1alpha1.ObjectReference{}, err.Error())})
	}
	return err
}

// leave has what a rule has left removed, if the rule is gone from the cluster, and not
// only from those that are served here: who turns a policy off keeps its objects. The
// work is written down first.
func (w *Worker) leave(ctx context.Context, d RuleRecord) error {
	if !d.Goes || len(d.Kinds) == 0 {
		return nil
	}
	there, err := w.hasRule(ctx, d.Policy, d.Rule)
	if err != nil || there {
		return explained(err)
	}
	return w.options.Requests.Create(ctx, d.request())
}

// asksOf tells for which objects a rule makes others.
func asksOf(r *policy.Rule) string {
	sum := sha256.New()
	for _, field := range []string{"match", "exclude", "context", "preconditions"} {
		if n := r.Source.Get(field); n != nil {
			fmt.Fprintf(sum, "%s: %s", field, policy.Marshal(n))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

// placeOf tells which objects a rule makes, and of what, but not what is in them.
func placeOf(r *policy.Rule) string {
	var out bytes.Buffer
	for _, t := range targetsOf(r.Generate) {
		fmt.Fprintf(&out, "%q %q %q %q", t.APIVersion.Value, t.Kind.Value, t.Namespace.Value, t.Name.Value)
		if t.Clone != nil {
			fmt.Fprintf(&out, " of %q %q", t.Clone.Namespace.Value, t.Clone.Name.Value)
		}
		if l := t.CloneList; l != nil {
			fmt.Fprintf(&out, " of all in %q", l.Namespace.Value)
			for _, k := range l.Kinds {
				fmt.Fprintf(&out, " %q", k.Value)
			}
		}
		out.WriteByte('\n')
	}
	sum := sha256.Sum256(out.Bytes())
	return hex.EncodeToString(sum[:10])
}

// release lets go of what a rule has made that makes other objects now: they stay,
// and nobody looks after them. The rule makes nothing meanwhile, for what it made since
// could not be told from what it made before. What may not be done for want of a
// permission is told, and given up.
func (w *Worker) release(ctx context.Context, d RuleRecord) error {
	gone := map[string]*string{}
	for key := range interp.TargetSelector(d.policy(), d.Rule, nil) {
		if key != "app.kubernetes.io/managed-by" {
			gone[key] = nil
		}
	}
	return w.relabel(ctx, d, gone)
}

// relabel changes labels of all that a rule has made. A rule that was given another name
// keeps its objects so.
func (w *Worker) relabel(ctx context.Context, d RuleRecord, change map[string]*string) error {
	of := d.policy()
	own := interp.TargetSelector(of, d.Rule, nil)
	var failures []error
	for _, k := range d.Kinds {
		err := w.each(ctx, k, scopeOf(of), labels.SelectorFromSet(own), func(object map[string]any) {
			r := referenceOf(object)
			err := w.options.Cluster.Label(ctx, interp.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, change)
			if err != nil && !apierrors.IsNotFound(err) {
				failures = append(failures, w.unreleased(d, err))
			}
		})
		if err != nil && !apimeta.IsNoMatchError(err) {
			failures = append(failures, w.unreleased(d, err))
		}
	}
	return joined(failures)
}

// unreleased is a failure to let go that time may mend; one that it will not is told.
func (w *Worker) unreleased(d RuleRecord, err error) error {
	if !apierrors.IsForbidden(err) {
		return explained(err)
	}
	w.options.Tell(Notice{Policy: d.Policy, Warning: true, Reason: reasonForbidden, Note: fmt.Sprintf("rule %s: what it made before it was changed keeps its labels: %v", d.Rule, explained(err))})
	return nil
}

// hasRule tells whether the cluster has the policy, or one of its name in another group, with
// the rule. The labels of targets do not tell the two apart: one that was adopted and its
// source have the same.
func (w *Worker) hasRule(ctx context.Context, of v1alpha1.PolicyReference, rule string) (there bool, err error) {
	if of.Group == celGroup {
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} { // whichever the cluster serves
			_, there, err = w.options.Cluster.Get(ctx, celGroup+"/"+version, of.Kind, of.Namespace, of.Name)
			if !apimeta.IsNoMatchError(err) {
				break
			}
		}
		return there, err
	}
	groups := []string{"kyverno.io", v1alpha1.GroupVersion().Group, of.Group}
	slices.Sort(groups)
	for _, group := range slices.Compact(groups) {
		one := of
		one.Group = group
		object, _, err := w.options.Cluster.Get(ctx, apiVersionOf(one), one.Kind, one.Namespace, one.Name)
		if err != nil && (group == of.Group || !apimeta.IsNoMatchError(err)) {
			return false, err
		}
		spec, _ := object["spec"].(map[string]any)
		rules, _ := spec["rules"].([]any)
		if slices.ContainsFunc(rules, func(r any) bool {
			m, _ := r.(map[string]any)
			return m["name"] == rule
		}) {
			return true, nil
		}
	}
	return false, nil
}

// celGroup is that of the policies that are written in CEL, each of which is one rule.
const celGroup = "policies.kyverno.io"

// leftBy selects what a rule has left. Copies stay when a policy in CEL goes.
func leftBy(of *policy.Policy, rule string) labels.Selector {
	own := labels.SelectorFromSet(interp.TargetSelector(of, rule, nil))
	if !strings.HasSuffix(of.Kind, "GeneratingPolicy") {
		return own
	}
	copied, err := labels.NewRequirement(interp.SourceUIDLabel, selection.DoesNotExist, nil)
	if err != nil {
		return labels.Nothing() // the key is a label
	}
	return own.Add(*copied)
}

// apiVersionOf is the version in which policies of a group are read.
func apiVersionOf(r v1alpha1.PolicyReference) string {
	if r.Group == v1alpha1.GroupVersion().Group {
		return v1alpha1.GroupVersion().String()
	}
	return r.Group + "/v1"
}

// request has what a rule has left removed, as work that outlives this process.
func (d RuleRecord) request() *v1alpha1.GenerateRequest {
	out := &v1alpha1.GenerateRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "GenerateRequest"},
		Spec: v1alpha1.GenerateRequestSpec{Type: v1alpha1.GenerateObjects, Policy: d.Policy, Rule: d.Rule, Delete: true, Kinds: d.Kinds, Trigger: v1alpha1.ObjectReference{
			APIVersion: apiVersionOf(d.Policy), Kind: d.Policy.Kind, Namespace: d.Policy.Namespace, Name: d.Policy.Name, UID: d.Policy.UID,
		}},
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", keyOf(d.Policy), d.Policy.UID, d.Rule)
	for _, k := range d.Kinds {
		fmt.Fprintf(sum, " %s/%s", k.APIVersion, k.Kind)
	}
	out.Name = "gr-" + hex.EncodeToString(sum.Sum(nil)[:10])
	return out
}

// removeLeft removes what a rule has left, unless the rule is there again.
func (w *Worker) removeLeft(ctx context.Context, r *v1alpha1.GenerateRequest, p *preparedPolicy) workResult {
	there := p.rule(r.Spec.Rule) != nil
	if !there {
		var err error
		if there, err = w.hasRule(ctx, r.Spec.Policy, r.Spec.Rule); err != nil {
			return failed(explained(err))
		}
	}
	switch {
	case there:
		return skipped("the rule is there again")
	case w.worksAt(ruleKey(keyOf(r.Spec.Policy), r.Spec.Rule), what(keyOf(r.Spec.Policy), r.Spec.Rule, r.Spec.Trigger)):
		return workResult{err: errEarly} // what is being made would be left
	}
	of := RuleRecord{Policy: r.Spec.Policy}.policy()
	return w.removeAll(ctx, r.Spec.Kinds, scopeOf(of), leftBy(of, r.Spec.Rule), nil)
}
