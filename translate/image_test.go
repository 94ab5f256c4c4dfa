package translate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

const hex64 = "4b825dc642cb6eb9a060e54bf8d69288fbee4904b825dc642cb6eb9a060e54bf"

// imageTable says what an image is taken apart to; nil where it is no reference.
func imageTable() map[string]map[string]string {
	of := func(registry, path, name, tag, digest, reference, _ string) map[string]string {
		return map[string]string{"registry": registry, "path": path, "name": name, "tag": tag, "digest": digest,
			"reference": reference}
	}
	digest := "sha256:" + hex64
	return map[string]map[string]string{
		"nginx":                            of("docker.io", "nginx", "nginx", "latest", "none", "docker.io/nginx:latest", "docker.io/nginx:latest"),
		"nginx:1.2":                        of("docker.io", "nginx", "nginx", "1.2", "none", "docker.io/nginx:1.2", "docker.io/nginx:1.2"),
		"library/nginx":                    of("docker.io", "library/nginx", "nginx", "latest", "none", "docker.io/library/nginx:latest", "docker.io/library/nginx:latest"),
		"my.image_x:1":                     of("docker.io", "my.image_x", "my.image_x", "1", "none", "docker.io/my.image_x:1", "docker.io/my.image_x:1"),
		"a_b/c":                            of("docker.io", "a_b/c", "c", "latest", "none", "docker.io/a_b/c:latest", "docker.io/a_b/c:latest"),
		"localhost/a":                      of("localhost", "a", "a", "latest", "none", "localhost/a:latest", "localhost/a:latest"),
		"localhost:5000":                   of("docker.io", "localhost", "localhost", "5000", "none", "docker.io/localhost:5000", "docker.io/localhost:5000"),
		"localhost:5000/a/b:2":             of("localhost:5000", "a/b", "b", "2", "none", "localhost:5000/a/b:2", "localhost:5000/a/b:2"),
		"localhost:5000/a/b":               of("localhost:5000", "a/b", "b", "latest", "none", "localhost:5000/a/b:latest", "localhost:5000/a/b:latest"),
		"Reg/a":                            of("Reg", "a", "a", "latest", "none", "Reg/a:latest", "Reg/a:latest"),
		"[::1]:80/a":                       of("[::1]:80", "a", "a", "latest", "none", "[::1]:80/a:latest", "[::1]:80/a:latest"),
		"ghcr.io/x/y@" + digest:            of("ghcr.io", "x/y", "y", "none", digest, "ghcr.io/x/y@"+digest, "ghcr.io/x/y:"),
		"y@" + digest:                      of("docker.io", "y", "y", "none", digest, "docker.io/y@"+digest, "docker.io/y:"),
		"ghcr.io/x/y:3@" + digest:          of("ghcr.io", "x/y", "y", "3", digest, "ghcr.io/x/y@"+digest, "ghcr.io/x/y:3"),
		"h.io:1/x:3@" + digest:             of("h.io:1", "x", "x", "3", digest, "h.io:1/x@"+digest, "h.io:1/x:3"),
		strings.Repeat("a", 245):           of("docker.io", strings.Repeat("a", 245), strings.Repeat("a", 245), "latest", "none", "docker.io/"+strings.Repeat("a", 245)+":latest", "docker.io/"+strings.Repeat("a", 245)+":latest"),
		strings.Repeat("a", 246):           nil,
		"r.io/" + strings.Repeat("a", 250): of("r.io", strings.Repeat("a", 250), strings.Repeat("a", 250), "latest", "none", "r.io/"+strings.Repeat("a", 250)+":latest", "r.io/"+strings.Repeat("a", 250)+":latest"),
		"r.io/" + strings.Repeat("a", 251): nil,
		"":                                 nil,
		"Nginx":                            nil,
		"nginx:":                           nil,
		"nginx:1:2":                        nil,
		"[ab]/x":                           nil,
		"a//b":                             nil,
		"a/-b":                             nil,
		"y@sha256:abc":                     nil,
		"y@md5:" + hex64:                   nil,
		"docker.io/busybox:1.28:1.0":       nil,
	}
}

func imagePolicy(parts map[string]string) string {
	var conditions strings.Builder
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		query := fmt.Sprintf("images.containers.*.%s || 'none'", part)
		fmt.Fprintf(&conditions, "          - {key: \"{{ %s }}\", operator: AnyNotIn, value: [%q]}\n", query, parts[part])
	}
	return denyPods(conditions.String())
}

func denyPods(conditions string) string {
	return `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    validate:
      message: refused
      deny:
        conditions:
          any:
` + conditions
}

