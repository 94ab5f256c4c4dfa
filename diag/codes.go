package diag

// The codes. Values never change; new ones go at the end of their hundred.
// Each comment says when the code occurs and ends with an Example that yields
// it: a fragment of a rule, or a whole file. docs/codes.md and kvap explain are
// made from these comments.

// 1xx: reading.
const (
	// Unreadable occurs when a file cannot be read at all: it does not exist, is
	// larger than 10 MiB, or is no valid UTF-8.
	Unreadable Code = 101
	// Syntax occurs when a document is no valid YAML or JSON.
	Syntax Code = 102
	// Template occurs when a file is a Helm template; render it first.
	Template Code = 103
	// AliasBomb occurs when aliases expand to more nodes than a policy can have.
	AliasBomb Code = 104
	// DuplicateKey occurs when a mapping has the same key twice.
	DuplicateKey Code = 105
	// UnknownKey occurs when a mapping has a key that the policy language does not know.
	UnknownKey Code = 106
	// WrongType occurs when a value has another type than the policy language wants.
	WrongType Code = 107
	// OutOfRange occurs when a value has the right type but is not among the allowed ones.
	OutOfRange Code = 108
	// Missing occurs when a required key is absent.
	Missing Code = 109
	// Conflict occurs when keys stand together that exclude each other.
	Conflict Code = 110
	// OtherKind occurs when a document is of a kind that kvap does not convert; it is passed over.
	OtherKind Code = 111
	// BadExpression occurs when a JMESPath or CEL expression does not parse.
	BadExpression Code = 112
	// Deprecated occurs when a key still works but has a newer form, or has no effect any more.
	Deprecated Code = 113
)

// 4xx: checks of the emitted objects.
const (
	// ExpressionTooLong occurs when an expression is longer than the API server takes.
	ExpressionTooLong Code = 401
	// InvalidObject occurs when the API server would refuse an object: its fields
	// are not as they must be, or an expression does not compile for the release.
	InvalidObject Code = 402
	// StaticParams occurs when a policy with params is to be a static manifest.
	StaticParams Code = 403
	// TypeCheckFailed occurs when an expression does not fit the schema of a kind
	// that the policy matches.
	TypeCheckFailed Code = 404
)
