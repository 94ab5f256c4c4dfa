package translate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A podMaker makes pods that pass the restricted level but for a few places.
type podMaker struct {
	*rand.Rand
	annotations bool     // also those that came before fields
	focus       []string // the controls that most of the places are about
}

func pick[T any](m *podMaker, vs ...T) T { return vs[m.IntN(len(vs))] }

func pointer[T any](v T) *T { return &v }

func (m *podMaker) pod() *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "app"},
	}
	s := &p.Spec
	for i := range 1 + m.IntN(3) {
		s.Containers = append(s.Containers, m.container(fmt.Sprintf("c%d", i)))
	}
	for i := range m.IntN(3) {
		s.InitContainers = append(s.InitContainers, m.container(fmt.Sprintf("i%d", i)))
	}
	for i := range m.IntN(2) {
		s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon(m.container(fmt.Sprintf("e%d", i))),
		})
	}
	if m.IntN(2) == 0 {
		s.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: pointer(true)}
		if m.IntN(2) == 0 {
			s.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: "RuntimeDefault"}
		}
	}
	m.spoil(p)
	return p
}

func (m *podMaker) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(m, "nginx", "nginx:1.27", "ghcr.io/acme/tool", "redis")}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: pointer(false),
		RunAsNonRoot:             pointer(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: "RuntimeDefault"},
	}
	return c
}

// spoil changes some places of a pod, all about one control or each about any.
func (m *podMaker) spoil(p *corev1.Pod) {
	all := spoilers()
	if len(m.focus) > 0 && m.IntN(5) > 0 {
		all = slices.DeleteFunc(all, func(s spoiler) bool { return !slices.Contains(m.focus, s.control) })
	}
	if len(all) == 0 {
		return
	}
	one := pick(m, all...)
	for range pick(m, 0, 1, 1, 2, 3, 5) {
		one.spoil(m, p)
		if m.IntN(3) == 0 {
			one = pick(m, all...)
		}
	}
	if m.annotations && m.IntN(4) == 0 {
		m.annotate(p)
	}
}

// A spoiler changes a place that a control is about, mostly for the worse.
type spoiler struct {
	control string
	spoil   func(*podMaker, *corev1.Pod)
}

func spoilers() []spoiler {
	container := func(do func(*podMaker, *corev1.Container)) func(*podMaker, *corev1.Pod) {
		return func(m *podMaker, p *corev1.Pod) { do(m, m.aContainer(p)) }
	}
	context := func(do func(*podMaker, *corev1.SecurityContext)) func(*podMaker, *corev1.Pod) {
		return container(func(m *podMaker, c *corev1.Container) {
			if c.SecurityContext == nil {
				c.SecurityContext = &corev1.SecurityContext{}
			}
			do(m, c.SecurityContext)
		})
	}
	podContext := func(do func(*podMaker, *corev1.PodSecurityContext)) func(*podMaker, *corev1.Pod) {
		return func(m *podMaker, p *corev1.Pod) {
			if p.Spec.SecurityContext == nil {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{}
			}
			do(m, p.Spec.SecurityContext)
		}
	}
	return []spoiler{
		{"", func(m *podMaker, p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: pick(m, corev1.Windows, corev1.Linux)}
		}},
		{"", container((*podMaker).probe)},
		{"Host Namespaces", (*podMaker).hostNamespace},
		{"HostPath Volumes", (*podMaker).addVolume},
		{"Volume Types", (*podMaker).addVolume},
		{"Host Ports", container((*podMaker).addPort)},
		{"Sysctls", podContext((*podMaker).addSysctl)},
		{"Privileged Containers", context(func(m *podMaker, c *corev1.SecurityContext) {
			c.Privileged = pick(m, nil, pointer(false), pointer(true))
		})},
		{"/proc Mount Type", context(func(m *podMaker, c *corev1.SecurityContext) {
			c.ProcMount = pick(m, nil, pointer(corev1.DefaultProcMount), pointer(corev1.UnmaskedProcMount))
		})},
		{"Capabilities", context(func(m *podMaker, c *corev1.SecurityContext) { c.Capabilities = m.capabilities() })},
		{"Capabilities", container(func(_ *podMaker, c *corev1.Container) { c.SecurityContext = nil })},
		{"Privilege Escalation", context(func(m *podMaker, c *corev1.SecurityContext) {
			c.AllowPrivilegeEscalation = pick(m, nil, pointer(true))
		})},
		{"Privilege Escalation", container(func(_ *podMaker, c *corev1.Container) { c.SecurityContext = nil })},
		{"Seccomp", context(func(m *podMaker, c *corev1.SecurityContext) { c.SeccompProfile = m.seccomp() })},
		{"Seccomp", context(func(m *podMaker, c *corev1.SecurityContext) { c.SeccompProfile = nil })},
		{"Seccomp", podContext(func(m *podMaker, c *corev1.PodSecurityContext) { c.SeccompProfile = m.seccomp() })},
		{"SELinux", context(func(m *podMaker, c *corev1.SecurityContext) { c.SELinuxOptions = m.seLinux() })},
		{"SELinux", podContext(func(m *podMaker, c *corev1.PodSecurityContext) { c.SELinuxOptions = m.seLinux() })},
		{"AppArmor", context(func(m *podMaker, c *corev1.SecurityContext) { c.AppArmorProfile = m.appArmor() })},
		{"AppArmor", podContext(func(m *podMaker, c *corev1.PodSecurityContext) { c.AppArmorProfile = m.appArmor() })},
		{"HostProcess", context(func(m *podMaker, c *corev1.SecurityContext) { c.WindowsOptions = m.windows() })},
		{"HostProcess", podContext(func(m *podMaker, c *corev1.PodSecurityContext) { c.WindowsOptions = m.windows() })},
		{"Running as Non-root", context(func(m *podMaker, c *corev1.SecurityContext) { c.RunAsNonRoot = pick(m, nil, nil, pointer(false)) })},
		{"Running as Non-root", podContext(func(m *podMaker, c *corev1.PodSecurityContext) {
			c.RunAsNonRoot = pick(m, nil, pointer(false), pointer(true))
		})},
		{"Running as Non-root user", context(func(m *podMaker, c *corev1.SecurityContext) { c.RunAsUser = m.user() })},
		{"Running as Non-root user", podContext(func(m *podMaker, c *corev1.PodSecurityContext) { c.RunAsUser = m.user() })},
	}
}

