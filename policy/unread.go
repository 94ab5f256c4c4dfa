package policy

import (
	"bytes"

	"github.com/kvap/kvap/diag"
)

// An Unread is a policy, or an exception from one, of a kind that Parse does not read:
// of Kyverno's newer kinds, or of another engine. Who takes the policies of a File for
// all that it enforces would lose it.
type Unread struct {
	Pos       diag.Pos
	Kind      string
	Name      string // as written; it may be none that a cluster takes
	Namespace string
	Code      diag.Code
	Reason    string // in words, as its diagnostic says
	// Text is the document as it stands in the file; of an item of a list, as Marshal
	// writes it.
	Text   []byte
	Source *Node
}

// unread adds a document of such a kind.
func (f *File) unread(doc *Node, text []byte, group string) diag.List {
	if text == nil {
		text = Marshal(doc)
	}
	meta := doc.Get("metadata")
	u := &Unread{
		Pos: doc.Pos, Kind: doc.Get("kind").text(), Name: meta.Get("name").text(), Namespace: meta.Get("namespace").text(),
		Text: text, Source: doc,
	}
	var d diag.Diagnostic
	switch engine := otherEngine(group, u.Kind); {
	case group == hubGroup:
		d = diag.Warnf(doc.Pos, diag.UnreadKind, "kvap does not read the object-templates-raw of this %s, which have policies of Kyverno: no object is made of them; write them as object-templates", u.Kind)
	case engine != "":
		d = diag.Warnf(doc.Pos, diag.OtherEngine, "this %s is a policy of %s, which kvap does not read: no object is made of it, so leave it with %[2]s", u.Kind, engine)
	default:
		d = diag.Warnf(doc.Pos, diag.UnreadKind, "kvap does not read the kind %s of %s yet: no object is made of it, so leave it with Kyverno", u.Kind, group)
	}
	u.Code, u.Reason = d.Code, d.Message
	f.Unread = append(f.Unread, u)
	return diag.List{d}
}

// otherEngine is the engine, other than Kyverno, whose policies a kind is; "" for none.
func otherEngine(group, kind string) string {
	switch {
	case group == "templates.gatekeeper.sh", group == "constraints.gatekeeper.sh", group == "mutations.gatekeeper.sh":
		return "Gatekeeper"
	case group == "policies.kubewarden.io" && kind != "PolicyServer":
		return "Kubewarden"
	}
	return ""
}

// MayHold tells a file of policies from the many others in a folder, such as values,
// tests and resources, before it is parsed: every document that Parse does not pass
// over names the group of its kind, and those that others mention too with a version.
func MayHold(data []byte) bool {
	for _, group := range []string{
		"kyverno.io", ownGroup + "/v1alpha1", "templates.gatekeeper.sh/", "constraints.gatekeeper.sh/", "mutations.gatekeeper.sh/", "policies.kubewarden.io/",
	} {
		if bytes.Contains(data, []byte(group)) {
			return true
		}
	}
	return false
}
