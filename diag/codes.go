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
	// Template occurs when a file is a template of another tool: of Helm, or of Red Hat
	// Advanced Cluster Management ({{hub … hub}}). What it says is not known before it
	// is rendered, so nothing of it is read. A file whose actions only write the braces of
	// variables, as {{`{{ request.name }}`}}, is read as what they write.
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
	// DuplicateKey occurs when a mapping has the same key twice. The last counts, as for
	// kubectl and for Kyverno, and what the other says is lost. `convert --strict` ends
	// with 1: nobody can be sure which of the two was meant.
	//
	// Remove one of the two. Where it is the apiVersion of a whole document, a line --- is
	// missing in front of it, and what stands before that is lost.
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
	// ones. Examples are an operator, an action, a version, and a name that no cluster takes.
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
	// Missing occurs when a required key is absent, null or empty. As a note it says
	// what a generate rule with nothing to make its target of makes: the bare object.
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
	// two checks in one rule. It is the same with two rules of a policy, two policies of a
	// kind or two exceptions that have one name. As a warning it names what is ignored, or
	// the other.
	//
	// Remove or rename one of them, or split the rule.
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
	// BadExpression occurs when a JMESPath or CEL expression does not parse: the rule
	// errs on every request. So it does where an expression calls a function that does not
	// exist, or one of CEL reads a name that is not declared. As a warning it names a variable
	// that nothing defines, or what looks like a literal and is not one: [], true, false and
	// null stand in backticks.
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
	// BadRequest occurs when a resource or a recorded request cannot be judged. It is not a
	// JSON or YAML object, it has no kind, it lacks its object or its operation, or the
	// object does not fit its kind. So it does where a rule reads who acts, and the request
	// names nobody: that rule is not judged. The others are still judged.
	//
	// Correct it at the place that the message names; a request is an AdmissionRequest,
	// alone or under the key request, with the user in userInfo.
	//
	// Example:
	//
	//	$ echo '{"request": {"operation": "CREATE"}}' | kvap eval policy.yaml --requests -
	BadRequest Code = 114
	// UnknownKind occurs when a resource has a kind that the Kubernetes release does
	// not serve, or a custom kind whose definition was not given. As a warning it says
	// which resource name was guessed for it.
	//
	// Correct the apiVersion or the kind; for a custom kind, give its definition with
	// --crds.
	//
	// Example:
	//
	//	$ kvap eval policy.yaml --resource widget.yaml
	UnknownKind Code = 115
	// MissingObject occurs when a rule that was judged looks up a ConfigMap, or
	// params, that were not given. The rule errs, as it would in a cluster where the
	// object is missing. It also occurs when a ValidatingAdmissionPolicy is given
	// without a binding, a binding without its policy, or one that was made from a
	// policy without that policy. There is nothing to judge or to compare with.
	//
	// Give the object with --param FILE, or the policy or the binding as one more PATH.
	//
	// Example:
	//
	//	$ kvap eval policy.yaml --resource pod.yaml
	MissingObject Code = 116
	// BadSuite occurs when a test suite, or a file that it names, cannot be used. Examples are
	// a key of the wrong type, a file that does not exist, and a policy that nothing defines.
	// The other suites still run.
	//
	// Correct the suite at the place that the message names.
	//
	// Example:
	//
	//	$ kvap test suites/
	BadSuite Code = 117
	// IdleException occurs when a PolicyException is from a policy that is not among
	// the input, or from rules that its policy does not have. It changes nothing: what
	// it should let through is judged as any other object.
	//
	// Give the policy and its exceptions together, or correct the names. A rule for pod
	// controllers has a name of its own, with autogen- or autogen-cronjob- in front.
	//
	// Example:
	//
	//	$ kvap convert policy.yaml exception.yaml
	IdleException Code = 118
	// OnSchedule occurs when a document is a CleanupPolicy, a ClusterCleanupPolicy, a
	// DeletingPolicy or a NamespacedDeletingPolicy. It deletes on a schedule and judges no
	// request, so there is nothing to convert, and no object is written for it.
	//
	// Apply it as it is: `kvap-controller` runs it on its schedule. With kvap.dev/mode:
	// enforce it deletes; in shadow its PolicyTranslation says what it would delete. The
	// controller needs the permission to list and delete the kinds that it matches.
	// `kvap convert --to kyverno` makes a DeletingPolicy of a cleanup policy.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v2
	//	kind: CleanupPolicy
	//	metadata:
	//	  name: finished
	//	spec:
	//	  schedule: "@daily"
	//	  match:
	//	    any:
	//	      - resources:
	//	          kinds: [Job]
	OnSchedule Code = 119
	// UnknownField occurs when a pattern or an expression names a field that none of the
	// kinds has which the rule matches, as a misspelt one. A pattern that wants it fails on
	// every object, one that forbids it on none; a variable that reads it is missing on every
	// request. The rule is translated as it stands, and judged so by Kyverno as well.
	//
	// Correct the name, or the kinds. Fields are those of the release of
	// --kubernetes-version, of the definitions of --crds, and of the projects of
	// docs/kinds.md in the version that stands there. Nothing is said where a definition
	// leaves open what an object may have.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    spec:
	//	      =(hostNetwrok): false
	UnknownField Code = 120
	// UnreadKind occurs when a document is a policy of a kind of policies.kyverno.io that
	// kvap does not read: one of a release of Kyverno that is younger. No object is made of
	// it, and it is not judged by.
	//
	// Leave it with Kyverno. A folder that is written has it in remainder/, as it stands,
	// and the exit code says that something was left out.
	//
	// Example:
	//
	//	apiVersion: policies.kyverno.io/v1
	//	kind: EnvoyAuthorization
	//	metadata:
	//	  name: calls
	//	spec: {}
	UnreadKind Code = 121
	// OtherEngine occurs when a document is a policy of another engine, as a constraint of
	// Gatekeeper or an AdmissionPolicy of Kubewarden. kvap does not read it: no object
	// is made of it, and it is not judged by.
	//
	// Leave it with its engine. A folder that is written has it in remainder/, as it
	// stands, and the exit code says that something was left out.
	//
	// Example:
	//
	//	apiVersion: constraints.gatekeeper.sh/v1beta1
	//	kind: K8sRequiredLabels
	//	metadata:
	//	  name: all-must-have-owner
	//	spec: {}
	OtherEngine Code = 122
	// IncompleteObject occurs when an object lacks a field that every object of its kind has
	// when a policy sees it, such as the image of a container. An API server fills the field
	// in, or refuses the object, before it asks a policy. The object is judged all the same;
	// the native form relies on the field, so its verdict may be an error, and is not
	// compared.
	//
	// Add the field, or leave it: the object never comes to be.
	//
	// Example:
	//
	//	$ kvap eval policy.yaml --resource pod.yaml
	IncompleteObject Code = 123
	// Excepted occurs when a PolicyException is from a policy of the input. It is part of what
	// is made of the policy, and of what the webhook judges by: nothing is written for it.
	//
	// Keep it in the cluster where kvap's webhook or controller runs: there it counts in the
	// namespaces of --exception-namespaces.
	//
	// Example:
	//
	//	$ kvap convert policy.yaml exception.yaml --report -
	Excepted Code = 124
	// BadIgnore occurs when an annotation or a comment kvap.dev/ignore accepts findings and does
	// not say which, or not why. It accepts nothing.
	//
	// Write the codes and the reason, as in kvap.dev/ignore: "KV413: another team writes the
	// binding". Several stand on lines of their own.
	//
	// Example:
	//
	//	$ kvap check policy.yaml
	BadIgnore Code = 125
)

