package celrule

import (
	"errors"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// A celScope reads the expressions of a rule as Kyverno does.
type celScope struct {
	l     *read.Lowering
	parts *native.Parts
}

// surroundings are what the rule's expressions read. What the rule sees on any of
// its operations counts for all, so that its objects need not differ by operation;
// ephemeral containers count as their pod here too.
func (s celScope) surroundings() cel.Surroundings {
	l := s.l
	has := func(op native.Operation) bool {
		return query.SomeFilterHas(l, op) && (slices.Contains(l.Target.PossibleOperations(), op) || l.Target.Subresource == "ephemeralcontainers")
	}
	own := objectShape(l)
	roots := []cel.Root{
		{Name: "object", Shape: own, Null: has("DELETE")},
		{Name: "oldObject", Shape: own, Null: has("CREATE") || has("CONNECT")},
		{Name: "request", Shape: native.RequestShape()},
		{Name: "namespaceObject", Shape: native.ShapeOf(namespaceType(l)), Null: l.Target.Scope != native.Namespaced},
	}
	if k := s.parts.ParamKind; k != nil {
		roots = append(roots, cel.Root{Name: "params", Shape: native.ShapeOf(l.Opts.Schemas.Type(kindOfParams(k)))})
	}
	return cel.Surroundings{Roots: roots, Variables: among(s.parts.Variables)}
}

// read is an expression of the source with the request as Kyverno makes it up.
func (s celScope) read(text string, pos diag.Pos) cel.Value {
	v, why := ReadCEL(text, pos, s.l.Opts.Release)
	if why != nil {
		panic(read.Refusal{Diagnostic: *why})
	}
	s.l.SetPos(pos)
	out := madeUpRequest(s.l, v)
	if !cel.Equal(out, v) {
		noteRewritten(s.l.Notes, pos, "Kyverno makes up the request from the object")
	}
	return out
}

// portable is an expression as it is to be evaluated natively.
func (s celScope) portable(v cel.Value, pos diag.Pos) cel.Value {
	out, why := Portable(v, pos, s.parts.Variables, s.l.Opts, s.l.Notes)
	if why != nil {
		panic(read.Refusal{Diagnostic: *why})
	}
	return out
}

// portableCondition is portable for what must be a boolean.
func (s celScope) portableCondition(v cel.Value, pos diag.Pos) cel.Bool {
	out, why := portableCondition(v.AsBool(), pos, s.parts.Variables, s.l.Opts, s.l.Notes)
	if why != nil {
		panic(read.Refusal{Diagnostic: *why})
	}
	return out
}

// guarded is a check that is false where something is missing that it reads.
func (s celScope) guarded(check cel.Bool, pos diag.Pos) cel.Bool {
	out := check.Guarded(s.surroundings())
	if !cel.Equal(out.Value, check.Value) {
		noteRewritten(s.l.Notes, pos, "it asks first for what it reads, since in Kyverno an error of a CEL expression is a violation like any other")
	}
	return out
}

// quietly is an expression as it is to be evaluated, or the reason why there is none.
func (s celScope) quietly(text string, pos diag.Pos) (v cel.Value, why *diag.Diagnostic) {
	defer func() {
		if p := recover(); p != nil {
			ref, ok := p.(read.Refusal)
			if !ok {
				panic(p)
			}
			why = &ref.Diagnostic
		}
	}()
	return s.portable(s.read(text, pos), pos), nil
}

// message is a message expression. The verdict does not depend on it: where it has
// no native form, the message stands alone.
func (s celScope) message(e policy.CELValidation) *cel.Value {
	v, why := s.quietly(e.MessageExpression, e.Pos)
	if why == nil {
		return &v
	}
	s.l.SetPos(e.Pos)
	s.l.Note(diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
	return nil
}

// ReadCEL parses an expression of the source. The reason why it cannot be native
// names the function that the release does not have.
func ReadCEL(text string, pos diag.Pos, release cel.Release) (cel.Value, *diag.Diagnostic) {
	return readCELWith(text, pos, release, func(v cel.Value) cel.Value { return v })
}

// readCELWith is ReadCEL of an expression in which known is put for what only Kyverno has.
func readCELWith(text string, pos diag.Pos, release cel.Release, known func(cel.Value) cel.Value) (cel.Value, *diag.Diagnostic) {
	refuse := func(code diag.Code, format string, args ...any) (cel.Value, *diag.Diagnostic) {
		d := diag.Warnf(pos, code, format+"; the webhook will judge this rule", args...)
		return cel.Value{}, &d
	}
	v, err := cel.Parse(text)
	if err != nil {
		var d diag.Diagnostic
		if !errors.As(err, &d) {
			return refuse(diag.NoExpression, "the CEL expression cannot be read: %v", err)
		}
		if strings.HasPrefix(d.Message, "unsupported syntax") { // which Kyverno may read
			return refuse(diag.NoExpression, "the CEL expression cannot be read: at %d:%d: %s", d.Line, d.Col, d.Message)
		}
		d = Broken(pos, "at %d:%d: %s", d.Line, d.Col, d.Message)
		return cel.Value{}, &d
	}
	v = known(v)
	if unknown := v.UnknownFunctions(); len(unknown) > 0 {
		name := unknown[len(unknown)-1]
		receiver, has := v.Receiver(name)
		if guess := diag.Nearest(name, cel.Common()); guess != "" && !ofKyverno(name) && !kyvernoOnly(receiver) {
			d := Broken(pos, "there is no function %s (did you mean %s?)", name, guess)
			return cel.Value{}, &d
		}
		if has { // as in resource.Get
			name = receiver + "." + name
		}
		return refuse(diag.NoFunction, "the API server has no function %s", name)
	}
	for _, name := range v.Idents() {
		if kyvernoOnly(name) {
			return refuse(diag.NoFunction, "the API server has no variable %s", name)
		}
	}
	if need := v.FirstRelease(); !release.Supports(need) {
		return refuse(diag.NeedsNewer, "the function %s needs Kubernetes %s", newest(v, need), need)
	}
	return v, nil
}

// Undeclared is the error of a variable that reads one which is not before it: itself, or
// one that reads it in turn. What follows from one to the next would never end.
func Undeclared(v cel.Value, before []vap.Variable, pos diag.Pos) *diag.Diagnostic {
	for _, name := range v.Uses("variables") {
		if !slices.ContainsFunc(before, func(x vap.Variable) bool { return x.Name == name }) {
			d := Broken(pos, "undefined field '%s': a variable reads those before it", name)
			return &d
		}
	}
	return nil
}

// Broken is the error of an expression that compiles nowhere, in Kyverno neither.
func Broken(pos diag.Pos, where string, args ...any) diag.Diagnostic {
	return diag.Errorf(pos, diag.BadExpression, "the CEL expression does not compile: "+where+"; correct it: as it stands, the rule errs on every request that it matches", args...)
}

// kyvernoOnly tells of the variables that Kyverno adds to those of the API server.
func kyvernoOnly(name string) bool {
	switch name {
	case "images", "exceptions", "globalContext", "http", "resource", "generator", "time",
		"base64", "gzip", "hash", "image", "json", "jsonpatch", "math", "proto", "random", "regex", "transform", "user", "x509", "yaml":
		return true
	}
	return false
}

// ofKyverno tells of the functions that Kyverno adds to those of the API server, but for
// those with a dot in their name, which are like none of its.
func ofKyverno(name string) bool {
	switch name {
	case "Get", "get", "List", "list", "Post", "post", "ToGVR", "toGVR", "Client", "client", "GetMetadata", "getMetadata", "Apply", "apply",
		"parseImageReference", "image", "isImage", "registry", "repository", "identifier", "tag", "digest", "containsDigest",
		"unmarshal", "marshal", "parse", "sha1", "sha256", "md5", "round", "random", "now", "truncate", "toCron", "bind",
		"listObjToMap", "compress", "decompress", "decode", "parseServiceAccount", "escapeKey",
		"verifyImageSignatures", "verifyAttestationSignatures", "extractPayload", "getImageData":
		return true
	}
	return false
}

// newest is the function for which v needs a release.
func newest(v cel.Value, need cel.Release) string {
	found := ""
	v.Calls(func(name string, args int) {
		if found == "" && cel.FirstRelease(name, args) == need {
			found = name
		}
	})
	return found
}

// madeUpRequest is an expression that sees the request as it is here, where
// Kyverno makes one up from the object: it never has a subresource, options or a
// dry run, its kind is that of the top-level object as the policy matches it, and
// it names the object also where a collection is deleted.
func madeUpRequest(l *read.Lowering, v cel.Value) cel.Value {
	if v.UsesAll("request") {
		panic(l.Unsupported("the request as a whole"))
	}
	for _, field := range v.Uses("request") {
		switch field {
		case "options":
			panic(l.Unsupported("request.options in a CEL rule, which Kyverno leaves empty,"))
		case "subResource", "requestSubResource":
			if l.Target.Subresource != "" {
				panic(l.Unsupported("request." + field + " in a CEL rule, which Kyverno leaves empty,"))
			}
		case "kind", "requestKind":
			if l.Target.Subresource != "" && l.Target.Subresource != "ephemeralcontainers" {
				panic(l.Unsupported("request." + field + " of a subresource in a CEL rule, which in Kyverno is that of the object,"))
			}
		case "namespace":
			if l.Target.IsAnyResource() || l.Target.Parent.Group == "" && l.Target.Parent.Kind == "Namespace" { // it may be one
				panic(l.Unsupported("request.namespace of a Namespace in a CEL rule, which Kyverno leaves empty,"))
			}
		}
	}
	v = v.SubstituteField("request", "dryRun", cel.False().Value)
	v = v.RenameField("request", "requestKind", "kind")
	v = v.RenameField("request", "requestResource", "resource")
	if l.On("DELETE") && len(l.Ops) == 1 {
		v = v.SubstituteField("request", "name", cel.Ident("oldObject").Field("metadata").Field("name"))
	}
	return v
}

// PolicyConditions are the policy's own match conditions, with the reason why
// there are none. They are those of a webhook, so they see the real request, but
// Kyverno asks them once more without an authorizer.
func PolicyConditions(p *policy.Policy, o *api.Options, notes *diag.List) (out []vap.Condition, why *diag.Diagnostic) {
	for _, c := range p.MatchConditions {
		v, why := ReadCEL(c.Expression, c.Pos, o.Release)
		if why != nil {
			return nil, why
		}
		if native.Mentions(v, "authorizer") {
			d := diag.Warnf(c.Pos, diag.NoExpression, "a match condition of a policy is evaluated without an authorizer; the webhook will judge this policy, and passes it over where it asks for one, as Kyverno does")
			return nil, &d
		}
		for _, name := range []string{"params", "variables", "namespaceObject"} {
			if native.Mentions(v, name) {
				d := diag.Warnf(c.Pos, diag.InvalidRule, "a match condition of a policy cannot read %s; nothing judges this policy, as in Kyverno", name)
				return nil, &d
			}
		}
		holds, why := portableCondition(v.AsBool(), c.Pos, nil, o, notes)
		if why != nil {
			return nil, why
		}
		out = append(out, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: holds})
	}
	return out, nil
}
