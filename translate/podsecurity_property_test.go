package translate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// podSecurityPolicy is a rule for pods and for the kinds given.
func podSecurityPolicy(level, version, exclude string) string {
	return fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: standards
  annotations: {pod-policies.kyverno.io/autogen-controllers: none}
spec:
  rules:
    - name: pods
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        failureAction: Enforce
        podSecurity:
          level: %s
          version: %q
          exclude: [%s]
`, level, version, exclude)
}

// TestStandards holds the lowering against the checks of the Pod Security Standards
// themselves, chosen as Kyverno chooses them.
func TestStandards(t *testing.T) {
	t.Parallel()
	versions := map[string][]string{
		"baseline":   {"v1.19", "latest"},
		"restricted": {"v1.19", "v1.24", "v1.25", "v1.26", "v1.27", "v1.28", "v1.29", "v1.30", "v1.31", "v1.32", ""},
		"privileged": {"latest"},
	}
	for _, level := range []string{"baseline", "restricted", "privileged"} {
		for _, version := range versions[level] {
			t.Run(level+" "+version, func(t *testing.T) {
				p := translateText(t, podSecurityPolicy(level, version, ""), setting{})
				m := &podMaker{Rand: rand.New(rand.NewPCG(1, uint64(len(version)))), annotations: true}
				allowed := 0
				for range 100 {
					pod := m.pod()
					want := meetsStandard(t, level, version, pod)
					if want {
						allowed++
					}
					if got := admits(t, p, objectRequest(t, "CREATE", asJSON(t, pod), "")); got != want {
						t.Fatalf("admitted: %v, want %v (%s)\n%s", got, want, violated(t, level, version, pod), asJSON(t, pod))
					}
				}
				if allowed < 10 || allowed > 90 {
					t.Errorf("%d of 100 pods are allowed; the test says little", allowed)
				}
			})
		}
	}
}

func admits(t *testing.T, p translated, r *admissionv1.AdmissionRequest) bool {
	t.Helper()
	outcome, refused, message := p.verdict(t, r)
	if outcome != apiserver.Allow && outcome != apiserver.Deny || refused != (outcome == apiserver.Deny) {
		t.Fatalf("%s, refused: %v: %s\n%s", outcome, refused, message, asJSON(t, r))
	}
	return !refused
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func meetsStandard(t *testing.T, level, version string, pod *corev1.Pod) bool {
	return len(violated(t, level, version, pod)) == 0
}

// violated are the checks that a pod does not pass.
func violated(t *testing.T, level, version string, pod *corev1.Pod) []string {
	t.Helper()
	if version == "" {
		version = "latest"
	}
	v, err := psa.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range standards.DefaultChecks() {
		check := variant(c, v)
		if check == nil || level == "baseline" && c.Level != psa.LevelBaseline {
			continue
		}
		if r := check(&pod.ObjectMeta, &pod.Spec); !r.Allowed {
			out = append(out, fmt.Sprintf("%s: %s", c.ID, r.ForbiddenDetail))
		}
	}
	return out
}

// variant is what Kyverno takes of a check: the first variant always. It does not
// have the relaxations and additions of 1.35 and later.
func variant(c standards.Check, version psa.Version) standards.CheckPodFn {
	var out standards.CheckPodFn
	for i, v := range c.Versions {
		if v.MinimumVersion.Older(psa.MajorMinorVersion(1, 35)) && (i == 0 || !version.Older(v.MinimumVersion)) {
			out = v.CheckPod
		}
	}
	return out
}

// TestExclusions holds exclusions, in the rule and in exceptions, against the
// interpreter's, and the excuses by an old violation that come with them.
func TestExclusions(t *testing.T) {
	t.Parallel()
	admitted, all, refused := 0, 0, 0
	for seed := range uint64(100) {
		m := &podMaker{Rand: rand.New(rand.NewPCG(2, seed))}
		text := m.policyWithExclusions()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := translateText(t, text, setting{})
			if p.targets() != "native" { // exclusions that meet in one error
				refused++
				return
			}
			file, _ := policy.Parse("p.yaml", []byte(text))
			in := interp.New(file.Policies, file.Exceptions, &interp.Offline{}, interp.Limits{})
			for range 30 {
				r := m.request(t)
				want := interpreted(t, in, r)
				got := admits(t, p, r)
				if got != want {
					t.Fatalf("admitted: %v, want %v\n%s\n%s\n%s", got, want, asJSON(t, r), text, p.yaml(t))
				}
				all++
				if got {
					admitted++
				}
			}
		})
	}
	if admitted < all/5 || admitted > all*4/5 || refused > 40 {
		t.Errorf("%d of %d pods are admitted, and %d of 100 policies refused; the test says little", admitted, all, refused)
	}
}

// policyWithExclusions is a policy, and perhaps an exception, that exclude controls.
func (m *podMaker) policyWithExclusions() string {
	level, version := pick(m, "baseline", "restricted", "restricted"), pick(m, "v1.20", "latest", "latest")
	var exclude []string
	some := []control{pick(m, controls()...), pick(m, controls()...)}
	m.focus = []string{some[0].name, some[1].name}
	for range 1 + m.IntN(4) {
		exclude = append(exclude, m.exclusion(pick(m, some...)))
	}
	if level == "baseline" {
		exclude = forBaseline(exclude)
	}
	// nothing says whether bare containers keep the annotations of their pod
	m.annotations = !strings.Contains(strings.Join(exclude, ""), "images")
	n := m.IntN(len(exclude) + 1)
	text := podSecurityPolicy(level, version, strings.Join(exclude[:n], ", "))
	if n == len(exclude) {
		return text
	}
	return text + fmt.Sprintf(`---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: some, namespace: ops}
