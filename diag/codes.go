package diag

// The codes. Values never change; new ones go at the end of their hundred.
// Each comment says when the code occurs and ends with an Example that yields
// it: a fragment of a rule, or a whole file. docs/codes.md and kvap explain are
// made from these comments.

// 1xx: reading.
const (
	// Unreadable occurs when a file cannot be read at all: it does not exist, is
	// larger than 10 MiB, or is no valid UTF-8. The other files are still read.
	//
	// Correct the path, split the file, or save it as UTF-8.
	//
	// Example:
	//
	//	$ kvap convert no-such-file.yaml
	Unreadable Code = 101
	// Syntax occurs when a document is no valid YAML or JSON. The other documents
	// of the file are still read.
	//
	// The place is where the parser gave up; the mistake is there or in the line
	// before. Often it is a tab, a bracket that stays open, or a string with a colon
	// or a brace that needs quotes.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: open
	//	  labels: {app: x
	//	spec: {}
	Syntax Code = 102
	// Template occurs when a file is a Helm template. What it says is not known
	// before it is rendered, so nothing of it is read.
	//
	// Render it first: helm template CHART | kvap convert -
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: {{ .Release.Name }}-labels
	//	spec:
	//	  rules: []
	Template Code = 103
	// AliasBomb occurs when the aliases of a document expand to more nodes than a
	// policy can have, or an alias contains itself. The document is not read.
	//
	// Write the values out, or use aliases for small parts only.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: bomb
	//	a: &a [x, x, x, x, x, x, x, x, x, x]
	//	b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
	//	c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
	//	d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
	//	e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
	AliasBomb Code = 104
	// DuplicateKey occurs when a mapping has the same key twice. Parsers differ in
	// which of the two they take, so kvap takes the rule for invalid.
	//
	// Remove one of the two.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    spec:
	//	      hostPID: false
	//	      hostPID: true
	DuplicateKey Code = 105
	// UnknownKey occurs when a mapping has a key that the policy language does not
	// know. The API server refuses such an object or drops the key, and what it
	// should have done is not done.
	//
	// Correct the spelling, or move the key to where it belongs.
	//
	// Example:
	//
	//	validate:
	//	  mesage: Host network is not allowed.
	//	  pattern:
	//	    spec:
	//	      hostNetwork: false
	UnknownKey Code = 106
	// WrongType occurs when a value has another type than the policy language wants,
	// for instance a number or a bool where a string is expected. Without quotes, yes,
	// no, on and off are bools.
	//
	// Put a string in quotes; write a list with dashes or brackets.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: Pod
	WrongType Code = 107
	// OutOfRange occurs when a value has the right type but is not among the allowed
	// ones: an operator, an action, a version, a name that is too long.
	//
	// Use one of the values that the message names.
	//
	// Example:
	//
	//	preconditions:
	//	  all:
	//	    - key: "{{ request.operation }}"
	//	      operator: Is
	//	      value: CREATE
	OutOfRange Code = 108
	// Missing occurs when a required key is absent, null or empty.
	//
	// Add it.
	//
	// Example:
	//
	//	context:
	//	  - name: settings
	//	    configMap:
	//	      namespace: default
	Missing Code = 109
	// Conflict occurs when keys or values stand together that exclude each other, as
	// two checks in one rule. As a warning it names what is ignored.
	//
	// Remove one of them, or split the rule.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    spec:
	//	      hostNetwork: false
	//	  deny: {}
	Conflict Code = 110
	// OtherKind occurs when a document is of a kind that kvap does not convert. It is
	// passed over; nothing needs to be done.
	//
	// Example:
	//
	//	apiVersion: v1
	//	kind: ConfigMap
	//	metadata:
	//	  name: settings
	OtherKind Code = 111
	// BadExpression occurs when a JMESPath or CEL expression does not parse.
	//
	// Correct the expression at the place that the message names.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      any:
	//	        - key: "{{ request.object.spec.containers[?image }}"
	//	          operator: Equals
	//	          value: x
	BadExpression Code = 112
	// Deprecated occurs when a key still works but has a newer form, or has no effect
	// any more.
	//
	// Use the form that the message names.
	//
	// Example:
	//
	//	validate:
	//	  assert:
	//	    spec:
	//	      hostNetwork: false
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
