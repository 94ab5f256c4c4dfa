package translate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
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
	for _, level := range []string{"baseline", "restricted", "privileged"} {
		for _, version := range []string{"v1.0", "v1.18", "v1.19", "v1.24", "v1.25", "v1.27", "v1.29", "v1.31", "v1.32", "latest", ""} {
			t.Run(level+" "+version, func(t *testing.T) {
				p := translateText(t, podSecurityPolicy(level, version, ""), setting{})
				m := &podMaker{Rand: rand.New(rand.NewPCG(1, uint64(len(version)))), annotations: true}
				allowed := 0
				for range 150 {
					pod := m.pod()
					want := meetsStandard(t, level, version, pod)
					if want {
						allowed++
					}
					if got := admits(t, p, pod); got != want {
						t.Fatalf("admitted: %v, want %v (%s)\n%s", got, want, violated(t, level, version, pod), asJSON(t, pod))
					}
				}
				if allowed < 15 || allowed > 135 {
					t.Errorf("%d of 150 pods are allowed; the test says little", allowed)
				}
			})
		}
	}
}

func admits(t *testing.T, p translated, pod *corev1.Pod) bool {
	t.Helper()
	outcome, refused, message := p.verdict(t, objectRequest(t, "CREATE", asJSON(t, pod), ""))
	if outcome != vap.Allow && outcome != vap.Deny || refused != (outcome == vap.Deny) {
		t.Fatalf("%s, refused: %v: %s\n%s", outcome, refused, message, asJSON(t, pod))
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
// interpreter's.
func TestExclusions(t *testing.T) {
	admitted, all := 0, 0
	for seed := range uint64(1200) {
		m := &podMaker{Rand: rand.New(rand.NewPCG(2, seed))}
		var exclude []string
		byImage := false
		for range 1 + m.IntN(4) {
			e := m.exclusion()
			byImage = byImage || strings.Contains(e, "images")
			exclude = append(exclude, e)
		}
		m.annotations = !byImage // nothing says whether the bare containers keep the annotations of their pod
		level, version := pick(m, "baseline", "restricted", "restricted"), pick(m, "v1.18", "v1.20", "latest", "latest")
		if level == "baseline" {
			exclude = forBaseline(exclude)
		}
		text := podSecurityPolicy(level, version, strings.Join(exclude, ", "))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := translateText(t, text, setting{})
			if got := p.targets(); got != "native" {
				if strings.Contains(fmt.Sprint(p.result.Diagnostics), "two exclusions of the same values") {
					return
				}
				t.Fatalf("%s: %v\n%s", got, p.result.Diagnostics, text)
			}
			for range 60 {
				pod := m.pod()
				want := interpreted(t, p.policy, nil, asJSON(t, pod))
				got := admits(t, p, pod)
				if got != want {
					t.Fatalf("admitted: %v, want %v\n%s\n%s\n%s", got, want, asJSON(t, pod), strings.Join(exclude, "\n"), p.objects[0].Policy.Spec.Validations[0].Expression)
				}
				all++
				if got {
					admitted++
				}
			}
		})
	}
	if admitted < all/5 || admitted > all*4/5 {
		t.Errorf("%d of %d pods are admitted; the test says little", admitted, all)
	}
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

// interpreted tells whether the interpreter admits an object.
func interpreted(t *testing.T, p *policy.Policy, exceptions []*policy.Exception, object string) bool {
	t.Helper()
	admission, err := interp.AdmissionOf(objectRequest(t, "CREATE", object, ""))
	if err != nil {
		t.Fatal(err)
	}
	in := interp.New([]*policy.Policy{p}, exceptions, &interp.Offline{}, interp.Limits{})
	out := true
	for _, r := range in.Judge(t.Context(), &interp.Request{Admission: admission}) {
		switch r.Status {
		case interp.Error:
			t.Fatalf("%s\n%s", r.Message, object)
		case interp.Fail:
			out = false
		}
	}
	return out
}

// exclusion is an entry of exclude.
func (m *podMaker) exclusion() string {
	type field struct {
		name   string
		values []string
	}
	sc := "securityContext."
	control := pick(m, []struct {
		name         string
		pod, byImage bool
		fields       []field
	}{
		{"Privileged Containers", false, true, []field{{sc + "privileged", []string{"true", "t*", "false"}}}},
		{"Host Namespaces", true, false, []field{{"hostNetwork", []string{"true"}}, {"hostPID", []string{"true"}}}},
		{"HostPath Volumes", true, false, []field{{"volumes[*].hostPath", []string{"/var/log", "/var/*", "/etc"}}}},
		{"Host Ports", false, true, []field{{"ports[*].hostPort", []string{"80", "80*", "9090"}}}},
		{"/proc Mount Type", false, true, []field{{sc + "procMount", []string{"Unmasked", "X"}}}},
		{"Capabilities", false, true, []field{{sc + "capabilities.add", []string{"NET_ADMIN", "SYS_*", "CHOWN"}}, {sc + "capabilities.drop", []string{"KILL", "*"}}}},
		{"Seccomp", true, true, []field{{sc + "seccompProfile.type", []string{"Unconfined", "X"}}}},
		{"Seccomp", true, true, []field{{sc + "seccompProfile.type", []string{"Unconfined", "X"}}}},
		{"SELinux", true, true, []field{{sc + "seLinuxOptions.type", []string{"spc_t", "*_engine_t"}}, {sc + "seLinuxOptions.user", []string{"system_u"}}}},
		{"Sysctls", true, false, []field{{sc + "sysctls[*].name", []string{"kernel.*", "kernel.msgmax", "net.core.somaxconn", "net.*"}}}},
		{"AppArmor", true, true, []field{{sc + "appArmorProfile.type", []string{"Unconfined"}}}},
		{"HostProcess", true, true, []field{{sc + "windowsOptions.hostProcess", []string{"true"}}}},
		{"Volume Types", true, false, []field{{"volumes[*].nfs", []string{"x"}}, {"volumes[*].hostPath", []string{"x"}}}},
		{"Privilege Escalation", false, true, []field{{sc + "allowPrivilegeEscalation", []string{"true", "nil"}}}},
		{"Running as Non-root", true, true, []field{{sc + "runAsNonRoot", []string{"false", "true"}}}},
		{"Running as Non-root", true, true, []field{{sc + "runAsNonRoot", []string{"false", "true"}}}},
		{"Running as Non-root user", true, true, []field{{sc + "runAsUser", []string{"0", "1*"}}}},
	}...)
	images := control.byImage && (!control.pod || m.IntN(2) == 0)
	out := fmt.Sprintf("{controlName: %q", control.name)
	prefix := "spec."
	if images {
		out += fmt.Sprintf(", images: [%q]", pick(m, "*", "nginx*", "ghcr.io/*/tool", "redis"))
		prefix += pick(m, "containers", "containers", "initContainers", "ephemeralContainers") + "[*]."
	}
	if m.IntN(2) == 0 {
		f := pick(m, control.fields...)
		if !images && control.byImage && m.IntN(3) == 0 {
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