spec:
  exceptions: [{policyName: standards, ruleNames: [pods]}]
  match: {any: [{resources: {kinds: [Pod]%s}}]}
  podSecurity: [%s]
`, pick(m, "", ", selector: {matchLabels: {excepted: \"yes\"}}"), strings.Join(exclude[n:], ", "))
}

// request is the creation or update of a pod.
func (m *podMaker) request(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	labelled := func() *corev1.Pod {
		p := m.pod()
		p.Labels = pick(m, nil, map[string]string{"excepted": "yes"})
		return p
	}
	if m.IntN(2) == 0 {
		return objectRequest(t, "CREATE", asJSON(t, labelled()), "")
	}
	return objectRequest(t, "UPDATE", asJSON(t, labelled()), asJSON(t, labelled()))
}

// forBaseline leaves out what the level does not take.
func forBaseline(exclude []string) []string {
	var out []string
	for _, e := range exclude {
		if !strings.Contains(e, "Volume Types") && !strings.Contains(e, "Privilege Escalation") && !strings.Contains(e, "Non-root") {
			out = append(out, e)
		}
	}
	return out
}

// interpreted tells whether the interpreter admits a request.
func interpreted(t *testing.T, in *interp.Interpreter, r *admissionv1.AdmissionRequest) bool {
	t.Helper()
	admission, err := interp.AdmissionOf(r)
	if err != nil {
		t.Fatal(err)
	}
	out := true
	for _, r := range in.Judge(t.Context(), &interp.Request{Admission: admission}) {
		switch r.Status {
		case interp.Error:
			t.Fatalf("%s\n%s", r.Message, asJSON(t, admission))
		case interp.Fail:
			out = false
		}
	}
	return out
}

// A control is what exclusions name: of pods, of containers by image, or of both.
type control struct {
	name         string
	pod, byImage bool
	fields       []excludable
}

// An excludable is a field with values to restrict an exclusion to.
type excludable struct {
	name   string
	values []string
}

func controls() []control {
	const sc = "securityContext."
	return []control{
		{"Privileged Containers", false, true, []excludable{{sc + "privileged", []string{"true", "t*", "false"}}}},
		{"Host Namespaces", true, false, []excludable{{"hostNetwork", []string{"true"}}, {"hostPID", []string{"true"}}}},
		{"HostPath Volumes", true, false, []excludable{{"volumes[*].hostPath", []string{"/var/log", "/var/*", "/etc"}}}},
		{"Host Ports", false, true, []excludable{{"ports[*].hostPort", []string{"80", "80*", "9090"}}}},
		{"/proc Mount Type", false, true, []excludable{{sc + "procMount", []string{"Unmasked", "X"}}}},
		{"Capabilities", false, true, []excludable{
			{sc + "capabilities.add", []string{"NET_ADMIN", "SYS_*", "CHOWN"}},
			{sc + "capabilities.drop", []string{"KILL", "*"}},
		}},
		{"Seccomp", true, true, []excludable{{sc + "seccompProfile.type", []string{"Unconfined", "X"}}}},
		{"SELinux", true, true, []excludable{
			{sc + "seLinuxOptions.type", []string{"spc_t", "*_engine_t"}}, {sc + "seLinuxOptions.user", []string{"system_u"}},
		}},
		{"Sysctls", true, false, []excludable{{sc + "sysctls[*].name", []string{"kernel.*", "kernel.msgmax", "net.core.somaxconn", "net.*"}}}},
		{"AppArmor", true, true, []excludable{{sc + "appArmorProfile.type", []string{"Unconfined"}}}},
		{"HostProcess", true, true, []excludable{{sc + "windowsOptions.hostProcess", []string{"true"}}}},
		{"Volume Types", true, false, []excludable{{"volumes[*].nfs", []string{"x"}}, {"volumes[*].hostPath", []string{"x"}}}},
		{"Privilege Escalation", false, true, []excludable{{sc + "allowPrivilegeEscalation", []string{"true", "nil"}}}},
		{"Running as Non-root", true, true, []excludable{{sc + "runAsNonRoot", []string{"false", "true"}}}},
		{"Running as Non-root user", true, true, []excludable{{sc + "runAsUser", []string{"0", "1*"}}}},
	}
}

// exclusion is an entry of exclude.
func (m *podMaker) exclusion(c control) string {
	images := c.byImage && (!c.pod || m.IntN(2) == 0)
	out := fmt.Sprintf("{controlName: %q", c.name)
	prefix := "spec."
	if images {
		out += fmt.Sprintf(", images: [%q]", pick(m, "*", "nginx*", "ghcr.io/*/tool", "redis"))
		prefix += pick(m, "containers", "containers", "initContainers", "ephemeralContainers") + "[*]."
	}
	if m.IntN(2) == 0 {
		f := pick(m, c.fields...)
		if !images && c.byImage && m.IntN(3) == 0 { // what the stand-in for the containers has
			prefix += "containers[*]."
		}
		values := []string{fmt.Sprintf("%q", pick(m, f.values...))}
		for range m.IntN(2) {
			values = append(values, fmt.Sprintf("%q", pick(m, f.values...)))
		}
		out += fmt.Sprintf(", restrictedField: %q, values: [%s]", prefix+f.name, strings.Join(values, ", "))
	}
	return out + "}"
}
