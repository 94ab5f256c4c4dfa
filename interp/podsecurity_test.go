package interp

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	upstream "k8s.io/pod-security-admission/policy"
)

func podPolicy(podSecurity string) string {
	return strings.ReplaceAll(widgetPolicy("validate: {podSecurity: "+podSecurity+"}"), "Widget", "Pod, Deployment, CronJob, Service")
}

func TestPodSecurity(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: `
	tests := []struct {
		note, rule, object string
		want               Status
		message            string
	}{
		{"pass", `{level: baseline}`, pod + `{}}`, Pass, "Validation rule 'r' passed."},
		{"fail", `{level: baseline, version: v1.30}`, pod + `{hostPID: true}}`, Fail,
			`Validation rule 'r' failed. It violates PodSecurity "baseline:v1.30": (Forbidden reason: host namespaces, field error list: [spec.hostPID is forbidden, forbidden values found: true])`},
		{"required fields", `{level: restricted, version: latest}`, pod + `{securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: i, securityContext: {capabilities: {drop: [ALL]}}}]}}`, Fail,
			`Validation rule 'r' failed. It violates PodSecurity "restricted:latest": (Forbidden reason: allowPrivilegeEscalation != false, field error list: [spec.containers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: nil])`},
		{"privileged is as strict as restricted", `{level: privileged}`, pod + `{containers: [{name: c, image: i}]}}`, Fail, ""},
		{"a check newer than the version", `{level: baseline, version: v1.20}`, pod + `{containers: [{name: c, image: i, livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}}]}}`, Fail, "probe or lifecycle host"},
		{"sysctls of the version", `{level: baseline, version: v1.28}`, pod + `{securityContext: {sysctls: [{name: net.ipv4.tcp_keepalive_time, value: "1"}]}}}`, Fail, "spec.securityContext.sysctls[0].name"},
		{"sysctls of a newer version", `{level: baseline, version: v1.29}`, pod + `{securityContext: {sysctls: [{name: net.ipv4.tcp_keepalive_time, value: "1"}]}}}`, Pass, ""},
		{"a deployment", `{level: baseline}`, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: team}, spec: {template: {spec: {hostIPC: true}}}}`, Fail, "spec.template.spec.hostIPC is forbidden"},
		{"a cron job", `{level: baseline}`, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: team}, spec: {jobTemplate: {spec: {template: {spec: {hostIPC: true}}}}}}`, Fail, "spec.jobTemplate.spec.template.spec.hostIPC is forbidden"},
		{"annotations of a cron job are those of the job", `{level: baseline}`, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: team}, spec: {jobTemplate: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}}, spec: {template: {spec: {}}}}}}`, Fail, "AppArmor"},
		{"no pod", `{level: baseline}`, `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: team}}`, Error, ""},
		{"a wrong type", `{level: baseline}`, pod + `{hostPID: "yes"}}`, Error, ""},
		{"user namespaces relax nothing", `{level: restricted}`, pod + `{hostUsers: false, securityContext: {runAsUser: 0, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}}}`, Fail, "runAsUser=0"},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, podPolicyWithout(tt.rule), &Request{Admission: create(object(t, tt.object))}, nil)
			if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
				t.Errorf("want %s (%s)\ngot %s (%s)", tt.want, tt.message, got.Status, got.Message)
			}
		})
	}
}