// 2xx: no native form; the webhook judges the rule.
const (
	// NoExpression occurs when a construct has no expression in the CEL of the
	// release, or none that is sure to give the same verdict.
	//
	// The webhook judges the rule, unless it is written in another way. Where the kind
	// is a custom one, --crds gives its types, and more has an expression. A newer
	// --kubernetes-version knows more of CEL. Often the message names the part to write
	// differently. Of images.containers."{{ element.name }}".registry there is no native
	// form; images.containers.*.registry, outside of a foreach, has one.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.spec.containers[::-1].name }}"
	//	          operator: AnyIn
	//	          value: [a]
	NoExpression Code = 201
	// NoFunction occurs when a JMESPath function has no equivalent in CEL.
	//
	// Compare the value itself where that says the same, or write the rule as a
	// ValidatingPolicy, in CEL. Otherwise the webhook judges it.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ base64_decode(request.object.metadata.name) }}"
	//	          operator: Equals
	//	          value: a
	NoFunction Code = 202
	// NoOperator occurs when an operator is not known, or is a deprecated one in a
	// form that has no native equivalent.
	//
	// Use AnyIn, AllIn, AnyNotIn or AllNotIn.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.metadata.name }}"
	//	          operator: In
	//	          value: "{{ request.object.metadata.namespace }}"
	NoOperator Code = 203
	// OutsideData occurs when a rule reads what the API server never hands to CEL:
	// the answer of an API call, an image registry, a global context entry.
	//
	// Put what the rule looks up into a ConfigMap, which becomes the params of the
	// policy, or into labels of the namespace. Otherwise the webhook judges it. Kyverno's
	// kinds in CEL can ask for objects and lists of them, so convert --to kyverno leaves
	// only other calls.
	//
	// Example:
	//
	//	context:
	//	  - name: quota
	//	    apiCall:
	//	      urlPath: /api/v1/resourcequotas
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ quota.items }}"
	//	          operator: Equals
	//	          value: a
	OutsideData Code = 204
	// Roles occurs when a rule matches by roles or cluster roles. Finding them takes
	// reading RBAC objects.
	//
	// Match by subjects instead.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod]
	//	      clusterRoles: [cluster-admin]
	Roles Code = 205
	// PatternVariable occurs when a pattern holds a variable of the request: its
	// operators and wildcards are known only at run time.
	//
	// Write the comparison as a condition of a deny rule. A text of a ConfigMap may stand
	// beside a wildcard there, with an operator of membership:
	//
	//	key: "{{ element.image }}"
	//	operator: AnyNotIn
	//	value: "{{ settings.data.registry }}/*"
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      name: "{{ request.namespace }}-*"
	PatternVariable Code = 206
	// NoKinds occurs when a filter of the match block has no kinds.
	//
	// Name the kinds that the filter is meant for.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        namespaces: [default]
	NoKinds Code = 207
	// Manifests occurs when a rule verifies signed manifests.
	//
	// No expression can do that; the webhook judges the rule. Keep it in a policy of its
	// own, so that the others need no webhook.
	//
	// Example:
	//
	//	validate:
	//	  manifests:
	//	    attestors:
	//	      - entries:
	//	          - keys:
	//	              publicKeys: k8s://default/key
	Manifests Code = 208
	// OtherRule occurs when a rule mutates, generates or verifies images, or a policy is a
	// MutatingPolicy, a GeneratingPolicy or an ImageValidatingPolicy.
	//
	// MutatingAdmissionPolicies are made of what mutates for Kubernetes 1.36 and newer, or
	// with --mutations native, and then the code is for what changes existing objects.
	//
	// What changes an object on its way in is done by the webhook, which also verifies
	// images, in the registries that --image-registries names. A rule that asks each image for
	// a digest, and for nothing else, may be native: docs/images.md says when. What changes
	// other objects or makes new ones is done by the controller, in the background. Keep
	// such rules in policies of their own, so that those that validate need no webhook.
	//
	// Example:
	//
	//	mutate:
	//	  patchStrategicMerge:
	//	    metadata:
	//	      labels:
	//	        a: b
	OtherRule Code = 209
	// BackgroundOnly occurs when a policy has admission: false. Nothing judges its
	// rules when objects are written, before the translation and after it. The scans
	// of kvap-controller --reports judge the objects that are there by them.
	//
	// Remove admission: false, if the rules are to count when objects are written.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: example
	//	spec:
	//	  admission: false
	//	  rules:
	//	    - name: example
	//	      match:
	//	        any:
	//	          - resources:
	//	              kinds: [Pod]
	//	      validate:
	//	        pattern:
	//	          metadata:
	//	            name: a
	BackgroundOnly Code = 210
	// NoBody occurs when a rule does nothing that kvap knows.
	//
	// Give it a validate block, or remove it.
	NoBody Code = 211
	// ApplyOne occurs when applyRules: One makes a rule depend on the verdict of
	// those before it.
	//
	// Split the policy where the rules exclude each other by their match blocks.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: example
	//	spec:
	//	  applyRules: One
	//	  rules:
	//	    - name: a
	//	      match:
	//	        any:
	//	          - resources:
	//	              kinds: [Pod]
	//	      validate:
	//	        pattern:
	//	          metadata:
	//	            name: a
	//	    - name: b
	//	      match:
	//	        any:
	//	          - resources:
	//	              kinds: [Pod]
	//	      validate:
	//	        pattern:
	//	          metadata:
	//	            name: b
	ApplyOne Code = 212
	// NeedsNewer occurs when the CEL of the release lacks a function that a newer one has.
	//
	// Choose a newer release with --kubernetes-version, if the cluster has it.
	NeedsNewer Code = 213
	// InvalidRule occurs when a rule could not be read, so that nothing judges it. It also
	// occurs when a match condition of the whole policy asks for params,
	// variables or the namespace: Kyverno evaluates it without them, and passes the policy over.
	//
	// Correct the rule; the 1xx diagnostics of the same place say how.
	InvalidRule Code = 214
	// OtherPayload occurs when a ValidatingPolicy is for JSON documents that are no
	// Kubernetes objects (evaluation.mode: JSON). Nothing judges them at admission.
	//
	// Judge documents by it with kvap eval --json FILE, or with a jsonPayload of kvap test;
	// there is nothing to convert.
	OtherPayload Code = 215
	// CompilerFault occurs when the compiler itself, or a check, fails on a policy. The
	// other policies are compiled and checked as always.
	//
	// This is a mistake in kvap: please report it, with the policy.
	CompilerFault Code = 216
	// TooLarge occurs when a rule would become larger than an API server takes, or than a
	// person could read. Examples are many choices that depend on one another, and lists
	// within lists of them. Others are CEL and regular expressions of which more comes than
	// is written, as variables.a + variables.a again and again, or a{1000} many times. A
	// policy that is too large as a whole has no native rule at all. The webhook compiles
	// none of its CEL where that is what is too large, and each such rule is an error. check
	// looks no further into an admission policy of which that is so.
	//
	// Split the rule, or say the same with fewer alternatives (||) and variables. Split a
	// policy of more than 300,000 bytes.
	TooLarge Code = 217
	// ReleaseDependent occurs when a CEL expression means one thing in some releases of
	// Kubernetes and another in others, so that no object could say it for all. Up to
	// 1.36, x.orValue(y) is x where x is no optional value, and from 1.37 on it is an
	// error. Where kvap can tell that x is none, it writes x.
	//
	// Call orValue only on what .?field, [?key] or optional.of gives.
	//
	// Example:
	//
	//	validate:
	//	  cel:
	//	    expressions:
	//	      - expression: "(has(object.spec.old) ? object.spec.old : object.spec.?new).orValue(1) > 0"
	ReleaseDependent Code = 218
	// VerifiesImages occurs when a rule, or an ImageValidatingPolicy, asks of images what kvap
	// does not verify. kvap verifies no signatures in referrers of the form before bundles
	// (cosignOCI11), by keys of a key management service, or by anybody. No expression can ask
	// a registry, and the webhook verifies what cosign and notation write beside an image, by
	// keys, certificates and identities: it does not run this rule.
	//
	// Leave the rule with Kyverno, in a policy of its own; or put the public key into the
	// policy or a Secret.
	//
	// Example:
	//
	//	verifyImages:
	//	  - imageReferences: ["example.com/*"]
	//	    attestors:
	//	      - entries:
	//	          - keys:
	//	              kms: awskms:///alias/acme
	VerifiesImages Code = 219
	// NamespaceLimit occurs when the policies of one namespace have more native rules, or
	// more native objects, than the controller makes for one namespace: 100, unless
	// --namespace-limit says otherwise. Each API server compiles and keeps every native
	// object, whoever wrote the policy. The rules beyond the limit go to the webhook.
	//
	// Have fewer rules in the namespace, or write a ClusterPolicy, which has no limit.
	NamespaceLimit Code = 220
	// ChangesExisting occurs when a MutatingPolicy is about objects that are there already, by
	// targetMatchConstraints, and evaluation.mutateExisting is off. It changes nothing, here or
	// in Kyverno: at admission for its targets, and elsewhere for the switch.
	//
	// Set evaluation.mutateExisting.enabled. Where new objects need the change, remove
	// targetMatchConstraints, and the webhook runs the policy.
	//
	// Example:
	//
	//	apiVersion: policies.kyverno.io/v1
	//	kind: MutatingPolicy
	//	metadata:
	//	  name: example
	//	spec:
	//	  targetMatchConstraints: {expression: object}
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
	//	  mutations:
	//	    - patchType: ApplyConfiguration
	//	      applyConfiguration:
	//	        expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
	ChangesExisting Code = 221
	// RunsOnce occurs in a cluster when a mutate rule may make something else of an object
	// that it has changed already. Such a rule adds to the end of a list, or what it writes
	// depends on what it wrote before, such as an image with a registry put in front. While a
	// policy goes from the webhook to the API server, or back, a request may be changed by
	// both. So the webhook of kvap-controller keeps such rules; kvap convert, and a controller
	// without its webhook, make them native.
	//
	// Write the rule so that what it writes does not depend on what it wrote before. Replace
	// the registry of an image under a precondition that asks whether it is there; add an
	// element by its name.
	//
	// Example:
	//
	//	$ kvap-controller --webhook-address :9443 --webhook-service kvap-webhook
	RunsOnce Code = 222
	// LateKind occurs in a cluster when a mutate rule is about a kind that is not built in, or
	// about every kind. For some seconds after a kind is defined, or defined anew, an API
	// server refuses whatever a MutatingAdmissionPolicy is to change of it, or stores it
	// unchanged under failurePolicy Ignore. So the webhook of kvap-controller keeps such
	// rules; kvap convert, and a controller without its webhook, make them native.
	//
	// Nothing is to be done.
	//
	// Example:
	//
	//	$ kvap-controller --webhook-address :9443 --webhook-service kvap-webhook
	LateKind Code = 223
	// NoKyvernoForm occurs with --to kyverno, when a rule has a native form and none among
	// Kyverno's kinds in CEL. It may ask for something that these kinds do not have, such as
	// the authorizer. The rule stays as it is, and a folder gets it in remainder/. So does a
	// cleanup policy whose kinds have wildcards: to it they mean nothing, and to a
	// DeletingPolicy everything. A schedule such as @every 1h has no form there either.
	// A policy that is of these kinds already stays as it is too, which a note tells.
	//
	// The sentence says what stands in the way. Say it in another way and convert again,
	// or write that rule by hand.
	//
	// Example:
	//
	//	$ kvap convert --to kyverno policies/ -o cel/
	NoKyvernoForm Code = 224
)

