package mutating

// A Merge is how an apply configuration is merged into what stands at a path of an object.
type Merge struct {
	// Known is false where the API server has no type for the path, and refuses the patch.
	Known bool
	// Atomic tells of a list or a map that is not merged, and that an apply configuration may
	// not touch therefore.
	Atomic bool
	// Keys tell the elements of a list apart.
	Keys []string
}

// Element is the step of a path from a list to its elements.
const Element = "[]"
