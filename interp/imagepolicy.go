package interp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// An ImageValidatingPolicy is a ValidatingPolicy whose expressions ask who signed images.
//
//	matchImageReferences: [{glob: ghcr.io/acme/*}]    which images: matched
//	attestors: [{name: k1, cosign: {key: …}}]         who may be asked for: imagesession.go
//	validations:
//	- expression: images.containers.map(i, verifyImageSignatures(i, [attestors.k1])).all(n, n > 0)
//
// An image that is matched and that no policy has verified is a violation (required), whatever
// the expressions say: verified.go.

// An imageForm is what a form of an ImageValidatingPolicy has beside that of a ValidatingPolicy.
type imageForm struct {
	*policy.ImagePolicy
	globs      []*glob
	references []cel.Program
	extractors []cel.Program
	attestors  map[string]*celAttestor
	names      []string // of attestors
	types      map[string]string
	referrers  []string // attestations that Notary's attestors attest
	// together tells that an expression may be evaluated again when what it asked for is known.
	together bool
}

// A celAttestor is an attestor with the expressions that it has; nil where it has texts.
type celAttestor struct {
	policy.CELAttestor
	key, certificate, chain, stamps, root cel.Program
}

// compileImages compiles what is about images.
func (f *validatingForm) compileImages(p *policy.ImagePolicy) {
	compiled := func(expression string, want *cel.Type) cel.Program {
		program, err := f.cel.compile(f.rewrite(expression), want)
		f.err = errors.Join(f.err, err)
		return program
	}
	out := &imageForm{ImagePolicy: p, attestors: map[string]*celAttestor{}, types: map[string]string{}}
	f.images = out
	for _, r := range p.References {
		if r.Glob != "" {
			g, err := readGlob(r.Glob)
			f.err = errors.Join(f.err, err)
			out.globs = append(out.globs, g)
			continue
		}
		program, err := compileReference(r.Expression)
		f.err = errors.Join(f.err, err)
		out.references = append(out.references, program)
	}
	for _, e := range p.Extractors {
		program, of, err := f.cel.program(f.rewrite(e.Expression))
		if err == nil && !slices.ContainsFunc([]*cel.Type{cel.DynType, cel.ListType(cel.StringType), cel.ListType(cel.DynType)}, of.IsExactType) {
			err = fmt.Errorf("%q must evaluate to a list of strings, not to %s", e.Expression, of)
		}
		f.err = errors.Join(f.err, err)
		out.extractors = append(out.extractors, program)
	}
	for _, a := range p.Attestors {
		one := &celAttestor{CELAttestor: a}
		for _, t := range []struct {
			of   policy.CELText
			into *cel.Program
		}{{a.Key, &one.key}, {a.Certificate, &one.certificate}, {a.Chain, &one.chain}, {a.Stamps, &one.stamps}, {a.TrustedRoot, &one.root}} {
			if t.of.Expression != "" {
				*t.into = compiled(t.of.Expression, nil)
			}
		}
		out.names = append(out.names, a.Name)
		out.attestors[a.Name] = one
	}
	for _, a := range p.Attestations {
		out.types[a.Name] = a.Type
		if a.Referrer {
			out.referrers = append(out.referrers, a.Name)
		}
	}
	out.together = !slices.ContainsFunc(policyTexts(f.policy.Validating), posts)
}

// posts tells of an expression that may write, which is not done twice.
func posts(expression string) bool {
	return strings.Contains(expression, "post(") || strings.Contains(expression, "Post(")
}

func policyTexts(v *policy.Validating) (out []string) {
	for _, one := range v.Variables {
		out = append(out, one.Expression)
	}
	for _, one := range v.Validations {
		out = append(out, one.Expression)
	}
	return out
}

// compileReference compiles an expression about ref.
func compileReference(expression string) (cel.Program, error) {
	env, err := referenceEnvironment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("compilation failed: %w", issues.Err())
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("%q must evaluate to bool, not to %s", expression, ast.OutputType())
	}
	return env.Program(ast, plainPrograms()...)
}