// 3xx: native, but different in a way the user must know.
const (
	// WildcardKey occurs when a pattern has a wildcard in a key of labels or
	// annotations. Kyverno takes an arbitrary one of the keys that match. The message says
	// what is decided here:
	//   - of a plain key, some matching key must satisfy the pattern;
	//   - a condition holds where some matching key satisfies it;
	//   - of an equality anchor, every matching key must satisfy the pattern;
	//   - of a negation, no matching key may be there.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      labels:
	//	        corp/*: "?*"
	WildcardKey Code = 301
	// GuessedResource occurs when a kind is not built in, its definition is not given, and
	// no project publishes it, so that the name of its resource is the English plural. Where
	// that is wrong, the API server never asks the native form, and the rule enforces
	// nothing: convert ends with 4, and with 1 under --strict. It is the same with a version
	// of a built-in kind that Kubernetes serves no more. It is the same with apps/Deployment,
	// the subresource Deployment of a kind apps: with its group, write apps/v1/Deployment.
	// A kind that no request is about has no native form: what a request for pods/exec has in
	// it is a PodExecOptions, but the kind is written Pod/exec. It is told once for a rule.
	//
	// Correct the kind where it is misspelt, or give the definition with --crds. Which kinds
	// are published, docs/kinds.md says.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Widget]
	GuessedResource Code = 302
	// MessageVariable occurs when a variable of the message has no native form. The
	// message shows it as it is written, and the others filled in; the verdict is the
	// same.
	//
	// Example:
	//
	//	validate:
	//	  message: "refused {{ base64_encode(request.object.metadata.name) }}"
	//	  pattern:
	//	    metadata:
	//	      name: a
	MessageVariable Code = 303
	// ASCIICase occurs when to_upper or to_lower meets letters beyond ASCII, which
	// CEL leaves as they are. Nothing is said of labels and of namespaces, which have none, and
	// nothing twice of a rule.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ to_upper(request.object.metadata.name) }}"
	//	          operator: Equals
	//	          value: A
	ASCIICase Code = 304
	// TextEquality occurs when two values of the request are compared. Kyverno reads
	// them in every way that their texts allow: 1h equals 60m, 1000m equals 1, a* is a
	// pattern, 5-7 a range. Here they are equal where they are the same, and numbers, and
	// what the schema says are quantities or durations, by value (deviation 15). Nothing
	// else has an order: to compare it is an error. A rule is named once.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.metadata.name }}"
	//	          operator: Equals
	//	          value: "{{ request.object.spec.nodeName || '' }}"
	TextEquality Code = 305
	// OverrideBoth occurs when an action override has namespaces and a selector.
	// Kyverno joins them by OR in one place and by AND in another; here it is AND.
	//
	// Example:
	//
	//	validate:
	//	  failureActionOverrides:
	//	    - action: Enforce
	//	      namespaces: [prod]
	//	      namespaceSelector:
	//	        matchLabels:
	//	          env: prod
	//	  pattern:
	//	    metadata:
	//	      name: a
	OverrideBoth Code = 307
	// ConfigMapParams occurs when a policy reads a ConfigMap as its params. Up to
	// Kubernetes 1.37 the API server stops following ConfigMaps for policies once no
	// binding has used one for a second, until it is restarted.
	//
	// Keep one binding that uses a ConfigMap at all times. Or use --params kvap: then kvap
	// controller copies the ConfigMap into an object of its own kind, and follows it.
	ConfigMapParams Code = 308
	// IgnoredAnchor occurs when a pattern has a conditional or existence anchor and
	// errors are ignored. Where the anchor's key is nowhere in the object, Kyverno
	// calls a violation an error and admits it; here it is a violation.
	IgnoredAnchor Code = 309
	// Costly occurs when a rule goes through lists inside lists. The API server stops
	// an expression that costs too much; that is an error, and denies the request if
	// the failure policy is Fail. What decides here is an upper bound, as if no loop ended
	// early, on an object of the size that KV410 assumes. Where the loops do end early, it
	// takes objects with hundreds of elements in each list.
	//
	// kvap check measures what objects cost, which KV410 and KV411 tell, and has the bound in
	// -o wide; --size containers=10 says how large something really is.
	//
	// Example:
	//
	//	validate:
	//	  foreach:
	//	    - list: request.object.spec.volumes
	//	      deny:
	//	        conditions:
	//	          any:
	//	            - key: "{{ request.object.spec.[containers, initContainers][].volumeMounts[?name == '{{element.name}}' && readOnly][] | length(@) }}"
	//	              operator: Equals
	//	              value: 0
	Costly Code = 312
	// RuntimeText occurs when a value to compare with is a text of a ConfigMap, which is
	// known only at run time. It is a pattern, in which * and ? count, and never a range, a
	// quantity or a duration. To an operator of membership the JSON of a list of words is
	// that list, and any other text its one element. A list with escapes, or of other things
	// than texts, is an error, where Kyverno decides. The same is true of image references
	// that only Kyverno's grammar knows.
	//
	// Keep such texts to words, or choose the failure policy Fail.
	//
	// Example:
	//
	//	context:
	//	  - name: owners
	//	    configMap:
	//	      name: owners
	//	      namespace: policies
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.metadata.name }}"
	//	          operator: AnyNotIn
	//	          value: "{{ owners.data.names }}"
	RuntimeText Code = 313
	// LeftOut occurs when a part of a CEL rule is left out that Kyverno has no use
	// for, and on which the API server would refuse the policy or requests. Examples are
	// an audit annotation that may be an error, and a reason that the API server does not take.
	//
	// Guard the fields that the annotation reads, with has() or as optional ones.
	LeftOut Code = 310
	// NeedsNoObject occurs when no request can violate a rule, as one whose
	// preconditions never hold. It is native, and has no object.
	//
	// Nothing is lost. Where the rule was to forbid something, look for what makes it
	// always pass.
	//
	// Example:
	//
	//	preconditions:
	//	  all:
	//	    - key: production
	//	      operator: Equals
	//	      value: test
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      labels:
	//	        app: "?*"
	NeedsNoObject Code = 314
	// UnaskedOperation occurs when a rule that lists no operations can deny a DELETE or
	// a CONNECT. Kyverno asks such a rule about all four operations, although its
	// documentation names CREATE and UPDATE, and so does its native form: an object
	// that violates it cannot be deleted.
	//
	// List the operations in match. With --operations create-update, rules that list
	// none get the two that are documented.
	//
	// Example:
	//
	//	validate:
	//	  failureAction: Enforce
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.spec.hostNetwork || `false` }}"
	//	          operator: Equals
	//	          value: true
	UnaskedOperation Code = 317
	// NeverOnUpdate occurs when a rule can deny no update. An update of an object that
	// violated the rule before is let through, and this rule looks only at what does
	// not change. It counts when objects are created.
	//
	// Set allowExistingViolations: false in the rule, or convert with
	// --existing-violations deny.
	//
	// Example:
	//
	//	validate:
	//	  failureAction: Enforce
	//	  pattern:
	//	    metadata:
	//	      name: "?????*"
	NeverOnUpdate Code = 315
	// DefaultFilters occurs when a rule is on every kind, or can deny what the control
	// plane writes by itself, such as Events, Nodes and Leases. Kyverno's default
	// configuration has resource filters that keep all policies away from these
	// objects. They are no part of a policy, so its native form judges them.
	//
	// Name the kinds that the rule is meant for, or exclude the others.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: ["*"]
	DefaultFilters Code = 316
	// Rewritten occurs when a CEL expression, or the failure policy of a CEL rule, does
	// not come out as it was written. Natively it would mean another thing, or could not
	// stand where it must. The verdict is the same.
	//
	// A CEL rule of a policy whose failure policy is Ignore comes out as Fail. To
	// Kyverno an error of a CEL expression is a violation, which it denies under either,
	// and the API server would admit it under Ignore.
	//
	// Nothing need be done. Ask with has(), or read fields as optional ones (.?field),
	// where the message says that the expression asks for what it reads.
	//
	// Example:
	//
	//	validate:
	//	  cel:
	//	    expressions:
	//	      - expression: object.spec.priority < 10
	Rewritten Code = 318
	// ActsTwice occurs in a migration plan when a mutate rule changes again what it has
	// changed, as far as its text shows. It adds to a list, takes from one, moves
	// something, or makes a value of the value that stands there. While Kyverno and kvap
	// both enforce it, for the seconds of the handover, it may act twice on an object. It
	// does so with Kyverno alone whenever another webhook changes the object after it.
	//
	// Add a precondition that what the rule does is not done yet, or, where that stands
	// there already or acting twice does no harm, say so: kvap migrate enforce --accept.
	ActsTwice Code = 319
	// FirstImage occurs when a rule reads the first or the last of several images, as in
	// images.containers.*.registry | [0]. Images have no order: Kyverno takes an arbitrary
	// one, and two such expressions may take two different ones. Here it is that of the
	// container whose name comes first, or last, so each request has one verdict. Of an
	// object with one container nothing differs.
	//
	// Nothing need be done where objects have one container. Else go through all of them,
	// with foreach.
	//
	// Example:
	//
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ images.containers.*.registry | [0] }}"
	//	          operator: NotEquals
	//	          value: ghcr.io
	FirstImage Code = 320
	// OwnObjects occurs when a rule would judge what kvap's own controller writes to keep
	// policies in force, or to end that. Examples are PolicyTranslations, Params and
	// GenerateRequests, its lease and the configurations of its webhook. Another is the
	// deletion of a policy. These are left out. A rule on every kind would keep the
	// controller from working otherwise, and itself from being deleted. Kyverno judges all
	// of them. A rule that names a kind of policies of Kyverno judges their deletion here as
	// well.
	//
	// Nothing need be done. Who may write these objects is for RBAC to say.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: ["*"]
	OwnObjects Code = 321
	// ExcludedNamespace occurs when a rule is about namespaces that bindings leave out:
	// those of --exclude-namespaces, which are kube-system, kube-public and kube-node-lease
	// unless told otherwise, as in Kyverno's own configuration. A native rule whose match
	// has such a namespace by name, or by a wildcard that is not all of them (kube-*), is
	// enforced there all the same. A rule of the webhook is not, nor is a rule that leaves
	// the namespace open in another filter of any. Nor is one that knows it by a
	// namespaceSelector, or one of a policy that lives there.
	//
	// Where the rule is enforced, see that it is meant: Kyverno does not judge there unless
	// its configuration is changed. Where it is not, do what the message says, or set
	// --exclude-namespaces.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod]
	//	        namespaces: [kube-system]
	ExcludedNamespace Code = 323
	// PublishedKind occurs when a rule names a kind without its group or version, and what is
	// known of its fields is what projects publish. Kyverno would ask the cluster which groups
	// and versions have the kind. The message has those that are published: the rule is on them
	// alone. A cluster may have a kind of that name in which a field that the rule
	// reads has another type than in what is published. Then the verdict may be another, or
	// an error. Fields that are not published are read as those of an unknown kind.
	// The first such kind of a run is told, and notes tell the others.
	//
	// Write group and version, or give the definitions of the cluster with --crds. With
	// --any-group such rules are on every group and version that has the kind. Which
	// kinds are published, and what is relied upon, docs/kinds.md says.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [VirtualService]
	PublishedKind Code = 325
	// MutationOrder occurs when two policies may write the same field of an object, and become
	// MutatingAdmissionPolicies. An API server promises no order among them, so which one
	// writes last may differ from request to request. Kyverno promises none either.
	// `convert --strict` ends with 1.
	//
	// Put the rules into one policy: those of a policy keep their order.
	//
	// Example:
	//
	//	$ kvap convert policies/ --kubernetes-version 1.36
	MutationOrder Code = 326
	// ElementsOfOneKey occurs when a patchStrategicMerge on a built-in kind becomes a
	// MutatingAdmissionPolicy. Kyverno keeps the last of the elements that have the same
	// key. It does so in all lists of the object whose elements are told apart by a key,
	// whether or not the patch names them. Examples are two variables of one name in env, two
	// ports alike, and a finalizer that is there twice. Natively all of them stay, and what
	// the patch says of their key may reach some of them or none. Where an API server wants
	// the keys to differ (names of containers and of volumes, mount paths), it refuses the
	// object. Kyverno makes the object valid by taking elements away.
	// Where the patch names no such list, this is a note.
	//
	// Nothing is to be done where nobody relies on Kyverno taking such elements away.
	//
	// Example:
	//
	//	$ kvap convert policies/ --kubernetes-version 1.36
	ElementsOfOneKey Code = 328
	// LostZero occurs when a mutate rule asks for a field that another policy writes as false, 0
	// or an empty text, and both become MutatingAdmissionPolicies. Between two policies an API
	// server has the object in its Go type, which drops most fields that are empty. So a
	// condition on the field finds none, and +(field) adds it, where Kyverno finds what was
	// written. It gives its defaults to an element that a policy adds, as the imagePullPolicy of
	// a container: there +(field) adds nothing, where Kyverno adds it. Within a policy such a rule is the webhook's. `convert --strict` ends with 1.
	//
	// Put both rules into one policy, or ask for something else.
	//
	// Example:
	//
	//	mutate:                        # behind a policy that writes hostNetwork: false
	//	  patchStrategicMerge:
	//	    spec:
	//	      (hostNetwork): false
	//	    metadata:
	//	      labels:
	//	        net: pod
	LostZero Code = 329
	// DeniesEvery occurs when every object of a kind that a rule matches violates it,
	// whatever it has in it: the pattern asks for what no such object can have. Examples are
	// spec.containers of a Deployment, and a text where the object has a map.
	//
	// Correct the pattern or the kinds. Where the rule is to deny everything, say so by
	// deny: {}, of which nothing is told.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod]
	//	validate:
	//	  pattern:
	//	    spec:
	//	      securityContext: "!x"
	DeniesEvery Code = 330
	// ErrsAlways occurs when a rule is an error on every request that it matches, or on every
	// one of some operations, for it reads what none of them has. Examples are a field that the
	// kind does not have, and on DELETE the object in a query of the context.
	// Kyverno denies such a request where the rule is enforced under the failure policy Fail,
	// and so does the API server. Else it lets it through.
	//
	// Correct what is read, or give it a default, as in {{ request.object.spec.x || '' }}.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [ConfigMap]
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.date.x }}"
	//	          operator: Equals
	//	          value: a
	ErrsAlways Code = 331
	// NeverSatisfied occurs when no value can be as a condition or a leaf of a pattern wants
	// it. Examples are a number that is to be a word, and a map that is to be a text. What the
	// rule asks there is never so.
	//
	// Compare with a value of the type that stands there, or look for another field.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Deployment]
	//	validate:
	//	  deny:
	//	    conditions:
	//	      all:
	//	        - key: "{{ request.object.spec.replicas || `1` }}"
	//	          operator: Equals
	//	          value: many
	NeverSatisfied Code = 332
	// RegularExpression occurs when a text to compare with, or a name or a namespace of a match
	// block, looks like a regular expression.
	// Kyverno has none there: * is any run of characters, ? is one, in a pattern | and &
	// separate what is compared, and everything else stands for itself.
	//
	// Write the values out, use wildcards, or ask with regex_match in a condition.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      labels:
	//	        team: at[0-9]{5}
	RegularExpression Code = 333
	// OtherElements occurs when a list of a pattern has more than one element. Kyverno holds
	// the first against every element of the object's list, and does not look at the others.
	// In an existence anchor all of them count.
	//
	// Put what is asked of each element into the first, or ask for several elements with an
	// existence anchor or one rule each.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    spec:
	//	      containers:
	//	        - name: "?*"
	//	        - image: ghcr.io/*
	OtherElements Code = 334
	// LiteralKey occurs when a key of a pattern has a wildcard and is not one of labels or
	// annotations of metadata. There * and ? stand for themselves, so the pattern is about a
	// key that is spelt so.
	//
	// Write the keys out, or go through them with foreach or a condition.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    spec:
	//	      nodeSelector:
	//	        pool-*: "?*"
	LiteralKey Code = 335
	// UnusedKind occurs when a rule names a kind and can deny nothing of it. Its match, its
	// preconditions or what it asks rules all objects of the kind out. The native form is not
	// about that kind.
	//
	// Take the kind out of the match, or correct what rules it out.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod, ClusterRole]
	//	        namespaces: [shop]
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      labels:
	//	        app: "?*"
	UnusedKind Code = 336
	// OptionalField occurs when a precondition reads a field that not every object has, without
	// a default. To Kyverno a variable without a value is an error, not an empty text: the rule
	// is neither skipped nor applied. Where it is enforced under the failure policy Fail, every
	// object without that field is denied, by the native form as well.
	//
	// Give it a default: {{ request.object.metadata.labels.app || '' }}.
	//
	// Example:
	//
	//	preconditions:
	//	  all:
	//	    - key: "{{ request.object.metadata.labels.app }}"
	//	      operator: Equals
	//	      value: web
	OptionalField Code = 337
	// GeneratedAnew occurs with --to kyverno, when a generate rule becomes a GeneratingPolicy.
	// The two differ in what they do with objects that are there already. With synchronize, a
	// rule takes over an object of the name that somebody else has made; a GeneratingPolicy
	// leaves it alone. Without synchronize, a rule leaves alone what it has made; a
	// GeneratingPolicy writes it anew when its trigger is updated. The labels by which Kyverno
	// finds what it has made differ too: objects of the rule are not the policy's.
	//
	// A rule that names operations, and not DELETE, never learns that its trigger is gone. The
	// policy does, and deletes what it has made where it synchronizes, which a warning tells.
	//
	// Apply the new policy before you delete the old one, and look at what was generated.
	//
	// Example:
	//
	//	$ kvap convert --to kyverno policies/ -o cel/
	GeneratedAnew Code = 340
	// ChangedWithPolicy occurs with --to kyverno, when a mutate rule with targets becomes a
	// MutatingPolicy. When such a policy is created or changed, what is there triggers it: each
	// object that it matches counts as updated. A rule does so with mutateExistingOnPolicyUpdate
	// alone, and then each hour too; where that is off, the code is a warning.
	//
	// Look at what the policy changes before you apply it. Where that must not happen, leave
	// the rule as it is, or add a precondition that old objects do not meet.
	//
	// Example:
	//
	//	$ kvap convert --to kyverno policies/ -o cel/
	ChangedWithPolicy Code = 341
	// TakenOver occurs in a migration plan when a generate rule keeps what it generates in
	// step (synchronize: true). Kyverno deletes all that such a rule has generated when the
	// rule goes, or its policy. So kvap migrate enforce writes
	// orphanDownstreamOnPolicyDelete: true into the rule, sees it stored, and only then
	// takes the rule from Kyverno. What was generated stays as it is, and kvap finds it by
	// its labels and keeps it in step.
	//
	// Let nobody delete Kyverno's policy by hand, nor by a repository, before that is
	// written. Kyverno knows the field from 1.12 on.
	TakenOver Code = 360
)

