package interp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/jsonpatch"
	"github.com/kvap/kvap/interp/internal/merge"
	"github.com/kvap/kvap/policy"
)

// maxObject bounds the JSON text of a patched object. The API server takes no
// request of more than 3 MiB; a loop could double an object with each element.
const maxObject = 4 << 20

// A mutateBody is what a mutate rule, or an entry of its foreach, changes. One of
// its parts is set.
type mutateBody struct {
	merge *template // patchStrategicMerge
	json  *text     // patchesJson6902
	loops []*mutateLoop
}

// readMutateBody reads a body. current is what an @ in it is about.
func readMutateBody(p *policy.Policy, patch policy.Patch, loops []*policy.MutateForEach, current string) *mutateBody {
	b := &mutateBody{}
	if patch.Merge != nil {
		b.merge = readPatchDocument(patch.Merge, current)
	}
	if patch.JSON != nil {
		b.json = readPatchText(patch.JSON, current)
	}
	for _, f := range loops {
		b.loops = append(b.loops, readMutateLoop(p, f, current))
	}
	return b
}

// readPatchDocument reads a patch. Kyverno resolves variables in the whole rule, so
// two keys stand in front of it; $( ) references lead nowhere in a patch.
func readPatchDocument(n *policy.Node, current string) *template {
	r := references{root: &policy.Node{Kind: policy.Map}, current: current}
	return r.document(n, []string{"mutate", "patchStrategicMerge"})
}

func readPatchText(t *policy.Text, current string) *text {
	n := &policy.Node{Kind: policy.String, Str: t.Value, Pos: t.Pos}
	r := references{root: &policy.Node{Kind: policy.Map}, current: current}
	return r.text(n, []string{"mutate", "patchesJson6902"})
}

// patch changes the object of a run.
func (b *mutateBody) patch(m *mutateRun) (verdict, map[string]any) {
	if len(b.loops) > 0 {
		after, processed, err := m.loops(b.loops, m.now)
		switch {
		case err != nil:
			return say(Error, "%v", err), nil
		case processed == 0:
			return say(Skip, "0 elements processed"), nil
		}
		return say(Pass, "mutated %s", namedObject(after)), after
	}
	after, changed, err := b.apply(m.vars, m.now)
	switch {
	case err != nil:
		return say(Error, "%v", err), nil
	case !changed:
		v := say(Skip, "no patches applied")
		v.idle = true
		return v, nil
	}
	return say(Pass, "mutated %s", namedObject(after)), after
}

// apply lays the patch over an object. Changed tells whether its text is another.
func (b *mutateBody) apply(v *vars, object map[string]any) (after map[string]any, changed bool, err error) {
	switch {
	case b.merge != nil:
		after, err = b.applyMerge(v, object)
		changed = err == nil && !sameObject(object, after)
	case b.json != nil:
		after, changed, err = b.applyJSON(v, object)
	default:
		return nil, false, fmt.Errorf("empty mutate rule")
	}
	if err != nil {
		return nil, false, err
	}
	if kind, _ := after["kind"].(string); kind == "" {
		return nil, false, fmt.Errorf("failed to unmarshal patched resource: Object 'Kind' is missing")
	}
	if changed && (datum.JSONSize(after, maxObject) > maxObject || datum.TooDeep(after)) {
		return nil, false, fmt.Errorf("failed to patch resource: the patched object is larger than %d bytes", maxObject)
	}
	return after, changed, nil
}

func (b *mutateBody) applyMerge(v *vars, object map[string]any) (map[string]any, error) {
	filled, err := v.fill(b.merge)
	if err != nil {
		return nil, fmt.Errorf("variable substitution failed: %w", err)
	}
	patch, ok := filled.Data.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("failed to patch resource: the patch must be a map, not %s", datum.TypeName(filled.Data))
	}
	after, err := merge.Apply(object, patch, v.matcher())
	if err != nil {
		return nil, fmt.Errorf("failed to patch resource: %w", err)
	}
	return after, nil
}

func (b *mutateBody) applyJSON(v *vars, object map[string]any) (map[string]any, bool, error) {
	filled, err := v.fillParts(b.json)
	if err != nil {
		return nil, false, fmt.Errorf("variable substitution failed: %w", err)
	}
	patch, err := jsonpatch.Parse(filled.Text)
	if err == nil {
		err = asWritten(patch, filled)
	}
	if err != nil {
		return nil, false, fmt.Errorf("failed to patch resource: %w", err)
	}
	result, changed, err := patch.Apply(object)
	if err != nil {
		return nil, false, fmt.Errorf("failed to patch resource: %w", err)
	}
	after, ok := result.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("failed to unmarshal patched resource: it is %s", datum.TypeName(result))
	}
	return after, changed, nil
}

// asWritten holds a patch to the operations that the policy writes: what a user wrote
// may be a value, or a part of a path, and not another operation (deviation 5). A text
// that is not a patch before variables are filled in leaves all to them.
func asWritten(patch jsonpatch.Patch, filled expr.Filled) error {
	text, wild := filled.Marked()
	if !wild {
		return nil
	}
	written, err := jsonpatch.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // it says why
	}
	same := func(a, b string) bool {
		return strings.Join(strings.Fields(filled.Unmarked(a)), "") == strings.Join(strings.Fields(b), "")
	}
	if !slices.EqualFunc(written, patch, func(a, b jsonpatch.Operation) bool {
		return a.Op == b.Op && same(a.Path, b.Path) && same(a.From, b.From)
	}) {
		return fmt.Errorf("the value of a variable would change which operations the patch has, or where")
	}
	return nil
}

// matcher holds values to the conditions of a patch as to a pattern.
func (v *vars) matcher() merge.Matcher {
	return func(value, pattern any) (bool, error) {
		o := matchPattern(v.ctx, v.reading, value, pattern, Limits{}.depth())
		if err := v.ctx.Err(); err != nil {
			return false, err
		}
		if o.status == Error && o.path != "" {
			return false, fmt.Errorf("%s", o.text)
		}
		return o.status == Pass, nil
	}
}

func sameObject(a, b map[string]any) bool {
	if a == nil || b == nil {
		return (a == nil) == (b == nil)
	}
	return datum.Equal(a, b)
}
