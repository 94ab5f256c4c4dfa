package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// checkPatch refuses what Kyverno's admission refuses of a JSON patch, and warns of
// what makes a merge patch err on every request.
func (r *reader) checkPatch(p Patch) {
	if p.Merge != nil {
		r.patchAnchors(p.Merge, false)
	}
	// With variables in it, the text is no patch yet.
	if p.JSON != nil && !strings.Contains(p.JSON.Value, "{{") {
		r.checkOperations(p.JSON)
	}
}

// patchAnchors warns of keys that a merge patch cannot have. Below a condition stands
// a pattern, which may have all anchors.
func (r *reader) patchAnchors(n *Node, inCondition bool) {
	for _, f := range n.Fields {
		trimmed := strings.TrimSpace(f.Key)
		anchored := strings.HasSuffix(trimmed, ")") && strings.IndexByte(trimmed, '(') >= 0
		prefix, _, _ := strings.Cut(trimmed, "(")
		switch {
		case inCondition || !anchored || len(prefix) > 1 || !strings.Contains("<+=X^", prefix):
		case trimmed != f.Key:
			r.warn(f.Pos, diag.OutOfRange, "the key %q has blanks around its anchor, so the rule errs on every request that gets here; remove them", f.Key)
		case (prefix == "X" || prefix == "^") && f.Value.Kind != Null:
			r.warn(f.Pos, diag.OutOfRange, "the anchor of %s means nothing in a patch, so the rule errs on every request that gets here; use a condition or a precondition", f.Key)
		}
		r.patchAnchors(f.Value, inCondition || anchored && (prefix == "" || prefix == "<"))
	}
	for _, item := range n.Items {
		r.patchAnchors(item, inCondition)
	}
}

func (r *reader) checkOperations(t *Text) {
	docs, ds := documents(t.Pos.File, []byte(t.Value))
	if ds.HasErrors() || len(docs) != 1 || docs[0].root == nil || docs[0].root.Kind != List {
		r.fail(t.Pos, diag.WrongType, "a JSON patch must be the text of a list of operations")
		return
	}
	for i, op := range docs[0].root.Items {
		path, name := op.Get("path").text(), op.Get("op").text()
		switch name {
		case "add", "replace", "test":
			if op.Get("value") == nil {
				r.fail(t.Pos, diag.Missing, "operation %d of the patch, %s, needs a value", i+1, name)
			}
		case "move", "copy":
			if op.Get("from").text() == "" {
				r.fail(t.Pos, diag.Missing, "operation %d of the patch, %s, needs the key from", i+1, name)
			}
		case "remove":
		default:
			r.fail(t.Pos, diag.OutOfRange, "operation %d of the patch cannot be %q; it is one of add, remove, replace, move, copy, test", i+1, name)
		}
		if !strings.HasPrefix(path, "/") {
			r.fail(t.Pos, diag.OutOfRange, "operation %d of the patch needs a path that begins with a slash", i+1)
		}
	}
}

// PatchOperations are the operations of the text of a JSON patch; ok is false where it is no
// list of maps.
func PatchOperations(t Text) (operations []*Node, ok bool) {
	docs, ds := documents(t.Pos.File, []byte(t.Value))
	if ds.HasErrors() || len(docs) != 1 || docs[0].root == nil || docs[0].root.Kind != List {
		return nil, false
	}
	for _, n := range docs[0].root.Items {
		if n.Kind != Map {
			return nil, false
		}
	}
	return docs[0].root.Items, true
}
