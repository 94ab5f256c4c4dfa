package interp

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

func TestParseImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	tests := []struct {
		text      string
		want      image
		reference string
		tagged    string
	}{
		{"nginx", image{"docker.io", "nginx", "nginx", "latest", ""}, "docker.io/nginx:latest", "docker.io/nginx:latest"},
		{"nginx:1.2", image{"docker.io", "nginx", "nginx", "1.2", ""}, "docker.io/nginx:1.2", "docker.io/nginx:1.2"},
		{"team/web", image{"docker.io", "team/web", "web", "latest", ""}, "docker.io/team/web:latest", ""},
		{"ghcr.io/team/web:v1", image{"ghcr.io", "team/web", "web", "v1", ""}, "ghcr.io/team/web:v1", ""},
		{"localhost/web", image{"localhost", "web", "web", "latest", ""}, "localhost/web:latest", ""},
		{"host:5000/web", image{"host:5000", "web", "web", "latest", ""}, "host:5000/web:latest", ""},
		{"Host/web", image{"Host", "web", "web", "latest", ""}, "Host/web:latest", ""},
		{"nginx@" + digest, image{"docker.io", "nginx", "nginx", "", digest}, "docker.io/nginx@" + digest, "docker.io/nginx:"},
		{"nginx:1@" + digest, image{"docker.io", "nginx", "nginx", "1", digest}, "docker.io/nginx@" + digest, "docker.io/nginx:1"},
		{"my_host.com/web", image{"", "my_host.com/web", "web", "latest", ""}, "my_host.com/web:latest", ""},
		{"a__b/c-d.e", image{"docker.io", "a__b/c-d.e", "c-d.e", "latest", ""}, "docker.io/a__b/c-d.e:latest", ""},
		{"[::1]:5000/web", image{"[::1]:5000", "web", "web", "latest", ""}, "[::1]:5000/web:latest", ""},
	}
	for _, tt := range tests {
		got, err := parseImage(tt.text, "docker.io")
		if err != nil || got != tt.want {
			t.Errorf("%s: want %+v, got %+v %v", tt.text, tt.want, got, err)
			continue
		}
		if got.reference() != tt.reference {
			t.Errorf("%s: want %s, got %s", tt.text, tt.reference, got.reference())
		}
		if v := got.value("/p"); tt.tagged != "" && v["referenceWithTag"] != tt.tagged {
			t.Errorf("%s: got %v", tt.text, v)
		}
	}
	for _, bad := range []string{"", ":x", "UPPER", "a//b", "a:", "a:-x", "a@sha256:x", "a@md5:" + strings.Repeat("a", 32), "a b", "a___b", "-a", "a/" + strings.Repeat("b", 300)} {
		if got, err := parseImage(bad, "docker.io"); err == nil {
			t.Errorf("%q should be no image: %+v", bad, got)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{"nginx", "ghcr.io/a/b:1", "[::1]:5/a", "a@sha256:", "a:b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		img, err := parseImage(text, "docker.io")
		if err != nil || img.registry == "" {
			return
		}
		again, err := parseImage(img.reference(), "docker.io")
		if err != nil {
			t.Fatalf("%q gives %q, which is no image: %v", text, img.reference(), err)
		}
		if again.repository() != img.repository() || again.digest != img.digest {
			t.Fatalf("%q gives %+v, then %+v", text, img, again)
		}
	})
}

func TestImages(t *testing.T) {
	const podSpec = `{containers: [{name: a, image: nginx}], initContainers: [{name: b, image: "ghcr.io/x:1"}]}`
	const show = `message: "{{ images.containers.a.registry }} {{ images.initContainers.b.tag }} {{ images.initContainers.b.jsonPointer }}", deny: {}`
	tests := []struct{ kind, spec, want string }{
		{"v1/Pod", podSpec, "docker.io 1 /spec/initContainers/0/image"},
		{"apps/v1/Deployment", `{template: {spec: ` + podSpec + `}}`, "docker.io 1 /spec/template/spec/initContainers/0/image"},
		{"batch/v1/CronJob", `{jobTemplate: {spec: {template: {spec: ` + podSpec + `}}}}`, "docker.io 1 /spec/jobTemplate/spec/template/spec/initContainers/0/image"},
	}
	for _, tt := range tests {
		i := strings.LastIndexByte(tt.kind, '/')
		source := matchPolicy(`any: [{resources: {kinds: ["*"]}}]`)
		source = strings.Replace(source, "deny: {}", show, 1)
		source = strings.Replace(source, `kinds: ["*"]`, "kinds: ["+tt.kind[i+1:]+"]", 1)
		got := judgeOne(t, source, &Request{Admission: create(object(t, `{apiVersion: `+tt.kind[:i]+`, kind: `+tt.kind[i+1:]+`, metadata: {name: a, namespace: team}, spec: `+tt.spec+`}`))}, nil)
		if got.Message != tt.want {
			t.Errorf("%s: want %q, got %s %q", tt.kind, tt.want, got.Status, got.Message)
		}
	}
}

func TestImagesOf(t *testing.T) {
	f := parse(t, widgetPolicy(`
imageExtractors:
  Widget:
  - {path: /spec/parts/*/img, name: parts, key: id}
  - {path: /spec/main}
  - {path: /spec/urls/*/url, name: urls, jmesPath: "trim_prefix(@, 'docker://')"}
validate: {deny: {}}`))
	r := f.Policies[0].Rules[0]
	v := &vars{ctx: t.Context(), registry: "docker.io"}
	got, err := v.imagesOf(r, object(t, `{kind: Widget, spec: {main: nginx, urls: [{url: "docker://redis:7"}], parts: {p: {id: one, img: "a/b:1"}, q: {id: two}}}}`))
	want := map[string]any{
		"parts":  map[string]any{"one": image{"docker.io", "a/b", "b", "1", ""}.value("/spec/parts/p/img")},
		"urls":   map[string]any{"/spec/urls/0/url": image{"docker.io", "redis", "redis", "7", ""}.value("/spec/urls/0/url")},
		"custom": map[string]any{"/spec/main": image{"docker.io", "nginx", "nginx", "latest", ""}.value("/spec/main")},
	}
	if diff := textdiff.Values(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := v.imagesOf(r, object(t, `{kind: Other, spec: {main: nginx}}`)); got != nil || err != nil {
		t.Errorf("another kind has no images: %v %v", got, err)
	}
	if _, err := v.imagesOf(r, object(t, `{kind: Pod, spec: {containers: [{name: a, image: "a b"}]}}`)); err == nil {
		t.Error("a bad reference is an error")
	}
	if _, err := v.imagesOf(r, object(t, `{kind: Pod, spec: {containers: [{image: a}]}}`)); err == nil {
		t.Error("a container without a name is an error")
	}
}
