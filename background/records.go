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

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A RuleRecord is what a rule makes, so that its objects are found when the rule is gone, or
// makes others. It is written down before the rule makes anything.
type RuleRecord struct {
	Policy v1alpha1.PolicyReference `json:"policy"`
	Rule   string                   `json:"rule"`
	Kinds  []ObjectKind             `json:"kinds,omitempty"`
	// Place tells which objects the rule makes, and of what.
	Place string `json:"place"`
	// Asks tells for which objects it does so.
	Asks string `json:"asks,omitempty"`
	// Goes tells that the objects go with the rule.
	Goes bool `json:"goes,omitempty"`
}

// A RecordStore keeps RuleRecords for as long as the cluster lives. Only who works uses it.
type RecordStore interface {
	Load(ctx context.Context) ([]RuleRecord, error)
	Save(ctx context.Context, all []RuleRecord) error
}

// memoryStore is a RecordStore that ends with the process.
type memoryStore struct{ all []RuleRecord }

// Load implements RecordStore.
func (m *memoryStore) Load(context.Context) ([]RuleRecord, error) { return m.all, nil }

// Save implements RecordStore.
func (m *memoryStore) Save(_ context.Context, all []RuleRecord) error {
	m.all = all
	return nil
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
	have, err := w.readRecords(ctx)
	if err != nil {
		return w.stuck(wanted, fmt.Errorf("what rules have made cannot be read, so nothing is made: %w", explained(err)))
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
	if !equality.Semantic.DeepEqual(have, next) {
		if err := w.save(ctx, next); err != nil {
			return w.stuck(wanted, fmt.Errorf("what rules make cannot be written down, so nothing new is made: %w", explained(err)))
		}
	}
	for _, d := range changed {
		w.options.Tell(Notice{Policy: d.Policy, Reason: reasonChanged, Note: note(d.Rule, v1alpha1.ObjectReference{}, "what the rule is about has changed; objects that it made for what it is about no longer stay as they are")})
	}
	w.mu.Lock()
	w.records = next
	w.mu.Unlock()
	w.watch()
	return errors.Join(failures...)
}

func (w *Worker) save(ctx context.Context, deeds map[string]RuleRecord) error {
	return w.options.Records.Save(ctx, slices.SortedFunc(maps.Values(deeds), func(a, b RuleRecord) int { return cmp.Compare(a.key(), b.key()) }))
}

func sortedKinds(lists ...[]ObjectKind) []ObjectKind {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b ObjectKind) int {
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
	deeds := w.records
	d, known := deeds[key]
	w.mu.Unlock()
	kinds := d.Kinds
	for _, t := range targets {
		kinds = append(slices.Clip(kinds), ObjectKind{t.APIVersion, t.Kind})
	}
	if kinds = sortedKinds(kinds); !known || slices.Equal(kinds, d.Kinds) {
		return nil
	}
	next := maps.Clone(deeds)
	d.Kinds = kinds
	next[key] = d
	if err := w.save(ctx, next); err != nil {
		return fmt.Errorf("what the policy makes cannot be written down, so nothing is made: %w", explained(err))
	}
	w.mu.Lock()
	w.records = next
	w.mu.Unlock()
	w.watch()
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

// readRecords is what is written down, by ruleKey.
func (w *Worker) readRecords(ctx context.Context) (map[string]RuleRecord, error) {
	w.mu.Lock()
	read, have := w.read, w.records
	w.mu.Unlock()
	if read {
		return have, nil
	}
	all, err := w.options.Records.Load(ctx)
	if err != nil {
		return nil, err
	}
	have = map[string]RuleRecord{}
	for _, d := range all {
		have[d.key()] = d
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = true
	return have, nil
}

// tellOnce tells of a failure that concerns one policy, when it is a new one.
func (w *Worker) tellOnce(d RuleRecord, err error) error {
	w.mu.Lock()
	told := w.toldOf[d.key()] == err.Error()
	w.toldOf[d.key()] = err.Error()
	w.mu.Unlock()
	if !told {
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
