package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// secure is what the restricted level wants of a container, without a comma after it.
const secure = `"securityContext":{"allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}}`

// containers are those of a list, each with its fields.
func containers(list string, each ...string) string {
	for i, c := range each {
		name := fmt.Sprintf(`"name":"%c"`, 'a'+i)
		if !strings.Contains(c, `"name"`) {
			c = name + "," + c
		}
		if !strings.Contains(c, `"image"`) {
			c = `"image":"nginx",` + c
		}
		each[i] = "{" + c + "}"
	}
	return fmt.Sprintf("%q:[%s]", list, strings.Join(each, ","))
}

// context is a container of which the securityContext is all that matters.
func context(fields string) string { return `"securityContext":{` + fields + `}` }

// TestPodSecurityVersions pins each variant of each check to the release that it
// came with. A check's first variant counts from the start.
func TestPodSecurityVersions(t *testing.T) {
	sysctl := func(name string) string {
		return containers("containers", secure) + `,"securityContext":{"sysctls":[{"name":"` + name + `","value":"1"}]}`
	}
	bare := containers("containers", context(`"runAsNonRoot":true`))
	tests := []struct {
		what, spec, annotations string
		since                   int // allowed from this release on; 0 for never
		until                   int // allowed before this release; 0 for never
		level                   string
	}{
		{what: "sysctl of the start", spec: sysctl("kernel.shm_rmid_forced"), since: 1},
		{what: "sysctl of 1.27", spec: sysctl("net.ipv4.ip_local_reserved_ports"), since: 27},
		{what: "sysctl of 1.29", spec: sysctl("net.ipv4.tcp_keepalive_time"), since: 29},
		{what: "sysctl of 1.29 too", spec: sysctl("net.ipv4.tcp_fin_timeout"), since: 29},
		{what: "sysctl of 1.32", spec: sysctl("net.ipv4.tcp_wmem"), since: 32},
		{what: "sysctl of later", spec: sysctl("net.ipv4.tcp_mtu_probing")},
		{what: "SELinux type of 1.31", spec: containers("containers", secure) + `,"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}`, since: 31},
		{what: "windows", spec: bare + `,"os":{"name":"windows"}`, since: 25, level: "restricted"},
		{what: "not windows", spec: bare + `,"os":{"name":"linux"}`, level: "restricted"},
		{what: "host of a probe, which is of 1.34", spec: containers("containers", secure+`,"livenessProbe":{"httpGet":{"host":"127.0.0.1","port":80}}`)},
		{what: "user 0, which is of 1.23", spec: containers("containers", secure) + `,"securityContext":{"runAsUser":0}`, level: "restricted"},
		{
			what: "seccomp annotation", spec: containers("containers", secure),
			annotations: `"seccomp.security.alpha.kubernetes.io/pod":"unconfined"`, since: 19,
		},
		{
			what: "seccomp annotation of a container", spec: containers("containers", secure),
			annotations: `"container.seccomp.security.alpha.kubernetes.io/a":"unconfined"`, since: 19,
		},
		{
			what: "seccomp annotation of no container", spec: containers("containers", secure),
			annotations: `"container.seccomp.security.alpha.kubernetes.io/b":"unconfined"`, since: 1,
		},
		{what: "seccomp field", spec: containers("containers", secure) + `,"securityContext":{"seccompProfile":{"type":"Unconfined"}}`, until: 19, level: "baseline"},
		{what: "seccomp field", spec: containers("containers", secure) + `,"securityContext":{"seccompProfile":{"type":"Unconfined"}}`, level: "restricted"},
	}
	translations := map[string]translated{}
	for _, tt := range tests {
		levels := []string{"baseline", "restricted"}
		if tt.level != "" {
			levels = []string{tt.level}
		}
		for _, level := range levels {
			for _, minor := range []int{1, 18, 19, 24, 25, 26, 27, 28, 29, 30, 31, 32, 37} {
				version := fmt.Sprintf("v1.%d", minor)
				t.Run(fmt.Sprintf("%s %s %s", tt.what, level, version), func(t *testing.T) {
					key := level + version
					if _, ok := translations[key]; !ok {
						translations[key] = translateText(t, podSecurityPolicy(level, version, ""), setting{})
					}
					meta := ""
					if tt.annotations != "" {
						meta = `,"annotations":{` + tt.annotations + `}`
					}
					want := tt.since > 0 && minor >= tt.since || minor < tt.until
					if got := admits(t, translations[key], objectRequest(t, "CREATE", pod(meta, tt.spec), "")); got != want {
						t.Errorf("admitted: %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// TestPodSecurityExclusions pins what Kyverno's way of excluding does to pods.
func TestPodSecurityExclusions(t *testing.T) {
	const (
		unconfined = `"runAsNonRoot":true,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"Unconfined"}`
		unset      = `"runAsNonRoot":true,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}`
		anyUser    = `"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}`
		root       = anyUser + `,"runAsNonRoot":false`
	)
	nginx, redis := `"image":"nginx",`, `"image":"redis",`
	volumes := func(paths ...string) string {
		for i, p := range paths {
			paths[i] = fmt.Sprintf(`{"name":"v%d","hostPath":{"path":%q}}`, i, p)
		}
		return containers("containers", secure) + `,"volumes":[` + strings.Join(paths, ",") + "]"
	}
	ports := func(image string, numbers ...int) string {
		var out []string
		for _, n := range numbers {
			out = append(out, fmt.Sprintf(`{"containerPort":80,"hostPort":%d}`, n))
		}
		return containers("containers", fmt.Sprintf(`"image":%q,%s,"ports":[%s]`, image, secure, strings.Join(out, ",")))
	}
	adds := func(list, image string, names ...string) string {
		quoted := strings.Join(names, `","`)
		other := containers("containers", secure)
		this := containers(list, fmt.Sprintf(`"image":%q,"securityContext":{"capabilities":{"add":["%s"]}}`, image, quoted))
		if list == "containers" {
			return this
		}
		return other + "," + this
	}
	type trial struct {
		spec string
		want bool
	}
	tests := []struct {
		what, level, version, exclude string
		trials                        []trial
	}{
		{"images as they are written", "baseline", "latest", `{controlName: Capabilities, images: ["nginx*", "ghcr.io/?/redis"]}`, []trial{
			{adds("containers", "nginx:1", "NET_ADMIN"), true},
			{adds("containers", "docker.io/nginx", "NET_ADMIN"), false},
			{adds("initContainers", "nginx:1", "NET_ADMIN"), true},
			{adds("ephemeralContainers", "ghcr.io/a/redis", "NET_ADMIN"), true},
			{adds("ephemeralContainers", "ghcr.io/ab/redis", "NET_ADMIN"), false},
		}},
		{"a field of one list, and all its values", "baseline", "latest",
			`{controlName: Capabilities, images: ["*"], restrictedField: "spec.initContainers[*].securityContext.capabilities.add", values: ["NET_*", KILLALL]}`, []trial{
				{adds("initContainers", "nginx", "NET_ADMIN", "NET_RAW", "CHOWN"), true},
				{adds("initContainers", "nginx", "NET_ADMIN", "SYS_TIME"), false},
				{adds("containers", "nginx", "NET_ADMIN"), false},
			}},
		{"two exclusions do not add up for one error", "baseline", "latest",
			`{controlName: Capabilities, images: ["*"], restrictedField: "spec.containers[*].securityContext.capabilities.add", values: [NET_ADMIN]},
			 {controlName: Capabilities, images: ["*"], restrictedField: "spec.containers[*].securityContext.capabilities.add", values: [SYS_TIME]}`, []trial{
				{adds("containers", "nginx", "NET_ADMIN"), true},
				{adds("containers", "nginx", "SYS_TIME"), true},
				{adds("containers", "nginx", "NET_ADMIN", "SYS_TIME"), false},
			}},
		{"they do for several", "baseline", "latest",
			`{controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: [/a]},
			 {controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: ["/b/*"]}`, []trial{
				{volumes("/a", "/b/c"), true},
				{volumes("/a", "/b/c", "/c"), false},
				{volumes("/a", "/a", "/b/d", "/b/e"), true},
			}},
		{"one covered twice takes another one out", "baseline", "latest",
			`{controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: [/a, /x]},
			 {controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: ["/?", /b/c]}`, []trial{
				{volumes("/a", "/etc"), true},
				{volumes("/b", "/etc"), false},
				{volumes("/a", "/etc", "/var"), false},
				{volumes("/a", "/x", "/etc", "/var"), true},
			}},
		{"a field that does not exist", "baseline", "latest", `{controlName: HostPath Volumes, restrictedField: "spec.volumes[0].hostPath", values: ["*"]}`, []trial{
			{volumes("/a"), false},
			{volumes(), true},
		}},
		{"ports", "baseline", "latest",
			`{controlName: Host Ports, images: ["nginx*"], restrictedField: "spec.containers[*].ports[*].hostPort", values: ["80*"]},
			 {controlName: Host Ports, images: ["redis"], restrictedField: "spec.containers[*].ports[*].hostPort", values: ["6379"]}`, []trial{
				{ports("nginx", 80, 8080), true},
				{ports("nginx", 80, 6379), false},
				{ports("redis", 6379), true},
				{ports("redis", 80), false},
				{ports("other", 80), false},
			}},
		{"a boolean's text", "baseline", "latest",
			`{controlName: Host Namespaces, restrictedField: spec.hostNetwork, values: ["tr*"]}`, []trial{
				{containers("containers", secure) + `,"hostNetwork":true`, true},
				{containers("containers", secure) + `,"hostPID":true`, false},
			}},
		{"an unset field has the value nil, unless the context is missing", "restricted", "latest",
			`{controlName: Privilege Escalation, images: ["*"], restrictedField: "spec.containers[*].securityContext.allowPrivilegeEscalation", values: ["nil"]},
			 {controlName: Capabilities, images: ["*"]}, {controlName: Seccomp, images: ["*"]}, {controlName: Running as Non-root, images: ["*"]}`, []trial{
				{containers("containers", `"tty":true`), true},
				{containers("containers", context(`"runAsNonRoot":true`)), true},
				{containers("containers", context(`"allowPrivilegeEscalation":true`)), false},
				{containers("initContainers", context(`"runAsNonRoot":true`)) + "," + containers("containers", secure), false},
			}},
		{"or the value true", "restricted", "latest",
			`{controlName: Privilege Escalation, images: ["*"], restrictedField: "spec.containers[*].securityContext.allowPrivilegeEscalation", values: ["true"]},
			 {controlName: Capabilities, images: ["*"]}, {controlName: Seccomp, images: ["*"]}, {controlName: Running as Non-root, images: ["*"]}`, []trial{
				{containers("containers", `"tty":true`), true},
				{containers("containers", context(`"runAsNonRoot":true`)), false},
				{containers("containers", context(`"allowPrivilegeEscalation":true`)), true},
			}},
		{"types of volumes", "restricted", "latest", `{controlName: Volume Types, restrictedField: "spec.volumes[*].nfs", values: ["whatever"]}`, []trial{
			{containers("containers", secure) + `,"volumes":[{"name":"v","nfs":{"server":"s","path":"/"}}]`, true},
			{containers("containers", secure) + `,"volumes":[{"name":"v","iscsi":{"iqn":"s","lun":0,"targetPortal":"p"}}]`, false},
		}},
		{"a field of volumes that is no type", "restricted", "latest", `{controlName: Volume Types, restrictedField: "spec.volumes[*].name", values: ["v"]}`, []trial{
			{containers("containers", secure) + `,"volumes":[{"name":"v","nfs":{"server":"s","path":"/"}}]`, false},
		}},
		{"profiles of images, which hide those that are missing", "restricted", "latest", `{controlName: Seccomp, images: [nginx]}`, []trial{
			{containers("containers", nginx+context(unconfined)), true},
			{containers("containers", nginx+context(unset)), true},
			{containers("containers", redis+context(unset)), false},
			{containers("containers", redis+context(unconfined)), false},
			{containers("containers", nginx+context(unconfined), redis+context(unset)), true},
			{containers("containers", nginx+context(unset), redis+context(unset)), false},
			{containers("containers", nginx+context(unconfined), redis+context(unconfined)), false},
		}},
		{"the stand-in for containers takes the first missing profile out", "restricted", "latest", `{controlName: Seccomp}`, []trial{
			{containers("containers", context(unset)), true},
			{containers("containers", context(unset), context(unset)), false},
			{containers("containers", context(unconfined)), false},
			{containers("initContainers", context(unset)) + "," + containers("containers", secure), false},
			{containers("containers", context(unset), context(unset)) + `,"securityContext":{"seccompProfile":{"type":"Unconfined"}}`, true},
		}},
		{"the stand-in, then images", "restricted", "latest", `{controlName: Seccomp}, {controlName: Seccomp, images: [nginx]}`, []trial{
			{containers("containers", redis+context(unset), nginx+context(unset)), true},
			{containers("containers", nginx+context(unset), redis+context(unset)), false},
		}},
		{"images, then the stand-in", "restricted", "latest", `{controlName: Seccomp, images: [nginx]}, {controlName: Seccomp}`, []trial{
			{containers("containers", redis+context(unset), nginx+context(unset)), true},
			{containers("containers", nginx+context(unset), redis+context(unset)), true},
			{containers("containers", redis+context(unset), redis+context(unset)), false},
		}},
		{"the stand-in takes a wrong profile out too, before 1.19", "restricted", "v1.18", `{controlName: Seccomp}`, []trial{
			{containers("containers", context(unconfined), context(unset), context(unset)), true},
			{containers("containers", context(unconfined), context(unconfined)), false},
			{containers("containers", context(unset), context(unset)), false},
		}},
		{"all of seccomp", "restricted", "latest", `{controlName: Seccomp}, {controlName: Seccomp, images: ["*"]}`, []trial{
			{containers("containers", context(unset), context(unconfined)), true},
		}},
		{"the stand-in for users", "restricted", "latest", `{controlName: Running as Non-root}`, []trial{
			{containers("containers", context(anyUser)), true},
			{containers("containers", context(root)), true},
			{containers("containers", context(root)) + `,"securityContext":{"runAsNonRoot":true}`, false},
			{containers("containers", context(anyUser)) + `,"securityContext":{"runAsNonRoot":false}`, true},
			{containers("containers", context(anyUser), context(anyUser)), false},
		}},
		{"the pod's own user only", "restricted", "latest", `{controlName: Running as Non-root, restrictedField: spec.securityContext.runAsNonRoot, values: ["false"]}`, []trial{
			{containers("containers", secure) + `,"securityContext":{"runAsNonRoot":false}`, true},
			{containers("containers", context(anyUser)) + `,"securityContext":{"runAsNonRoot":false}`, false},
		}},
		{"the stand-in, then images, of users", "restricted", "latest",
			`{controlName: Running as Non-root}, {controlName: Running as Non-root, images: [nginx]}, {controlName: Running as Non-root, restrictedField: "spec.containers[*].securityContext.runAsNonRoot", values: ["x"]}`, []trial{
				{containers("containers", redis+context(anyUser), nginx+context(anyUser), redis+context(anyUser)), true},
				{containers("containers", redis+context(anyUser), redis+context(anyUser), redis+context(anyUser)), false},
				{containers("containers", nginx+context(anyUser), redis+context(root), nginx+context(root), redis+context(anyUser)), true},
			}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := translateText(t, podSecurityPolicy(tt.level, tt.version, tt.exclude), setting{})
			if got := p.targets(); got != "native" {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			for i, trial := range tt.trials {
				if got := admits(t, p, objectRequest(t, "CREATE", pod("", trial.spec), "")); got != trial.want {
					t.Errorf("%d: admitted: %v, want %v\n%s\n%s", i, got, trial.want, trial.spec, p.objects[0].Policy.Spec.Validations[0].Expression)
				}
			}
		})
	}
}

// TestPodSecurityAnnotations pins where annotations are looked for, and how they
// are excluded.
func TestPodSecurityAnnotations(t *testing.T) {
	const policy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: standards
  annotations: {pod-policies.kyverno.io/autogen-controllers: "Deployment,CronJob"}
spec:
  rules:
    - name: pods
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity:
          level: baseline
          version: v1.18
          exclude: [%s]
`
	const bad = `"annotations":{"container.apparmor.security.beta.kubernetes.io/web2":"unconfined"}`
	spec := `"spec":{"containers":[{"name":"web2","image":"nginx"}]}`
	deployment := func(meta, template string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app"` + meta + `},"spec":{"template":{"metadata":{` + template + `},` + spec + `}}}`
	}
	cronJob := func(meta, job, template string) string {
		return `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"web","namespace":"app"` + meta + `},"spec":{"jobTemplate":{"metadata":{` + job +
			`},"spec":{"template":{"metadata":{` + template + `},` + spec + `}}}}}`
	}
	of := func(values string) string {
		return pod(`,"annotations":{`+values+`}`, `"containers":[{"name":"web2","image":"nginx"}]`)
	}
	const apparmor, seccomp = "container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"
	tests := []struct {
		what, exclude, object, want string
	}{
		{"of a pod", "", pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "deny refused"},
		{"of the template", "", deployment("", bad), "deny refused"},
		{"of the deployment", "", deployment(","+bad, ""), "allow"},
		{"of the job", "", cronJob("", bad, ""), "deny refused"},
		{"of the job's pod, which nobody looks at", "", cronJob("", "", bad), "allow"},
		{"of the cron job", "", cronJob(","+bad, "", ""), "allow"},
		{"excluded", "{controlName: AppArmor}", pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "allow"},
		{"not excluded by image", "{controlName: AppArmor, images: ['*']}", pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "deny refused"},
		{"digits in the key count as indexes", `{controlName: AppArmor, restrictedField: "metadata.annotations[` + apparmor + `web*]", values: [unconfined]}`, pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "allow"},
		{"and so are no digits", `{controlName: AppArmor, restrictedField: "metadata.annotations[` + apparmor + `web2]", values: [unconfined]}`, pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "deny refused"},
		{"another value", `{controlName: AppArmor, restrictedField: "metadata.annotations[` + apparmor + `web*]", values: [x]}`, pod(","+bad, `"containers":[{"name":"web2","image":"nginx"}]`), "deny refused"},
		{"seccomp of the pod", "", of(`"seccomp.security.alpha.kubernetes.io/pod":"unconfined"`), "deny refused"},
		{"seccomp of the pod, excluded", "{controlName: Seccomp}", of(`"seccomp.security.alpha.kubernetes.io/pod":"unconfined"`), "allow"},
		{"seccomp of a container", "", of(`"` + seccomp + `web2":"unconfined"`), "deny refused"},
		{"seccomp of a container, not excluded", "{controlName: Seccomp}", of(`"` + seccomp + `web2":"unconfined"`), "deny refused"},
		{"seccomp without a value", `{controlName: Seccomp, restrictedField: "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]", values: [x]}`,
			of(`"seccomp.security.alpha.kubernetes.io/pod":""`), "allow"},
		{"seccomp with another value", `{controlName: Seccomp, restrictedField: "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]", values: [x]}`,
			of(`"seccomp.security.alpha.kubernetes.io/pod":"y"`), "deny refused"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := translateText(t, fmt.Sprintf(policy, tt.exclude), setting{})
			if got := p.targets(); got != "native" {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			p.try(t, []trial{{name: "try", object: tt.object, want: tt.want}})
		})
	}
}

// TestPodSecurityExceptions pins what exceptions exclude, and from whom.
func TestPodSecurityExceptions(t *testing.T) {
	exception := func(resources, rest string) string {
		return fmt.Sprintf(`---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: some, namespace: ops}
spec:
  exceptions: [{policyName: standards, ruleNames: [pods]}]
  match: {any: [{resources: {kinds: [Pod]%s}}]}
%s`, resources, rest)
	}
	const labelled, seccomp = `, selector: {matchLabels: {team: ops}}`, "  podSecurity: [{controlName: Seccomp}]\n"
	rootless := `"securityContext":{"allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"]}}`
	one, two := containers("containers", rootless), containers("containers", rootless, `"image":"redis",`+rootless)
	label := `,"labels":{"team":"ops"}`
	tests := []struct {
		what, exclude, exceptions string
		trials                    []trial
	}{
		{"for all pods", "", exception("", seccomp), []trial{
			{name: "one", object: pod("", one), want: "allow"},
			{name: "two", object: pod("", two), want: "deny refused"},
		}},
		{"for labelled pods", "", exception(labelled, seccomp), []trial{
			{name: "label", object: pod(label, one), want: "allow"},
			{name: "no label", object: pod("", one), want: "deny refused"},
			{name: "the label of the new pod counts for the old one", operation: "UPDATE", object: pod(label, two), old: pod("", one), want: "deny refused"},
			{name: "and so does none", operation: "UPDATE", object: pod("", one), old: pod(label, one), want: "allow"},
		}},
		{"after the rule's own", "{controlName: Seccomp, images: [redis]}", exception(labelled, seccomp), []trial{
			{name: "label", object: pod(label, two), want: "allow"},
			{name: "no label", object: pod("", two), want: "deny refused"},
		}},
		{"in order", "{controlName: Seccomp}", exception(labelled, "  podSecurity: [{controlName: Seccomp}, {controlName: Seccomp, images: [redis]}]\n"), []trial{
			{name: "label", object: pod(label, containers("containers", rootless, rootless, `"image":"redis",`+rootless)), want: "allow"},
			{name: "too many", object: pod(label, containers("containers", rootless, rootless, rootless)), want: "deny refused"},
			{name: "no label", object: pod("", two), want: "deny refused"},
		}},
		{"of the whole rule", "", exception(labelled, ""), []trial{
			{name: "label", object: pod(label, two), want: "nomatch"},
			{name: "no label", object: pod("", one), want: "deny refused"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			translateText(t, podSecurityPolicy("restricted", "latest", tt.exclude)+tt.exceptions, setting{}).try(t, tt.trials)
		})
	}
}

// TestPodSecurityKinds: what is no pod is an error; what may be one, nobody knows.
func TestPodSecurityKinds(t *testing.T) {
	rule := func(kind string) string {
		return strings.Replace(podSecurityPolicy("baseline", "latest", ""), "kinds: [Pod]", "kinds: ["+kind+"]", 1)
	}
	service := translateText(t, rule("Service"), setting{})
	if got := service.targets(); got != "native" {
		t.Fatalf("%s: %v", got, service.result.Diagnostics)
	}
	service.try(t, []trial{
		{name: "create", object: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"app"},"spec":{}}`, want: "error refused"},
		{name: "delete", operation: "DELETE", object: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"app"},"spec":{}}`, want: "nomatch"},
	})
	for _, kind := range []string{`"*"`, "example.com/v1/Widget"} {
		if got := translateText(t, rule(kind), setting{}).targets(); !strings.HasPrefix(got, "webhook KV") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestPodSecurityRefusals pins the exclusions that have no native form.
func TestPodSecurityRefusals(t *testing.T) {
	const annotation = `restrictedField: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/web*]"`
	for _, exclude := range []string{
		`{controlName: Volume Types, restrictedField: "spec.volumes[*].unknown", values: [x]}`,
		`{controlName: AppArmor, ` + annotation + `, values: [a, b]}, {controlName: AppArmor, ` + annotation + `, values: ["b*"]}`,
	} {
		if got := translateText(t, podSecurityPolicy("restricted", "latest", exclude), setting{}); got.targets() != "webhook KV201" && len(got.objects) > 0 {
			t.Errorf("%s: %s", exclude, got.targets())
		}
	}
}

// TestPodSecurityTypes: the API server's type checker finds nothing to say of any
// variant, not even where no server looks.
func TestPodSecurityTypes(t *testing.T) {
	exclude := `{controlName: Seccomp}, {controlName: Seccomp, images: [nginx]}, {controlName: Running as Non-root}, {controlName: Running as Non-root, images: [nginx]},
		{controlName: Host Ports, images: ["*"], restrictedField: "spec.containers[*].ports[*].hostPort", values: ["80*"]},
		{controlName: Host Ports, images: ["a*"], restrictedField: "spec.containers[*].ports[*].hostPort", values: ["8*"]}`
	for _, tt := range []struct {
		release                       cel.Release
		version, exclude, controllers string
	}{
		{cel.Oldest, "latest", exclude, "Deployment,ReplicationController,CronJob"},
		{cel.Latest, "v1.0", "", "CronJob"},
		{cel.Latest, "v1.24", exclude, "none"},
	} {
		text := strings.Replace(podSecurityPolicy("restricted", tt.version, tt.exclude), "controllers: none", `controllers: "`+tt.controllers+`"`, 1)
		p := translateText(t, text, setting{release: tt.release})
		if p.targets() != "native" {
			t.Fatalf("%s: %v", p.targets(), p.result.Diagnostics)
		}
		schemas := builtin(t, tt.release)
		for _, o := range p.objects {
			for _, w := range vap.TypeCheck(o.Policy, schemas.Resolver(), schemas.RESTMapper()) {
				t.Errorf("%s %s: %v", tt.release, tt.version, w)
			}
		}
	}
}

// TestPodSecurityCost: a pod of fifty times the usual number of containers is
// judged within the API server's budget.
func TestPodSecurityCost(t *testing.T) {
	p := translateText(t, podSecurityPolicy("restricted", "latest", "{controlName: Capabilities, images: ['nginx*', '*.example.com/tool:*']}"), setting{})
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`"name":"c%d",%s,"ports":[{"containerPort":80},{"containerPort":81}],"livenessProbe":{"httpGet":{"port":80}}`, i, secure)
	}
	p.try(t, []trial{{name: "a thousand containers", object: pod("", containers("containers", many...)), want: "allow"}})
}

// TestPodSecurityMessage: a violation says which controls it is about.
func TestPodSecurityMessage(t *testing.T) {
	text := podSecurityPolicy("restricted", "", "")
	bad := pod("", containers("containers", secure, `"image":"redis","securityContext":{"privileged":true}`)+`,"hostPID":true`)
	const controls = "(Privileged Containers, Host Namespaces, Capabilities, Seccomp, Privilege Escalation, Running as Non-root)"
	for _, tt := range []struct{ what, message, want string }{
		{"no message", "", `deny refused: violates PodSecurity "restricted:latest" ` + controls},
		{"the author's", "        message: be safe\n", "deny refused: be safe " + controls},
		{"the author's, with variables", "        message: be safe, {{ request.object.metadata.name }}\n", "deny refused: be safe, web " + controls},
	} {
		p := translateText(t, strings.Replace(text, "        podSecurity:\n", tt.message+"        podSecurity:\n", 1), setting{})
		p.try(t, []trial{{name: tt.what, object: bad, want: tt.want}})
	}
}

// TestPodSecurityShares: rules of a policy share the variables that they mean alike.
func TestPodSecurityShares(t *testing.T) {
	text := podSecurityPolicy("restricted", "latest", "") + `
    - name: windows
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity: {level: restricted, version: v1.24, exclude: [{controlName: Seccomp}, {controlName: Seccomp, images: [nginx]}]}
    - name: other
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity: {level: restricted, version: v1.24, exclude: [{controlName: Seccomp}, {controlName: Seccomp, images: [redis]}, {controlName: Seccomp}]}
`
	p := translateText(t, text, setting{})
	names := map[string]int{}
	for _, o := range p.objects {
		for _, v := range o.Policy.Spec.Variables {
			names[o.Policy.Name+" "+v.Name]++
		}
	}
	for _, name := range []string{"allContainers", "windows", "unconfinedContainers", "unconfinedContainers2", "oldContainers"} {
		if names["standards "+name] != 1 {
			t.Errorf("variable %s stands %d times in standards, want once: %v", name, names["standards "+name], names)
		}
	}
}