// kyvernoStatus is what the reference interpreter says of the only rule.
func kyvernoStatus(t *testing.T, text string, world interp.World, r *admissionv1.AdmissionRequest) string {
	t.Helper()
	file, _ := policy.Parse("p.yaml", []byte(text))
	a, err := interp.AdmissionOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range interp.New(file.Policies, nil, world, interp.Limits{}).Judge(t.Context(), &interp.Request{Admission: a}) {
		if res.Rule == "r" {
			return string(res.Kyverno)
		}
	}
	return "none"
}

func TestImageParts(t *testing.T) {
	t.Parallel()
	compiled := map[string]translated{}
	for image, parts := range imageTable() {
		t.Run(image, func(t *testing.T) {
			want, status := "allow", "pass"
			if parts == nil {
				parts, want, status = map[string]string{"registry": "x"}, "deny refused", "error"
			}
			text := imagePolicy(parts)
			p, ok := compiled[text]
			if !ok {
				p = translateText(t, text, setting{})
				compiled[text] = p
			}
			if got := p.targets(); !strings.HasPrefix(got, "native") {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			r := objectRequest(t, "CREATE", pod("", fmt.Sprintf(`"containers":[{"name":"main","image":%q}]`, image)), "")
			outcome, refused, message := p.verdict(t, r)
			got := string(outcome)
			if refused {
				got += " refused"
			}
			if got != want {
				t.Errorf("got %s (%s), want %s", got, message, want)
			}
			if got := kyvernoStatus(t, text, &interp.Offline{}, r); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	two := pod("", `"containers":[{"name":"b","image":"ghcr.io/b"},{"name":"a","image":"quay.io/a:1"}],"initContainers":[{"name":"i","image":"reg.io/i"}]`)
	tests := []struct {
		name, condition string
		want            string
	}{
		{"some", `{key: "{{ images.containers.*.registry }}", operator: AnyIn, value: [quay.io]}`, "deny refused"},
		{"none", `{key: "{{ images.containers.*.registry }}", operator: AnyIn, value: [docker.io]}`, "allow"},
		{"all", `{key: "{{ images.containers.*.registry }}", operator: AllIn, value: ["*.io"]}`, "deny refused"},
		{"not all", `{key: "{{ images.containers.*.registry }}", operator: AllIn, value: [quay.io]}`, "allow"},
		{"by name of the first", `{key: "{{ images.containers.*.registry | [0] }}", operator: Equals, value: quay.io}`, "deny refused"},
		{"by name of the last", `{key: "{{ images.containers.*.name | [-1] }}", operator: Equals, value: b}`, "deny refused"},
		{"joined to a text", `{key: "{{ images.containers.*.registry | [0] }}/{{ images.containers.*.name | [0] }}", operator: Equals, value: quay.io/a}`, "deny refused"},
		{"several groups", `{key: "{{ images.[containers, initContainers][].*.registry[] }}", operator: AnyIn, value: [reg.io]}`, "deny refused"},
		{"a group that is not there", `{key: "{{ images.ephemeralContainers.*.registry }}", operator: AllNotIn, value: [reg.io]}`, "allow"},
		{"a group that is there", `{key: "{{ images.initContainers.*.registry }}", operator: AllNotIn, value: [ghcr.io]}`, "deny refused"},
		{"its default", "{key: \"{{ images.ephemeralContainers.*.registry || `[]` }}\", operator: AllNotIn, value: [reg.io]}", "deny refused"},
		{"parts that are not there", `{key: "{{ images.containers.*.digest }}", operator: AllNotIn, value: [a]}`, "deny refused"},
		{"how many", `{key: "{{ length(images.containers) }}", operator: Equals, value: 2}`, "deny refused"},
		{"the length of none", `{key: "{{ length(images.ephemeralContainers) }}", operator: Equals, value: 0}`, "deny refused, which is an error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := denyPods("          - " + tt.condition + "\n")
			p := translateText(t, text, setting{})
			want := "native"
			if strings.Contains(tt.condition, "| [") {
				want = "native KV320" // the first or last of a map's values
			}
			if got := p.targets(); got != want {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			outcome, _, _ := strings.Cut(tt.want, ",")
			p.try(t, []trial{{name: "native", object: two, want: outcome}})
			status := map[string]string{"deny refused": "fail", "allow": "pass", "deny refused, which is an error": "error"}[tt.want]
			if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", two, "")); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}

// A rule that asks for digests only says of each text what the interpreter says.
func TestDigests(t *testing.T) {
	t.Parallel()
	text := digestsOf("Pod")
	p := translateText(t, text, setting{})
	for image, parts := range imageTable() {
		object := pod("", fmt.Sprintf(`"containers":[{"name":"a","image":%q}]`, image))
		want, verdict := "allow", "pass"
		if image != "" && (parts == nil || parts["digest"] == "none") {
			want, verdict = "deny refused: no reference with a digest: "+image, "fail"
		}
		p.try(t, []trial{{name: image, object: object, want: want}})
		if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", object, "")); got != verdict && image != "" {
			t.Errorf("%s: the interpreter says %s", image, got)
		}
	}
}

// A text that is no image, however long, does not make the rule an error beside others.
func TestLongImage(t *testing.T) {
	t.Parallel()
	p := translateText(t, digestsOf("Pod"), setting{})
	long := pod("", fmt.Sprintf(`"containers":[{"name":"a","image":"nginx"},{"name":"b","image":%q}]`, strings.Repeat("a", 500_000)))
	p.try(t, []trial{{name: "long", object: long, want: "deny refused"}})
}

// Digests are asked natively of kinds that are known and built in, in all releases.
func TestDigestsOfKinds(t *testing.T) {
	t.Parallel()
	for _, kinds := range []string{"'*/*'", "'*/*/*'", "'*/status'", "'*'", "acme.io/v1/Pod"} {
		if p := translateText(t, digestsOf(kinds), setting{}); len(p.result.Objects) != 0 || p.targets() != "webhook KV201" {
			t.Errorf("%s: %s", kinds, p.targets())
		}
	}
	for release := 30; release <= 36; release++ {
		if p := translateText(t, digestsOf("Pod"), setting{release: cel.Release(release)}); len(p.result.Objects) == 0 {
			t.Errorf("1.%d: %s: %v", release, p.targets(), p.result.Diagnostics)
		}
	}
}

func digestsOf(kinds string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
		"  - {name: r, match: {any: [{resources: {kinds: [" + kinds + "]}}]}, verifyImages: [{imageReferences: ['*'], mutateDigest: false, required: false}]}\n"
}

// An image that is no reference makes an error of what reads images, wherever the
// image is and however little of it is read.
func TestInvalidImage(t *testing.T) {
	t.Parallel()
	bad := pod("", `"containers":[{"name":"a","image":"nginx"}],"initContainers":[{"name":"i","image":"NO"}]`)
	for _, condition := range []string{
		`{key: "{{ images.containers.*.registry }}", operator: AnyIn, value: [x]}`,
		`{key: "{{ images.containers.*.registry }}", operator: Equals, value: x}`,
		`{key: "{{ request.operation || images.containers.*.registry }}", operator: Equals, value: x}`,
		`{key: "{{ images.containers.*.registry || 'x' }}", operator: Equals, value: y}`,
		"{key: \"{{ images.ephemeralContainers.*.tag || `[]` }}\", operator: LessThan, value: 3}",
	} {
		text := denyPods("          - " + condition + "\n")
		p := translateText(t, text, setting{})
		p.try(t, []trial{{name: condition, object: bad, want: "deny refused: refused"}})
		if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", bad, "")); got != "error" {
			t.Errorf("%s: the interpreter says %s", condition, got)
		}
	}
}

func TestImagesRefused(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{
		`{key: "{{ images.containers }}", operator: Equals, value: x}`,
		`{key: "{{ images.containers.a }}", operator: Equals, value: x}`,
		`{key: "{{ keys(images.containers) }}", operator: AnyIn, value: [x]}`,
		`{key: "{{ images.containers.*.to_string(@) }}", operator: AnyIn, value: [x]}`,
		`{key: "{{ join('-', images.[initContainers, containers][].*.name[]) }}", operator: Equals, value: x}`,
		// the containers' images are a map, whose values Kyverno has in any order
		`{key: "{{ images.containers.*.name[:1] }}", operator: AnyIn, value: [b]}`,
		`{key: "{{ images.containers.*.[name, tag][] | [1] }}", operator: Equals, value: b}`,
		`{key: "{{ images.containers.*.name }}", operator: Equals, value: [a, b]}`,
		`{key: "{{ images.[containers, initContainers][].*.name[] | [0] }}", operator: Equals, value: a}`,
	} {
		p := translateText(t, denyPods("          - "+condition+"\n"), setting{})
		if got := p.targets(); !strings.HasPrefix(got, "webhook") {
			t.Errorf("%s: %s", condition, got)
		}
	}
}