// judgeImages is what an ImageValidatingPolicy says of a request that it matches, and which
// images some policy must verify.
func (f *validatingForm) judgeImages(a *preparedRequest) (out verdict, awaits []string) {
	if what, more := f.policy.VerifiesMore(); more {
		return unsupported(what.Value + " are not verified"), nil
	}
	object := a.object
	if a.deletes() {
		object = a.old
	}
	if object == nil || a.operation == "CONNECT" || a.kind.subresource != "" && a.kind.subresource != "ephemeralcontainers" {
		return none(), nil // nothing runs by it
	}
	unchanged := len(f.images.Extractors) == 0 && a.keepsImages()
	if unchanged && a.goes() {
		return none(), nil
	}
	scope, err := a.celScope()
	if err != nil {
		return say(Error, "%v", err), nil
	}
	delete(scope, "exceptions")
	lenient := f.policy.FailurePolicy == policy.Ignore
	applies, err := scope.all(a.ctx, f.conditions)
	switch {
	case err != nil && lenient:
		return say(Skip, "skip"), nil
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate the match conditions: %v", err), nil
	case !applies:
		return none(), nil
	}
	if excepted, err := a.celExceptedWhole(f.exceptions, scope, lenient); err != nil || excepted != nil {
		if err != nil {
			return say(Error, "failed to evaluate policy: failed to evaluate an exception: %v", err), nil
		}
		return *excepted, nil
	}
	s := newImageSession(a, f, scope)
	out = s.judge(object)
	if out.status == Error && out.code == 0 && s.unreachable != nil && unchanged {
		return say(Skip, "the images are those that the object had, and %v", s.unreachable), nil
	}
	if out.status == Pass && f.images.Required {
		awaits = s.order
	}
	return out, awaits
}

// judge goes through the images and the validations. The first that is not true decides.
func (s *imageSession) judge(object map[string]any) verdict {
	f := s.form
	s.fresh()
	listed, wrong := s.find(object)
	if wrong != nil {
		return *wrong
	}
	s.scope["images"] = listed
	if f.images.VerifyDigest {
		for _, text := range s.order {
			if s.matched[text].digest == "" {
				return say(Fail, "image %s does not have a digest", text)
			}
		}
	}
	s.fresh()
	for i, check := range f.checks {
		out, err := s.eval(check)
		switch {
		case s.unsupported:
			return unsupported("no registry is at hand to verify images")
		case err != nil:
			return say(Error, "failed to evaluate policy: %v", err)
		case out != types.True:
			return say(Fail, "%s", joinMessages(s.message(i), s.reasons()))
		}
	}
	return say(Pass, "success")
}

// message is what the validation at an index says of a violation.
func (s *imageSession) message(index int) string {
	check := s.form.policy.Validating.Validations[index]
	if m := s.form.messages[index]; m != nil {
		if out, err := s.eval(m); err == nil {
			if said, ok := out.Value().(string); ok && said != "" {
				return said
			}
		}
	}
	if check.Message != "" {
		return check.Message
	}
	return "CEL expression validation failed at index " + strconv.Itoa(index)
}

// find are the images of an object that are matched, in lists by name, as the object has them.
// What is not an image among them is a violation: a Pod runs what is beside it.
func (s *imageSession) find(object map[string]any) (map[string][]string, *verdict) {
	say := func(status Status, format string, args ...any) *verdict {
		out := say(status, format, args...)
		return &out
	}
	all, err := builtInImages(s.a.kind, object)
	if err != nil {
		return nil, say(Error, "failed to evaluate policy: %v", err)
	}
	for i, program := range s.form.images.extractors {
		name := s.form.images.Extractors[i].Name
		out, err := s.scope.eval(s.a.ctx, program)
		if err != nil {
			return nil, say(Error, "failed to evaluate policy: images.%s: %v", name, err)
		}
		if all[name], err = textsOf(out); err != nil {
			return nil, say(Error, "failed to evaluate policy: images.%s: %v", name, err)
		}
	}
	listed, count := map[string][]string{}, 0
	for _, name := range sortedKeys(all) {
		listed[name] = []string{}
		if count += len(all[name]); count > maxImages {
			return nil, say(Fail, "the object has more than %d images, and %d at most are verified", maxImages, maxImages)
		}
		for _, text := range all[name] {
			one, err := s.read(text)
			if err != nil {
				return nil, say(Fail, "failed to verify image %s: %v", text, err)
			}
			matches, err := s.form.images.selects(s.a.ctx, text, one)
			switch {
			case err != nil:
				return nil, say(Error, "failed to evaluate policy: matchImageReferences: %v", err)
			case matches:
				listed[name] = append(listed[name], text)
				s.add(text, one)
			}
		}
	}
	return listed, nil
}