// aContainer is any container of the pod.
func (m *podMaker) aContainer(p *corev1.Pod) *corev1.Container {
	var all []*corev1.Container
	for i := range p.Spec.InitContainers {
		all = append(all, &p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		all = append(all, &p.Spec.Containers[i])
	}
	for i := range p.Spec.EphemeralContainers {
		all = append(all, (*corev1.Container)(&p.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return pick(m, all...)
}

func (m *podMaker) annotate(p *corev1.Pod) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	key := pick(m, "seccomp.security.alpha.kubernetes.io/pod",
		"container.seccomp.security.alpha.kubernetes.io/"+m.aContainer(p).Name, "container.seccomp.security.alpha.kubernetes.io/other",
		"container.apparmor.security.beta.kubernetes.io/c0", "container.apparmor.security.beta.kubernetes.io/nginx", "unrelated")
	p.Annotations[key] = pick(m, "", "unconfined", "runtime/default", "docker/default", "localhost/a", "localhost")
}

func (m *podMaker) hostNamespace(p *corev1.Pod) {
	switch m.IntN(3) {
	case 0:
		p.Spec.HostNetwork = true
	case 1:
		p.Spec.HostPID = true
	case 2:
		p.Spec.HostIPC = true
	}
}

func (m *podMaker) addVolume(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(p.Spec.Volumes)), VolumeSource: pick(m,
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}},
		corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "iqn"}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/run"}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
	)})
}

func (m *podMaker) addPort(c *corev1.Container) {
	c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: pick[int32](m, 0, 80, 8080, 9090)})
}

func (m *podMaker) addSysctl(c *corev1.PodSecurityContext) {
	c.Sysctls = append(c.Sysctls, corev1.Sysctl{Name: pick(m, "kernel.shm_rmid_forced", "kernel.msgmax", "net.core.somaxconn",
		"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem")})
}

func (m *podMaker) probe(c *corev1.Container) {
	host := pick(m, "", "127.0.0.1")
	var h corev1.ProbeHandler
	if m.IntN(2) == 0 {
		h.HTTPGet = &corev1.HTTPGetAction{Host: host}
	} else {
		h.TCPSocket = &corev1.TCPSocketAction{Host: host}
	}
	switch m.IntN(5) {
	case 0:
		c.LivenessProbe = &corev1.Probe{ProbeHandler: h}
	case 1:
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: h}
	case 2:
		c.StartupProbe = &corev1.Probe{ProbeHandler: h}
	case 3:
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}}
	case 4:
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}}
	}
}

func (m *podMaker) capabilities() *corev1.Capabilities {
	some := func(words ...corev1.Capability) []corev1.Capability {
		var out []corev1.Capability
		for range m.IntN(3) {
			out = append(out, pick(m, words...))
		}
		return out
	}
	return pick(m, nil, &corev1.Capabilities{
		Add:  some("NET_BIND_SERVICE", "CHOWN", "NET_ADMIN", "SYS_TIME"),
		Drop: some("ALL", "ALL", "KILL"),
	})
}

func (m *podMaker) seccomp() *corev1.SeccompProfile {
	return pick(m, nil, &corev1.SeccompProfile{Type: "Unconfined"}, &corev1.SeccompProfile{Type: "Localhost"}, &corev1.SeccompProfile{})
}

func (m *podMaker) seLinux() *corev1.SELinuxOptions {
	return &corev1.SELinuxOptions{
		Type: pick(m, "", "container_t", "container_engine_t", "spc_t"),
		User: pick(m, "", "", "system_u"),
		Role: pick(m, "", "", "system_r"),
	}
}

func (m *podMaker) appArmor() *corev1.AppArmorProfile {
	return pick(m, nil, &corev1.AppArmorProfile{Type: "Unconfined"}, &corev1.AppArmorProfile{Type: "Localhost"}, &corev1.AppArmorProfile{})
}

func (m *podMaker) windows() *corev1.WindowsSecurityContextOptions {
	return &corev1.WindowsSecurityContextOptions{HostProcess: pick(m, nil, pointer(true), pointer(false))}
}

func (m *podMaker) user() *int64 { return pick(m, nil, pointer[int64](0), pointer[int64](1000)) }
