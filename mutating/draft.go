package mutating

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// A Draft is a MutatingAdmissionPolicy with its bindings, whose expressions are still trees.
type Draft struct {
	// Draft is what policies that validate have too: the name, the members, what is matched,
	// the variables and the bindings, of which the actions do not count. It has no validations.
	vap.Draft
	Mutations []Mutation // in the order in which they are made
	// Reinvocation is Never, or IfNeeded where a second run changes nothing more; Never
	// where empty.
	Reinvocation string
	// Repeatable tells that a second run is proven to change nothing more.
	Repeatable bool
	// Shared tells of an object that rules of several policies may share.
	Shared bool
	// Collapsed are the lists of the object of whose elements the source keeps one of each
	// key, and the policy all.
	Collapsed []KeyedList
}

// A KeyedList is a list of an object whose elements are told apart.
type KeyedList struct {
	Path   []string // from the root of the object; Element is a step into a list
	Keys   []string // none for a list of texts, which is a set
	Unique bool     // an API server refuses elements of one key, and those without the first
}

// A Mutation is one change of the object.
type Mutation struct {
	Pos    diag.Pos
	Member int   // the index of the member that it belongs to
	Also   []int // of others
	Type   PatchType
	Expr   cel.Value // an Object, or a list of JSONPatch
}

// A PatchType is what the expression of a Mutation gives.
type PatchType string

// The patch types: an Object that is merged into the one of the request, and a list of
// operations.
const (
	ApplyConfiguration PatchType = "ApplyConfiguration"
	JSONPatch          PatchType = "JSONPatch"
)

// The reinvocation policies.
const (
	Never    = "Never"
	IfNeeded = "IfNeeded"
)

// The first releases that serve MutatingAdmissionPolicies: in a beta version, and for good.
const (
	Beta   cel.Release = 34
	Stable cel.Release = 36
)

// Version is the version of admissionregistration.k8s.io in which a release serves
// MutatingAdmissionPolicies; "" where it serves none.
func Version(release cel.Release) string {
	switch {
	case release.Supports(Stable):
		return "v1"
	case release.Supports(Beta):
		return "v1beta1"
	}
	return ""
}
