package schema

// A GVK is a group, version and kind.
type GVK struct{ Group, Version, Kind string }

// A Kind is a JSON type as the API server hands it to CEL.
type Kind int

// The kinds. A quantity and a timestamp are Strings at run time; Format tells
// them apart.
const (
	Any         Kind = iota // unknown or preserve-unknown-fields: every step must be guarded
	Bool                    //
	Int                     //
	Number                  // int or double
	String                  // of a Format
	IntOrString             //
	Object                  // known fields
	Map                     // string keys, values of Elem
	List                    // items of Elem
)

// A Format is what the texts of a String have to be.
type Format int

// The formats. Of Quantity and Duration, OpenAPI tells in words only.
const (
	AnyText Format = iota
	Quantity
	Duration
	DateTime
	Bytes // base64
	Plain // without wildcards, which no OpenAPI document tells
	// Withheld is of an Any that is there for some readers and not for others, so that nobody is
	// to read it.
	Withheld
)

// formatNamed is the format that OpenAPI calls name.
func formatNamed(name string) Format {
	switch name {
	case "date-time":
		return DateTime
	case "byte":
		return Bytes
	case "duration":
		return Duration
	}
	return AnyText
}

// A Type is what the schema knows of a value.
type Type struct {
	Kind   Kind
	Format Format            // of a String
	Fields map[string]*Field // of an Object
	Elem   *Type             // of a Map or List
	// Nullable tells that the value may be null. Built-in kinds have few nulls: the
	// API server drops them when it decodes, but writes some empty lists as null.
	Nullable bool
	// Default is the JSON text of what an API server fills in where the value is missing: of
	// custom kinds, whose schemas say it; nil where there is none.
	Default []byte
	// Filled tells that a List or a Map that is there has an element.
	Filled bool
	// Open tells that an Object may have fields that are not in Fields.
	Open bool
	// Published tells that an Object is Open only since a cluster may have another
	// release of the project that published the kind: in that release it has Fields alone.
	Published bool
}

// HoldsQuantities tells of quantities, and of lists and maps of them.
func (t *Type) HoldsQuantities() bool {
	return t != nil && (t.Kind == String && t.Format == Quantity || t.Elem.HoldsQuantities())
}

// A Field is a field of an Object.
type Field struct {
	Name string
	Type *Type
	// Required tells that the field is always there, so that no has() is needed.
	Required bool
	// Mandatory tells that the schema requires the field: valid objects have it.
	// It does not imply Required; gen/required.go says why.
	Mandatory bool
}

// A Resource is a kind as the API server serves it.
type Resource struct {
	GVK
	Plural       string
	Namespaced   bool
	Subresources []Subresource
	// Guessed tells that group and version are patterns, or not known. The plural is the
	// English one where Project is nil too.
	Guessed bool
	// Published are the kinds that the resource stands for, where it stands for all that are
	// published.
	Published []GVK
	// Project is what published the kind, or one of its versions; nil where the release has
	// it, or a definition.
	Project *Project
}

// A Subresource is, for instance, scale or exec, with the kind of its body.
type Subresource struct {
	Name string
	GVK  GVK
}
