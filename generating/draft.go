package generating

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// A Draft is a policy that generates, whose expressions are still trees.
type Draft struct {
	// Draft is what policies that validate have too: the name, the member, what triggers it, the
	// variables and the binding. It has no validations.
	vap.Draft
	Entries []vap.Expression // in the order in which they are evaluated; each calls the generator
	// MayErr tells that an entry may be an error, behind which no other is evaluated.
	MayErr bool

	Synchronize bool // keeps what it has made in step with the trigger
	Existing    bool // is for objects that are there already, too
	Idle        bool // is for those alone: no request triggers it
	// Orphans tells that what it has made stays when the policy goes.
	Orphans         bool
	ServerSideApply bool
	// OwnRequests tells that what Kyverno itself does triggers it too.
	OwnRequests bool
}

// Objects are the frame of a policy, as if it validated, and its entries.
type Objects struct {
	vap.Objects
	Draft   *Draft // what they were made from
	Entries []string
}

// Emit turns the trees of a draft into text. Where a diagnostic is an error there are no objects.
func Emit(d *Draft, opts vap.EmitOptions) (Objects, diag.List) {
	frame, texts, found := vap.EmitWith(&d.Draft, d.Entries, opts)
	if found.HasErrors() {
		return Objects{}, found
	}
	return Objects{Objects: frame, Draft: d, Entries: texts}, found
}
