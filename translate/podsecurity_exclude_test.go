package translate_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestPodSecurityExclusions pins what Kyverno's way of excluding does to pods.
func TestPodSecurityExclusions(t *testing.T) {
	t.Parallel()
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
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := translateText(t, podSecurityPolicy(tt.level, tt.version, tt.exclude), setting{})
			if got := p.targets(); got != "native" {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			for i, trial := range tt.trials {
				if got := admits(t, p, objectRequest(t, "CREATE", pod("", trial.spec), "")); got != trial.want {
					t.Errorf("%d: admitted: %v, want %v\n%s\n%s", i, got, trial.want, trial.spec, p.result.Objects[0].Policy.Spec.Validations[0].Expression)
				}
			}
		})
	}
}

// TestPodSecurityAnnotations pins where annotations are looked for, and how they
// are excluded.
func TestPodSecurityAnnotations(t *testing.T) {
	t.Parallel()
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
          version: v1.20
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
	t.Parallel()
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