// A report tells which controls are violated, and the images of the containers that a check found,
// whichever of them are excluded; not those of checks that are excluded wholly.
func TestPodSecurityProperties(t *testing.T) {
	const rule = `{level: restricted, version: latest, exclude: [{controlName: Seccomp}, {controlName: Seccomp, images: ["*"]}, ` +
		`{controlName: Capabilities, images: ["b*"], restrictedField: "spec.containers[*].securityContext.capabilities.drop", values: [ALL]}]}`
	got := judgeOne(t, podPolicyWithout(rule), &Request{Admission: create(object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {
		securityContext: {runAsNonRoot: true}, containers: [
			{name: a, image: a, securityContext: {allowPrivilegeEscalation: false}},
			{name: b, image: "b@x", securityContext: {allowPrivilegeEscalation: false}},
			{name: c, image: "ghcr.io/c:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`))}, nil)
	want := map[string]string{
		"standard": "restricted", "version": "latest", "controls": "capabilities_restricted",
		"controlsJSON": `[{"ID":"capabilities_restricted","Name":"Capabilities","Images":["docker.io/a:latest","b@x"]}]`,
	}
	if got.Status != Fail || !maps.Equal(got.Properties, want) {
		t.Errorf("%s %s\ngot  %v\nwant %v", got.Status, got.Message, got.Properties, want)
	}
}

// podPolicyWithout has no rules for pod controllers beside its own.
func podPolicyWithout(rule string) string {
	return strings.Replace(podPolicy(rule), "{name: p}", "{name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}", 1)
}

func TestPodSecurityExcludes(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: `
	const twoPrivileged = pod + `{containers: [{name: a, image: nginx:1, securityContext: {privileged: true}}, {name: b, image: redis, securityContext: {privileged: true}}]}}`
	tests := []struct {
		note, excludes, object string
		want                   Status
	}{
		{"a pod-level control", `[{controlName: Host Namespaces}]`, pod + `{hostPID: true, hostIPC: true}}`, Pass},
		{"one field of it", `[{controlName: Host Namespaces, restrictedField: spec.hostPID, values: ["true"]}]`, pod + `{hostPID: true, hostIPC: true}}`, Fail},
		{"all images", `[{controlName: Privileged Containers, images: ["*"]}]`, twoPrivileged, Pass},
		{"some images", `[{controlName: Privileged Containers, images: ["nginx*"]}]`, twoPrivileged, Fail},
		{"one after the other", `[{controlName: Privileged Containers, images: ["nginx*"]}, {controlName: Privileged Containers, images: [redis]}]`, twoPrivileged, Pass},
		{"images are as written", `[{controlName: Privileged Containers, images: ["docker.io/*"]}]`, twoPrivileged, Fail},
		{"another control", `[{controlName: Capabilities, images: ["*"]}]`, twoPrivileged, Fail},
		{"values", `[{controlName: Capabilities, images: ["*"], restrictedField: "spec.containers[*].securityContext.capabilities.add", values: [SYS_*]}]`,
			pod + `{containers: [{name: a, image: i, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}}`, Pass},
		{"all values must be named", `[{controlName: Capabilities, images: ["*"], restrictedField: "spec.containers[*].securityContext.capabilities.add", values: [SYS_*]}]`,
			pod + `{containers: [{name: a, image: i, securityContext: {capabilities: {add: [SYS_ADMIN, NET_ADMIN]}}}]}}`, Fail},
		{"container violations need images", `[{controlName: SELinux}]`, pod + `{containers: [{name: a, image: i, securityContext: {seLinuxOptions: {user: x}}}]}}`, Fail},
		{"pod violations need none", `[{controlName: SELinux}]`, pod + `{securityContext: {seLinuxOptions: {user: x}}}}`, Pass},
		{"host probes cannot be excluded", `[{controlName: Host Ports, images: ["*"]}]`, pod + `{containers: [{name: a, image: i, livenessProbe: {tcpSocket: {host: x, port: 1}}}]}}`, Fail},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, podPolicyWithout(`{level: baseline, exclude: `+tt.excludes+`}`), &Request{Admission: create(object(t, tt.object))}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

// TestMaskedSeccomp pins that excluding the explicit violation lets the implicit
// ones pass, which are not listed beside it.
func TestMaskedSeccomp(t *testing.T) {
	source := podPolicyWithout(`{level: restricted, exclude: [{controlName: Seccomp, images: [bad]}]}`)
	secure := `securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {securityContext: {runAsNonRoot: true}, containers: [
		{name: a, image: bad, ` + secure + `, seccompProfile: {type: Unconfined}}}, {name: b, image: good, ` + secure + `}}]}}`
	if got := judgeOne(t, source, &Request{Admission: create(object(t, strings.ReplaceAll(pod, "\t", " ")))}, nil); got.Status != Pass {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
}

// TestChecksAreUpstreams holds the predicates to those of the Pod Security
// admission plugin, on random pods outside of user namespaces.
func TestChecksAreUpstreams(t *testing.T) {
	theirs := map[string]upstream.Check{}
	for _, c := range upstream.DefaultChecks() {
		theirs[string(c.ID)] = c
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string][2]int{}
	for range 20000 {
		p := randomPod(r)
		minor := r.IntN(37)
		version := api.MajorMinorVersion(1, minor)
		for _, ours := range podChecks() {
			upstreamCheck, ok := theirs[ours.id]
			if !ok {
				t.Fatalf("there is no check %s upstream", ours.id)
			}
			got := ours.variant(version)(p).reason
			want := variantOf(upstreamCheck, version).CheckPod(&p.meta, &p.spec)
			if (got == "") != want.Allowed || got != want.ForbiddenReason {
				t.Fatalf("%s of version 1.%d: upstream allows: %v (%s), ours: %q\n%+v", ours.id, minor, want.Allowed, want.ForbiddenReason, got, p)
			}
			counts := seen[ours.id]
			if want.Allowed {
				counts[0]++
			} else {
				counts[1]++
			}
			seen[ours.id] = counts
		}
	}
	for id, counts := range seen {
		if counts[0] == 0 || counts[1] == 0 {
			t.Errorf("%s was allowed %d times and forbidden %d times; the pods are not random enough", id, counts[0], counts[1])
		}
	}
}

// variantOf chooses among upstream's variants as Kyverno does.
func variantOf(c upstream.Check, version api.Version) upstream.VersionedCheck {
	chosen := c.Versions[0]
	for _, v := range c.Versions[1:] {
		if !version.Older(v.MinimumVersion) {
			chosen = v
		}
	}
	return chosen
}

func randomPod(r *rand.Rand) *pod {
	rare := func() bool { return r.IntN(12) == 0 }
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	flag := func() *bool {
		switch r.IntN(4) {
		case 0:
			return new(true)
		case 1:
			return new(false)
		}
		return nil
	}
	p := &pod{}
	p.spec.HostNetwork, p.spec.HostPID, p.spec.HostIPC = rare(), rare(), rare()
	if rare() {
		p.spec.OS = &corev1.PodOS{Name: corev1.OSName(pick("windows", "linux"))}
	}
	if r.IntN(2) == 0 {
		s := &corev1.PodSecurityContext{RunAsNonRoot: flag()}
		if rare() {
			s.RunAsUser = new(int64(r.IntN(2)))
		}
		if r.IntN(3) == 0 {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileType(pick("RuntimeDefault", "Localhost", "Unconfined", ""))}
		}
		if rare() {
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileType(pick("RuntimeDefault", "Unconfined"))}
		}
		if rare() {
			s.SELinuxOptions = &corev1.SELinuxOptions{Type: pick("", "container_t", "container_engine_t", "spc_t"), User: pick("", "", "u"), Role: pick("", "", "r")}
		}
		if rare() {
			s.Sysctls = []corev1.Sysctl{{Name: pick("kernel.shm_rmid_forced", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem", "kernel.msgmax")}}
		}
		if rare() {
			s.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: flag()}
		}
		p.spec.SecurityContext = s
	}
	if rare() {
		p.meta.Annotations = map[string]string{
			pick("container.apparmor.security.beta.kubernetes.io/a", "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/a"): pick("runtime/default", "docker/default", "localhost/x", "unconfined", ""),
		}
	}
	for i := range r.IntN(3) {
		v := corev1.Volume{Name: string(rune('a' + i))}
		switch r.IntN(5) {
		case 0:
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/x"}
		case 1:
			v.NFS = &corev1.NFSVolumeSource{}
		case 2:
			v.Secret = &corev1.SecretVolumeSource{}
		case 3:
			v.Image = &corev1.ImageVolumeSource{}
		case 4:
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.spec.Volumes = append(p.spec.Volumes, v)
	}
	for range 1 + r.IntN(2) {
		p.spec.Containers = append(p.spec.Containers, randomContainer(r))
	}
	if rare() {
		p.spec.InitContainers = append(p.spec.InitContainers, randomContainer(r))
	}
	if rare() {
		p.spec.EphemeralContainers = append(p.spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(randomContainer(r))})
	}
	return p
}

func randomContainer(r *rand.Rand) corev1.Container {
	c := corev1.Container{Name: string(rune('a' + r.IntN(3)))}
	rare := func() bool { return r.IntN(10) == 0 }
	if rare() {
		c.Ports = []corev1.ContainerPort{{HostPort: int32(r.IntN(2))}}
	}
	if rare() {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: []string{"", "h"}[r.IntN(2)]}}}
	}
	if rare() {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: []string{"", "h"}[r.IntN(2)]}}}
	}
	if r.IntN(4) == 0 {
		return c
	}
	s := &corev1.SecurityContext{AllowPrivilegeEscalation: new(rare())}
	if rare() {
		s.AllowPrivilegeEscalation = nil
	}
	if rare() {
		s.Privileged = new(r.IntN(2) == 0)
	}
	if rare() {
		s.ProcMount = new(corev1.ProcMountType([]string{"Default", "Unmasked"}[r.IntN(2)]))
	}
	if rare() {
		s.RunAsNonRoot = new(r.IntN(2) == 0)
	}
	if rare() {
		s.RunAsUser = new(int64(r.IntN(2)))
	}
	if rare() {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileType([]string{"RuntimeDefault", "Unconfined"}[r.IntN(2)])}
	}
	if rare() {
		s.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(r.IntN(2) == 0)}
	}
	if rare() {
		s.SELinuxOptions = &corev1.SELinuxOptions{Type: []string{"container_engine_t", "spc_t"}[r.IntN(2)]}
	}
	if r.IntN(3) > 0 {
		s.Capabilities = &corev1.Capabilities{}
		if r.IntN(3) > 0 {
			s.Capabilities.Drop = []corev1.Capability{"ALL"}
		}
		if rare() {
			s.Capabilities.Add = []corev1.Capability{[]corev1.Capability{"NET_BIND_SERVICE", "SYS_ADMIN", "CHOWN"}[r.IntN(3)]}
		}
	}
	c.SecurityContext = s
	return c
}

// TestDigitsAnywhere pins that every run of digits counts as an index.
func TestDigitsAnywhere(t *testing.T) {
	if got := withoutIndexes("spec.containers[10].x509.a"); got != "spec.containers[*].x*.a" {
		t.Errorf("got %s", got)
	}
}
