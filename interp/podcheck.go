package interp

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"

	"github.com/kvap/kvap/interp/internal/datum"
)

// A podCheck is one check of the Pod Security Standards. Each of its variants
// says which fields of a pod violate it.
//
// k8s.io/pod-security-admission answers with words, not fields, and its variants
// from 1.35 on relax some checks in user namespaces, which Kyverno's never do. So
// the predicates are written out here; a test holds the two together.
type podCheck struct {
	id       string
	level    api.Level
	control  string // Kyverno's name for it
	variants []podVariant
}

type podVariant struct {
	since api.Version
	check func(*pod) podViolation
}

// A podViolation is what a check found. A reason without fields cannot be
// excluded.
type podViolation struct {
	reason string // "" when the pod is allowed
	fields []fieldError
}

// A fieldError is one field that violates a check.
type fieldError struct {
	field     string // spec.containers[0].securityContext.privileged
	container string // the container's name, for a field of one
	required  bool   // the field is missing
	bad       any    // the value found: nil, bool, int, string or []string
}

// A pod is what checks look at.
type pod struct {
	meta metav1.ObjectMeta
	spec corev1.PodSpec
}

// A containerAt is a container with its field path.
type containerAt struct {
	*corev1.Container
	path string
}

// containers lists init, regular and ephemeral containers, in this order.
func (p *pod) containers() []containerAt {
	var out []containerAt
	add := func(list string, i int, c *corev1.Container) {
		out = append(out, containerAt{c, fmt.Sprintf("spec.%s[%d]", list, i)})
	}
	for i := range p.spec.InitContainers {
		add("initContainers", i, &p.spec.InitContainers[i])
	}
	for i := range p.spec.Containers {
		add("containers", i, &p.spec.Containers[i])
	}
	for i := range p.spec.EphemeralContainers {
		add("ephemeralContainers", i, (*corev1.Container)(&p.spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

func (p *pod) security() *corev1.PodSecurityContext {
	if p.spec.SecurityContext == nil {
		return &corev1.PodSecurityContext{}
	}
	return p.spec.SecurityContext
}

func (c containerAt) security() *corev1.SecurityContext {
	if c.SecurityContext == nil {
		return &corev1.SecurityContext{}
	}
	return c.SecurityContext
}

// forbidden is an error of the container's field below its securityContext.
func (c containerAt) forbidden(field string, bad any) fieldError {
	return fieldError{field: c.path + ".securityContext." + field, container: c.Name, bad: bad}
}

func (c containerAt) missing(field string) fieldError {
	return fieldError{field: c.path + ".securityContext." + field, container: c.Name, required: true}
}

func podForbidden(field string, bad any) fieldError {
	return fieldError{field: "spec." + field, bad: bad}
}

// because is a violation if there are any fields.
func because(reason string, fields []fieldError) podViolation {
	if len(fields) == 0 {
		return podViolation{}
	}
	return podViolation{reason, fields}
}

// podChecks lists the checks in the order of their ids, as Kyverno does.
func podChecks() []podCheck {
	v := api.MajorMinorVersion
	return []podCheck{
		{"allowPrivilegeEscalation", api.LevelRestricted, "Privilege Escalation", []podVariant{
			{v(1, 8), privilegeEscalation}, {v(1, 25), unlessWindows(privilegeEscalation)}}},
		{"appArmorProfile", api.LevelBaseline, "AppArmor", []podVariant{{v(1, 0), appArmor}}},
		{"capabilities_baseline", api.LevelBaseline, "Capabilities", []podVariant{{v(1, 0), addedCapabilities}}},
		{"capabilities_restricted", api.LevelRestricted, "Capabilities", []podVariant{
			{v(1, 22), keptCapabilities}, {v(1, 25), unlessWindows(keptCapabilities)}}},
		{"hostNamespaces", api.LevelBaseline, "Host Namespaces", []podVariant{{v(1, 0), hostNamespaces}}},
		{"hostPathVolumes", api.LevelBaseline, "HostPath Volumes", []podVariant{{v(1, 0), hostPathVolumes}}},
		{"hostPorts", api.LevelBaseline, "Host Ports", []podVariant{{v(1, 0), hostPorts}}},
		{"hostProbesAndHostLifecycle", api.LevelBaseline, "", []podVariant{{v(1, 34), probeHosts}}},
		{"privileged", api.LevelBaseline, "Privileged Containers", []podVariant{{v(1, 0), privileged}}},
		{"procMount", api.LevelBaseline, "/proc Mount Type", []podVariant{{v(1, 0), procMount}}},
		{"restrictedVolumes", api.LevelRestricted, "Volume Types", []podVariant{{v(1, 0), volumeTypes}}},
		{"runAsNonRoot", api.LevelRestricted, "Running as Non-root", []podVariant{{v(1, 0), nonRoot}}},
		{"runAsUser", api.LevelRestricted, "Running as Non-root user", []podVariant{{v(1, 23), rootUser}}},
		{"seLinuxOptions", api.LevelBaseline, "SELinux", []podVariant{
			{v(1, 0), seLinux("container_t", "container_init_t", "container_kvm_t")},
			{v(1, 31), seLinux("container_t", "container_init_t", "container_kvm_t", "container_engine_t")}}},
		{"seccompProfile_baseline", api.LevelBaseline, "Seccomp", []podVariant{
			{v(1, 0), seccompAnnotations}, {v(1, 19), seccompExplicit}}},
		{"seccompProfile_restricted", api.LevelRestricted, "Seccomp", []podVariant{
			{v(1, 19), seccompRequired}, {v(1, 25), unlessWindows(seccompRequired)}}},
		{"sysctls", api.LevelBaseline, "Sysctls", []podVariant{
			{v(1, 0), sysctls(0)}, {v(1, 27), sysctls(27)}, {v(1, 29), sysctls(29)}, {v(1, 32), sysctls(32)}}},
		{"windowsHostProcess", api.LevelBaseline, "HostProcess", []podVariant{{v(1, 0), hostProcess}}},
	}
}

// variant is the newest that is not newer than the version asked for, else the
// oldest: a check that the version did not have yet is applied all the same.
func (c podCheck) variant(version api.Version) func(*pod) podViolation {
	chosen := c.variants[0]
	for _, v := range c.variants[1:] {
		if !version.Older(v.since) {
			chosen = v
		}
	}
	return chosen.check
}

// unlessWindows lets pods that say they run on Windows pass.
func unlessWindows(check func(*pod) podViolation) func(*pod) podViolation {
	return func(p *pod) podViolation {
		if p.spec.OS != nil && p.spec.OS.Name == corev1.Windows {
			return podViolation{}
		}
		return check(p)
	}
}

func privilegeEscalation(p *pod) podViolation {
	var bad []fieldError
	for _, c := range p.containers() {
		switch allow := c.security().AllowPrivilegeEscalation; {
		case c.SecurityContext == nil:
			bad = append(bad, c.missing("allowPrivilegeEscalation"))
		case allow == nil:
			bad = append(bad, c.forbidden("allowPrivilegeEscalation", "nil"))
		case *allow:
			bad = append(bad, c.forbidden("allowPrivilegeEscalation", true))
		}
	}
	return because("allowPrivilegeEscalation != false", bad)
}

func appArmor(p *pod) podViolation {
	var bad []fieldError
	allowed := func(a *corev1.AppArmorProfile) bool {
		return a == nil || a.Type == corev1.AppArmorProfileTypeRuntimeDefault || a.Type == corev1.AppArmorProfileTypeLocalhost
	}
	if a := p.security().AppArmorProfile; !allowed(a) {
		bad = append(bad, podForbidden("securityContext.appArmorProfile.type", string(a.Type)))
	}
	for _, c := range p.containers() {
		if a := c.security().AppArmorProfile; !allowed(a) {
			bad = append(bad, c.forbidden("appArmorProfile.type", string(a.Type)))
		}
	}
	for _, k := range datum.Keys(p.meta.Annotations) {
		v := p.meta.Annotations[k]
		if strings.HasPrefix(k, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) &&
			v != "" && v != "runtime/default" && !strings.HasPrefix(v, "localhost/") {
			bad = append(bad, fieldError{field: "metadata.annotations[" + k + "]", bad: v})
		}
	}
	if len(bad) > 1 {
		return because("forbidden AppArmor profiles", bad)
	}
	return because("forbidden AppArmor profile", bad)
}

func addedCapabilities(p *pod) podViolation {
	allowed := []string{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
		"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
	var bad []fieldError
	for _, c := range p.containers() {
		if caps := c.security().Capabilities; caps != nil {
			if found := capabilitiesBeside(caps.Add, allowed...); len(found) > 0 {
				bad = append(bad, c.forbidden("capabilities.add", found))
			}
		}
	}
	return because("non-default capabilities", bad)
}

// capabilitiesBeside lists those that are not allowed, sorted, each once.
func capabilitiesBeside(caps []corev1.Capability, allowed ...string) []string {
	var out []string
	for _, c := range caps {
		if !slices.Contains(allowed, string(c)) {
			out = append(out, string(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func keptCapabilities(p *pod) podViolation {
	var bad []fieldError
	for _, c := range p.containers() {
		caps := c.security().Capabilities
		if caps == nil {
			bad = append(bad, c.missing("capabilities.drop"))
			continue
		}
		if !slices.Contains(caps.Drop, "ALL") {
			if len(caps.Drop) == 0 {
				bad = append(bad, c.missing("capabilities.drop"))
			} else {
				bad = append(bad, c.forbidden("capabilities.drop", capabilitiesBeside(caps.Drop)))
			}
		}
		if found := capabilitiesBeside(caps.Add, "NET_BIND_SERVICE"); len(found) > 0 {
			bad = append(bad, c.forbidden("capabilities.add", found))
		}
	}
	return because("unrestricted capabilities", bad)
}

func privileged(p *pod) podViolation {
	var bad []fieldError
	for _, c := range p.containers() {
		if is := c.security().Privileged; is != nil && *is {
			bad = append(bad, c.forbidden("privileged", true))
		}
	}
	return because("privileged", bad)
}

func procMount(p *pod) podViolation {
	var bad []fieldError
	for _, c := range p.containers() {
		if m := c.security().ProcMount; m != nil && *m != corev1.DefaultProcMount {
			bad = append(bad, c.forbidden("procMount", string(*m)))
		}
	}
	return because("procMount", bad)
}

func nonRoot(p *pod) podViolation {
	var bad []fieldError
	podWide := p.security().RunAsNonRoot
	if podWide != nil && !*podWide {
		bad = append(bad, podForbidden("securityContext.runAsNonRoot", false))
	}
	var implicit []fieldError
	for _, c := range p.containers() {
		switch own := c.security().RunAsNonRoot; {
		case own != nil && !*own:
			bad = append(bad, c.forbidden("runAsNonRoot", false))
		case own == nil && (podWide == nil || !*podWide):
			implicit = append(implicit, c.missing("runAsNonRoot"))
		}
	}
	return because("runAsNonRoot != true", append(bad, implicit...))
}

func rootUser(p *pod) podViolation {
	var bad []fieldError
	if u := p.security().RunAsUser; u != nil && *u == 0 {
		bad = append(bad, podForbidden("securityContext.runAsUser", 0))
	}
	for _, c := range p.containers() {
		if u := c.security().RunAsUser; u != nil && *u == 0 {
			bad = append(bad, c.forbidden("runAsUser", 0))
		}
	}
	return because("runAsUser=0", bad)
}

func seLinux(types ...string) func(*pod) podViolation {
	return func(p *pod) podViolation {
		var bad []fieldError
		check := func(o *corev1.SELinuxOptions, forbidden func(string, any) fieldError) {
			if o == nil {
				return
			}
			if o.Type != "" && !slices.Contains(types, o.Type) {
				bad = append(bad, forbidden("seLinuxOptions.type", o.Type))
			}
			if o.User != "" {
				bad = append(bad, forbidden("seLinuxOptions.user", o.User))
			}
			if o.Role != "" {
				bad = append(bad, forbidden("seLinuxOptions.role", o.Role))
			}
		}
		check(p.security().SELinuxOptions, func(field string, v any) fieldError {
			return podForbidden("securityContext."+field, v)
		})
		for _, c := range p.containers() {
			check(c.security().SELinuxOptions, c.forbidden)
		}
		return because("seLinuxOptions", bad)
	}
}