// 4xx: checks of the emitted objects.
const (
	// ExpressionTooLong occurs when an expression is longer than the API server takes.
	ExpressionTooLong Code = 401
	// InvalidObject occurs when the API server would refuse an object: its fields
	// are not as they must be, or an expression does not compile for the release.
	InvalidObject Code = 402
	// StaticParams occurs when a policy with params is to be a static manifest, and the
	// params cannot be written into it. They were not given, or which they are depends on the request.
	//
	// Give the objects with --param FILE, or put the values into the policy.
	StaticParams Code = 403
	// TypeCheckFailed occurs when an expression does not fit the types that values have
	// when it is evaluated. A function or operator gets what it cannot take, which is an
	// error on each request, or values of different types are compared, which are never
	// equal. Times, quantities and bytes are strings there.
	//
	// Convert the value (timestamp(), quantity(), int()), or compare with one of its type.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.metadata.creationTimestamp < timestamp('2020-01-01T00:00:00Z')
	TypeCheckFailed Code = 404
	// UndefinedField occurs when an expression reads or asks for a field that no object
	// of the policy's kinds has. The API server takes such a policy: to it, objects have
	// any fields. Reading the field is an error on each request, and asking for it is
	// always false.
	//
	// Correct the name; the message proposes one where one is near.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: "!has(object.spec.hostNetwrok)"
	UndefinedField Code = 405
	// FieldOfSomeKinds occurs when a policy is about several kinds, and an expression
	// reads a field that only some of them have, without asking for it. On the others
	// that is an error, which the failure policy makes a denial or an admission.
	//
	// Ask with has(), read it as optional (.?field), or write a policy for each kind.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [configmaps, secrets], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.type != 'Opaque'
	FieldOfSomeKinds Code = 406
	// StatusFalseAlarm occurs when kube-controller-manager will write a warning into the
	// status of a policy that is right. Its type checker takes quantities for fields
	// that are not there, times and bytes for other types than they have at run time,
	// and knows no indices on objects.
	//
	// Nothing need be done. Where the warning disturbs, dyn(c.resources).limits in place
	// of c.resources.limits silences it.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.spec.containers.all(c, has(c.resources.limits))
	StatusFalseAlarm Code = 407
	// NotYetAccepted occurs when an expression calls a function that an API server of
	// the release does not accept in a new policy, or that none has. A server checks what
	// is new by the language of the release before it.
	//
	// Write the expression without the function, or name a later --kubernetes-version.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: "!semver(object.metadata.name).isLessThan(semver('1.0.0')) && [1, 1].distinct() == [1]"
	NotYetAccepted Code = 408
	// ChangesMeaning occurs when an expression does not mean the same in all releases
	// from the oldest that is checked for. The most frequent one is orValue() on a value
	// that is not optional: up to Kubernetes 1.36 it is the value, and from 1.37 on an
	// error.
	//
	// Read the field as optional (object.spec.?field.orValue(...)), or ask with has().
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: has(object.spec.hostname) && object.spec.hostname.orValue('') != 'a'
	ChangesMeaning Code = 409
	// CostNearLimit occurs when an expression, or all of a policy's together, costs more
	// than a third of what the API server allows, on an object as large as is assumed. A
	// larger one that can be stored exceeds the limit. Assumed are 30 containers,
	// 100 variables of the environment for each, names of 253 characters, and so on, with
	// params as large. The cost is what the API server's own counter gave on a few generated
	// objects, and so is up to how many elements it goes on. An evaluation that exceeds the
	// limit is an error.
	//
	// Go through lists once, and not inside of each other; narrow the policy with match
	// conditions. --size containers=10 says how large something really is, --size name=63 how long.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.spec.?volumes.orValue([]).all(v, object.spec.volumes.all(w, w.name != v.name + '-copy'))
	CostNearLimit Code = 410
	// CostOverLimit occurs when the API server's own counter stopped an expression on a
	// generated object of the size that is assumed. Requests with such objects are denied,
	// or pass unjudged, as the failure policy says.
	//
	// Go through lists once, and not inside of each other; ask for permissions at most
	// twice in an expression.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.spec.containers.all(c, !has(c.env) || c.env.all(e, c.env.all(f, !e.name.contains(f.name + 'b'))))
	CostOverLimit Code = 411
	// BootstrapDeadlock occurs when a policy that denies on errors is about what the control
	// plane lives on, or about its own params. Leases, Events and Nodes are written all the
	// time; a violation, an error, or params that are not there yet then keep the cluster
	// from recovering.
	//
	// Name the resources that the policy is meant for. Where it must be about all, leave
	// system users out with a match condition on request.userInfo, or the namespaces
	// kube-system and kube-node-lease in the binding.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"]}
	//	  validations:
	//	    - expression: has(object.metadata.labels)
	BootstrapDeadlock Code = 412
	// PolicyWithoutBinding occurs when no binding among the input names a policy. Without one, the API server
	// accepts the policy and never asks it. It is a note where the input has no bindings at
	// all.
	//
	// Write a binding whose policyName is the policy's name.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: has(object.metadata.labels)
	PolicyWithoutBinding Code = 413
	// BindingWithoutPolicy occurs when a binding names a policy that is not among the input. The API server
	// accepts such a binding, and it does nothing. It is a note where the input has no policies
	// at all.
	//
	// Correct policyName, or check the policy and its binding together.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicyBinding
	//	metadata: {name: example}
	//	spec:
	//	  policyName: example
	//	  validationActions: [Deny]
	BindingWithoutPolicy Code = 414
	// DenyWithWarn occurs when a binding denies and warns. The API server refuses it: who is denied
	// gets the message already.
	//
	// Remove one of the two actions.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicyBinding
	//	metadata: {name: example}
	//	spec:
	//	  policyName: example
	//	  validationActions: [Deny, Warn]
	DenyWithWarn Code = 415
	// ParamNotFound occurs when a binding does not say, or says what surprises, about params
	// that are not there. Examples are no paramRef for a policy that has params, so that
	// params is null, and Allow, so that nothing is enforced. Another is Deny with actions
	// that do not deny, which denies all the same.
	//
	// Write a paramRef with parameterNotFoundAction: Deny where the binding denies, and Allow
	// where it only warns or audits.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicyBinding
	//	metadata: {name: example}
	//	spec:
	//	  policyName: example
	//	  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}
	//	  validationActions: [Audit]
	ParamNotFound Code = 416
	// BuiltinParamKind occurs when a policy has params of a kind that the API server itself serves, such
	// as ConfigMap. API servers up to 1.37 stop watching such params for good once the last
	// binding that uses them is gone for a second (kubernetes#130887).
	//
	// Use a kind of your own for params, for instance the one of --params kvap; or keep a
	// binding with such params around.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  paramKind: {apiVersion: v1, kind: ConfigMap}
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: params.data.limit != '1'
	BuiltinParamKind Code = 417
	// NamespaceSelectorIgnored occurs when a namespaceSelector stands with rules about objects that have no
	// namespace. Such objects match every namespaceSelector.
	//
	// Set the scope of the rules to Namespaced, or write a policy of its own for what has no
	// namespace.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    namespaceSelector: {matchLabels: {team: a}}
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [nodes], operations: [DELETE]}
	//	  validations:
	//	    - expression: oldObject.metadata.name != 'a'
	NamespaceSelectorIgnored Code = 418
	// ObjectSelectorOld occurs when an objectSelector stands with rules about updates. It matches when
	// either the old or the new object has the labels, so that a change which removes or adds
	// them is judged in any case.
	//
	// Nothing need be done where that is meant. Else ask for the labels of the new object in a
	// match condition.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    objectSelector: {matchLabels: {team: a}}
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [UPDATE]}
	//	  validations:
	//	    - expression: has(object.spec.nodeName)
	ObjectSelectorOld Code = 419
	// UnguardedRequestField occurs when an expression reads a field of the request that is
	// not there when it is empty. Examples are the subresource, the namespace of an object
	// that has none, the name when a collection is deleted, or more of the user than the
	// name. Reading it is an error then.
	//
	// Ask with has() first.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: request.subResource != 'status'
	UnguardedRequestField Code = 420
	// TooManyChecks occurs when an expression asks the authorizer more than twice. Each time costs
	// 350,000 of the million that one expression may cost.
	//
	// Split the expression into several validations, or put the checks into variables.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: >-
	//	        authorizer.group('').resource('pods').check('create').allowed() ||
	//	        authorizer.group('').resource('pods').check('update').allowed() ||
	//	        authorizer.group('').resource('pods').check('delete').allowed()
	TooManyChecks Code = 421
	// MessageExpressionFails occurs when a messageExpression reads what is not in every object. Where it is
	// missing, the message is the constant one, or the expression of the validation. A message
	// is made for each request, also for those that violate nothing, from the same budget as
	// the validations.
	//
	// Read the field as optional, with orValue().
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: has(object.spec.nodeName)
	//	      messageExpression: "'not on ' + object.spec.nodeName"
	MessageExpressionFails Code = 422
	// Unreachable occurs when a validation is always true, when a match condition is always false, or
	// when a validation is the same as one before it.
	//
	// Remove it, or correct it; the operations of the rules may not be those that are meant.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: request.operation != 'DELETE' || oldObject.metadata.name != 'a'
	Unreachable Code = 423
	// APIGone occurs when a release does not serve the API version of the object, or a group or
	// resource that a rule names. Such an object cannot be created there, and such a rule matches
	// nothing: of the core group the name is empty, and a resource is named in the plural.
	//
	// Use a version that the release serves, and the names that kubectl api-resources shows.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1beta1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: has(object.spec.nodeName)
	APIGone Code = 424
	// UnguardedField occurs when a policy that was written by hand reads a field that objects need
	// not have, and nothing asks for it. The expression itself, a match condition or a variable
	// may ask. Without the field the expression is an error.
	// With failurePolicy Fail the request is denied, with Ignore it passes unchecked.
	//
	// Ask for the field with has(), or read it as optional with orValue(). A match condition
	// that asks for it keeps other objects from the policy.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  failurePolicy: Ignore
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
	//	  validations:
	//	    - expression: object.spec.hostNetwork == false
	UnguardedField Code = 425
	// NullObject occurs when a policy that was written by hand reads a field of object on DELETE,
	// where object is null, or of oldObject on CREATE or CONNECT. Each such request is an error:
	// with failurePolicy Fail it is denied, with Ignore it passes unchecked.
	//
	// Ask for null or for request.operation first, read the other object there, or leave the
	// operation out of the rules.
	//
	// Example:
	//
	//	apiVersion: admissionregistration.k8s.io/v1
	//	kind: ValidatingAdmissionPolicy
	//	metadata: {name: example}
	//	spec:
	//	  failurePolicy: Ignore
	//	  matchConstraints:
	//	    resourceRules:
	//	      - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, DELETE]}
	//	  validations:
	//	    - expression: object.metadata.name != 'a'
	NullObject Code = 426
)

