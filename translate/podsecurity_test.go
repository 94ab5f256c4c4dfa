package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
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
	t.Parallel()
	sysctl := func(name string) string {
		return containers("containers", secure) + `,"securityContext":{"sysctls":[{"name":"` + name + `","value":"1"}]}`
	}
	bare := containers("containers", context(`"runAsNonRoot":true`))
	tests := []struct {
		what, spec string
		since      int // allowed from this release on; 0 for never
		level      string
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
		{what: "seccomp field", spec: containers("containers", secure) + `,"securityContext":{"seccompProfile":{"type":"Unconfined"}}`},
	}
	translations := map[string]translated{}
	for _, tt := range tests {
		levels := []string{"baseline", "restricted"}
		if tt.level != "" {
			levels = []string{tt.level}
		}
		for _, level := range levels {
			for _, minor := range []int{19, 24, 25, 26, 27, 28, 29, 30, 31, 32, 37} {
				version := fmt.Sprintf("v1.%d", minor)
				t.Run(fmt.Sprintf("%s %s %s", tt.what, level, version), func(t *testing.T) {
					key := level + version
					if _, ok := translations[key]; !ok {
						translations[key] = translateText(t, podSecurityPolicy(level, version, ""), setting{})
					}
					want := tt.since > 0 && minor >= tt.since
					if got := admits(t, translations[key], objectRequest(t, "CREATE", pod("", tt.spec), "")); got != want {
						t.Errorf("admitted: %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// TestPodSecurityKinds: what is no pod is an error; what may be one, nobody knows.
func TestPodSecurityKinds(t *testing.T) {
	t.Parallel()
	rule := func(kind string) string {
		return strings.Replace(podSecurityPolicy("baseline", "latest", ""), "kinds: [Pod]", "kinds: ["+kind+"]", 1)
	}
	service := translateText(t, rule("Service"), setting{})
	if got := service.targets(); got != "native" {
		t.Fatalf("%s: %v", got, service.result.Diagnostics)
	}
	service.try(t, []trial{
		{name: "create", object: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"app"},"spec":{}}`, want: "deny refused: validation error: rule pods failed"},
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
	t.Parallel()
	const annotation = `restrictedField: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/web*]"`
	for _, exclude := range []string{
		`{controlName: Volume Types, restrictedField: "spec.volumes[*].unknown", values: [x]}`,
		`{controlName: AppArmor, ` + annotation + `, values: [a, b]}`,
		`{controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: [/var/log]}, {controlName: HostPath Volumes, restrictedField: "spec.volumes[*].hostPath", values: ["/var/*"]}`,
		`{controlName: Seccomp}, {controlName: Seccomp, images: [nginx]}`,
		`{controlName: Seccomp, images: [nginx]}, {controlName: Seccomp}`,
		`{controlName: Running as Non-root}, {controlName: Running as Non-root, images: [nginx]}`,
	} {
		if got := translateText(t, podSecurityPolicy("restricted", "latest", exclude), setting{}); got.targets() != "webhook KV201" {
			t.Errorf("%s: %s", exclude, got.targets())
		}
	}
	if got := translateText(t, podSecurityPolicy("baseline", "v1.18", ""), setting{}); got.targets() != "webhook KV201" {
		t.Errorf("v1.18: %s", got.targets())
	}
}

// TestPodSecurityTypes: the API server's type checker finds nothing to say of any
// variant, not even where no server looks.
func TestPodSecurityTypes(t *testing.T) {
	t.Parallel()
	exclude := `{controlName: Seccomp}, {controlName: Running as Non-root}, {controlName: Capabilities, images: [nginx]},
		{controlName: Host Ports, images: ["*"], restrictedField: "spec.containers[*].ports[*].hostPort", values: ["80*"]}`
	for _, tt := range []struct {
		release                       cel.Release
		version, exclude, controllers string
	}{
		{cel.Oldest, "latest", exclude, "Deployment,ReplicationController,CronJob"},
		{cel.Latest, "v1.19", "", "CronJob"},
		{cel.Latest, "v1.24", exclude, "none"},
	} {
		text := strings.Replace(podSecurityPolicy("restricted", tt.version, tt.exclude), "controllers: none", `controllers: "`+tt.controllers+`"`, 1)
		p := translateText(t, text, setting{release: tt.release})
		if p.targets() != "native" {
			t.Fatalf("%s: %v", p.targets(), p.result.Diagnostics)
		}
		schemas := builtin(t, tt.release)
		checker := apiserver.NewTypeChecker(schemas.Resolver(), schemas.RESTMapper())
		for _, o := range p.result.Objects {
			for _, w := range checker.Check(o.Policy) {
				t.Errorf("%s %s: %v", tt.release, tt.version, w)
			}
		}
	}
}

// TestPodSecurityCost: a pod of fifty times the usual number of containers is
// judged within the API server's budget.
func TestPodSecurityCost(t *testing.T) {
	t.Parallel()
	p := translateText(t, podSecurityPolicy("restricted", "latest", "{controlName: Capabilities, images: ['nginx*', '*.example.com/tool:*']}"), setting{})
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`"name":"c%d",%s,"ports":[{"containerPort":80},{"containerPort":81}],"livenessProbe":{"httpGet":{"port":80}}`, i, secure)
	}
	p.try(t, []trial{{name: "a thousand containers", object: pod("", containers("containers", many...)), want: "allow"}})
}

// TestPodSecurityMessage: a violation says which controls it is about.
func TestPodSecurityMessage(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	text := podSecurityPolicy("restricted", "latest", "") + `
    - name: windows
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity: {level: restricted, version: v1.24, exclude: [{controlName: Seccomp}]}
    - name: other
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity: {level: restricted, version: v1.24, exclude: [{controlName: Seccomp}, {controlName: Seccomp}]}
`
	p := translateText(t, text, setting{guard: translate.GuardNever})
	names := map[string]int{}
	for _, o := range p.result.Objects {
		for _, v := range o.Policy.Spec.Variables {
			names[o.Policy.Name+" "+v.Name]++
		}
	}
	for _, name := range []string{"allContainers", "windows", "oldContainers"} {
		if names["standards "+name] != 1 {
			t.Errorf("variable %s stands %d times in standards, want once: %v", name, names["standards "+name], names)
		}
	}
}