// builtInImages are the images of pods and their controllers, with the volumes that are images.
// A container without one is an error.
func builtInImages(kind resourceKind, object map[string]any) (map[string][]string, error) {
	out := map[string][]string{}
	spec := podSpecOf(kind, object)
	if spec == nil {
		return out, nil
	}
	for _, group := range podContainers() {
		out[group] = []string{}
		items, _ := spec[group].([]any)
		for i, item := range items {
			container, _ := item.(map[string]any)
			image, _ := container["image"].(string)
			if strings.TrimSpace(image) == "" {
				return nil, fmt.Errorf("%s[%d] has no image", group, i)
			}
			out[group] = append(out[group], image)
		}
	}
	out["imageVolumes"] = []string{}
	volumes, _ := spec["volumes"].([]any)
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		if image, _ := digMap(volume, "image")["reference"].(string); strings.TrimSpace(image) != "" {
			out["imageVolumes"] = append(out["imageVolumes"], image)
		}
	}
	return out, nil
}

// podSpecPath is where the spec of a pod is in an object of a kind; nil where it has none.
func podSpecPath(kind resourceKind) []string {
	switch kind.group + "/" + kind.kind {
	case "/Pod":
		return []string{"spec"}
	case "/ReplicationController", "apps/DaemonSet", "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "batch/Job":
		return []string{"spec", "template", "spec"}
	case "batch/CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

// podSpecOf is the spec of a pod in an object; nil where its kind has none.
func podSpecOf(kind resourceKind, object map[string]any) map[string]any {
	path := podSpecPath(kind)
	if path == nil {
		return nil
	}
	if spec := digMap(object, path...); spec != nil {
		return spec
	}
	return map[string]any{}
}

// manyPodSecrets is more than a registry is asked with; who asks says so, and counts no further.
const manyPodSecrets = 20

// asPod is an Access with the pull secrets of the Pod that the object is, or makes.
func (a *preparedRequest) asPod(with Access) Access {
	listed, _ := podSpecOf(a.kind, a.object)["imagePullSecrets"].([]any)
	for _, item := range listed {
		if len(with.PodSecrets) >= manyPodSecrets {
			break
		}
		reference, _ := item.(map[string]any)
		if name, _ := reference["name"].(string); name != "" && !slices.Contains(with.PodSecrets, name) {
			with.PodSecrets, with.PodNamespace = append(with.PodSecrets, name), a.namespace
		}
	}
	return with
}

// keepsImages tells whether an update leaves the images of pods as they were.
func (a *preparedRequest) keepsImages() bool {
	if a.operation != "UPDATE" || a.old == nil || a.object == nil || podSpecPath(a.kind) == nil {
		return false
	}
	before, err := builtInImages(a.kind, a.old)
	if err != nil {
		return false
	}
	now, err := builtInImages(a.kind, a.object)
	return err == nil && slices.Equal(sortedImages(before), sortedImages(now))
}

func sortedImages(groups map[string][]string) []string {
	var out []string
	for _, list := range groups {
		out = append(out, list...)
	}
	slices.Sort(out)
	return out
}

// celExceptedWhole is the verdict where any exception applies: each is from all of an
// ImageValidatingPolicy.
func (a *preparedRequest) celExceptedWhole(list []celException, scope celScope, lenient bool) (out *verdict, err error) {
	var names []string
	for _, e := range list {
		applies, bad := a.applies(e, scope)
		switch {
		case bad != nil && !lenient:
			err = errors.Join(err, fmt.Errorf("%s/%s: %w", e.Namespace, e.Name, bad))
		case applies:
			names = append(names, e.Namespace+"/"+e.Name)
		}
	}
	if len(names) == 0 {
		return nil, err
	}
	said := say(Skip, "rule is skipped due to policy exception: %s", strings.Join(names, ", "))
	said.exceptions = names
	return &said, nil
}

// referenceNames are what expressions of matchImageReferences name.
func referenceNames() []cel.EnvOption {
	return append(cellib.ReferenceFunctions(), library.Regex(), cel.Variable("ref", cel.StringType))
}