// 5xx: checks of who must have signed images.
const (
	// UnreadableSigner occurs when a public key, a certificate or a trusted root in a policy that
	// verifies images cannot be read, or is too weak to prove anything. No image passes by it.
	//
	// Put the PEM there as it was written. A key of RSA has 2,048 bits at least.
	//
	// Example:
	//
	//	verifyImages:
	//	  - imageReferences: ["example.com/*"]
	//	    attestors:
	//	      - entries:
	//	          - keys:
	//	              publicKeys: |-
	//	                -----BEGIN PUBLIC KEY-----
	//	                eA==
	//	                -----END PUBLIC KEY-----
	UnreadableSigner Code = 501
	// SignerEnds occurs when a certificate, a key with a time, or a list of revoked certificates has
	// ended, or ends within 30 days. What was signed before counts further where a log or a
	// timestamp says when that was; otherwise no image passes.
	//
	// Put the next one beside it before the time has come.
	SignerEnds Code = 502
	// UnpinnedRoot occurs when an attestor without keys names no authority. Who is trusted is then
	// what the public Sigstore said when kvap was built.
	//
	// Name the authorities, or give kvap a trusted root and its digest.
	//
	// Example:
	//
	//	verifyImages:
	//	  - imageReferences: ["example.com/*"]
	//	    attestors:
	//	      - entries:
	//	          - keyless:
	//	              issuer: https://token.actions.githubusercontent.com
	//	              subject: https://github.com/acme/web/.github/workflows/release.yaml@refs/heads/main
	UnpinnedRoot Code = 503
	// LooseIdentity occurs when others than are meant may have an identity: it has an issuer or a
	// subject alone, or a regular expression that finds a part of a longer name. An expression of
	// github.com/acme also finds github.com/acme-evil.
	//
	// Name both, and begin an expression with ^ and end it with $.
	//
	// Example:
	//
	//	verifyImages:
	//	  - imageReferences: ["example.com/*"]
	//	    attestors:
	//	      - entries:
	//	          - keyless:
	//	              issuer: https://token.actions.githubusercontent.com
	LooseIdentity Code = 504
	// KeyInSecret occurs when a public key is in a Secret. Only the cluster has it, and kvap may not
	// read Secrets unless somebody lets it.
	//
	// Grant get on this one Secret, as docs/images.md shows; or put the key into the policy.
	//
	// Example:
	//
	//	verifyImages:
	//	  - imageReferences: ["example.com/*"]
	//	    attestors:
	//	      - entries:
	//	          - keys:
	//	              secret: {name: cosign, namespace: keys}
	KeyInSecret Code = 505
)

// 6xx: policies as they are written.
const (
	// UserInBackground occurs when a policy with background: true, the default, or an exception
	// from one, asks who sends a request. It may do so by subjects, roles or clusterRoles, or by
	// variables such as request.userInfo and serviceAccountName. A scan of objects that are there
	// knows no user. Kyverno takes no such policy.
	//
	// Set background: false.
	//
	// Example:
	//
	//	validate:
	//	  pattern:
	//	    metadata:
	//	      labels:
	//	        owner: "{{ request.userInfo.username }}"
	UserInBackground Code = 601
	// UnscannedKind occurs when a rule is about every kind (*), and asks what cannot be asked of
	// every kind, or stands in a policy with background: true. It is the same with a subresource
	// there, of which a scan finds no objects. Kyverno takes no such policy.
	//
	// Name the kinds, or set background: false.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod/exec]
	UnscannedKind Code = 602
	// UnservedKind occurs when the cluster serves no kind, or no subresource, that a rule names. It
	// is told when a policy is written into a cluster. The rule is in force for the kind as soon as
	// the cluster serves it.
	//
	// Correct the name, or install the definition of the kind.
	UnservedKind Code = 603
	// OutOfNamespace occurs when a Policy or a CleanupPolicy, which is about its own namespace only,
	// names a kind outside of namespaces. Kyverno takes no such policy.
	//
	// Remove the kind, or make it a ClusterPolicy or a ClusterCleanupPolicy.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: Policy
	//	metadata:
	//	  name: example
	//	  namespace: team
	//	spec:
	//	  rules:
	//	    - name: example
	//	      match:
	//	        any:
	//	          - resources:
	//	              kinds: [Namespace]
	//	      validate:
	//	        pattern:
	//	          metadata:
	//	            labels:
	//	              team: "?*"
	OutOfNamespace Code = 604
	// BadSchedule occurs when the schedule of a cleanup policy or a DeletingPolicy cannot be read, so
	// that nothing would ever be deleted. Kyverno takes no such policy. It takes one whose schedule
	// is never due, as 0 0 31 2 * is: that is a warning.
	//
	// Write five fields (minute, hour, day, month, day of the week), or @hourly, @daily and so on.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v2
	//	kind: ClusterCleanupPolicy
	//	metadata:
	//	  name: example
	//	spec:
	//	  schedule: every hour
	//	  match:
	//	    any:
	//	      - resources:
	//	          kinds: [Pod]
	BadSchedule Code = 605
	// NeedsAdmission occurs when a policy is switched off at admission (admission: false), and does
	// what can be done only there: it mutates, generates or verifies images. Kyverno takes no such
	// policy.
	//
	// Set admission to true, or move the rule to another policy.
	//
	// Example:
	//
	//	apiVersion: kyverno.io/v1
	//	kind: ClusterPolicy
	//	metadata:
	//	  name: example
	//	spec:
	//	  admission: false
	//	  rules:
	//	    - name: example
	//	      match:
	//	        any:
	//	          - resources:
	//	              kinds: [Pod]
	//	      mutate:
	//	        patchStrategicMerge:
	//	          metadata:
	//	            labels:
	//	              team: red
	NeedsAdmission Code = 606
	// MisplacedVariable occurs when a variable stands where nobody fills it in: in match, exclude,
	// imageReferences, or the path of a JSON patch that is not in a foreach. It also occurs for
	// target in the rule's own context and preconditions, or in what selects the target. Kyverno
	// takes no such policy.
	//
	// Write the value, or ask for it in preconditions; those of a target know it.
	//
	// Example:
	//
	//	match:
	//	  any:
	//	    - resources:
	//	        kinds: [Pod]
	//	        names: ["{{ request.namespace }}-*"]
	MisplacedVariable Code = 607
	// ImmutableRule occurs when a policy is updated, and the name, match, exclude, context or
	// preconditions of a generate rule change. What the rule has made would not be found again.
	// Kyverno takes no such update.
	//
	// Add a rule of another name, or delete the policy and create it again.
	ImmutableRule Code = 608
	// StaleTarget occurs when a policy is updated, and a generate rule goes, or makes or copies
	// something else from then on. What it has made before stays as it is.
	//
	// Remove by hand what is not wanted any more.
	StaleTarget Code = 609
)
