package translate_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A podMaker makes pods that pass the restricted level but for a few places.
type podMaker struct {
	*rand.Rand
	annotations bool // also those that came before fields
}

func pick[T any](m *podMaker, vs ...T) T { return vs[m.IntN(len(vs))] }

func pointer[T any](v T) *T { return &v }

// maybe is a value one time in n, else nil.
func maybe[T any](m *podMaker, n int, v T) *T {
	if m.IntN(n) > 0 {
		return nil
	}
	return &v
}

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
	for range pick(m, 0, 0, 1, 1, 2, 3, 5) {
		m.spoil(p)
	}
	return p
}

func (m *podMaker) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(m, "nginx", "nginx:1.27", "ghcr.io/acme/tool", "redis", "")}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: pointer(false),
		RunAsNonRoot:             pointer(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: "RuntimeDefault"},
	}
	return c
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

// spoil changes one place of a pod, mostly for the worse.
func (m *podMaker) spoil(p *corev1.Pod) {
	switch m.IntN(5) {
	case 0:
		m.spoilPod(&p.Spec)
	case 1:
		if p.Spec.SecurityContext == nil {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		m.spoilPodContext(p.Spec.SecurityContext)
	case 2:
		m.spoilContainer(m.aContainer(p))
	default:
		c := m.aContainer(p)
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		m.spoilContext(c.SecurityContext)
	}
	if m.annotations && m.IntN(4) == 0 {
		m.annotate(p)
	}
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

func (m *podMaker) spoilPod(s *corev1.PodSpec) {
	switch m.IntN(6) {
	case 0:
		s.HostNetwork = true
	case 1:
		s.HostPID = true
	case 2:
		s.HostIPC = true
	case 3:
		s.OS = &corev1.PodOS{Name: pick(m, corev1.Windows, corev1.Linux)}
	default:
		for i := range 1 + m.IntN(2) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(s.Volumes)+i), VolumeSource: m.volume()})
		}
	}
}

func (m *podMaker) volume() corev1.VolumeSource {
	switch m.IntN(6) {
	case 0:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: pointer(resource.MustParse("1Gi"))}}
	case 1:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}
	case 2:
		return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "iqn"}}
	case 3:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}
	}
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: pick(m, "/var/log", "/var/run", "/etc")}}
}

func (m *podMaker) spoilPodContext(c *corev1.PodSecurityContext) {
	switch m.IntN(8) {
	case 0:
		c.RunAsNonRoot = pick(m, nil, pointer(false), pointer(true))
	case 1:
		c.RunAsUser = pick(m, nil, pointer[int64](0), pointer[int64](1000))
	case 2, 3:
		c.SeccompProfile = m.seccomp()
	case 4:
		c.SELinuxOptions = m.seLinux()
	case 5:
		c.AppArmorProfile = m.appArmor()
	case 6:
		c.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: maybe(m, 2, m.IntN(2) == 0)}
	case 7:
		for range 1 + m.IntN(3) {
			c.Sysctls = append(c.Sysctls, corev1.Sysctl{Name: pick(m, "kernel.shm_rmid_forced", "kernel.msgmax", "net.core.somaxconn",
				"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem")})
		}
	}
}

func (m *podMaker) spoilContainer(c *corev1.Container) {
	switch m.IntN(4) {
	case 0:
		c.SecurityContext = nil
	case 1:
		for range 1 + m.IntN(3) {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: pick[int32](m, 0, 80, 8080, 9090)})
		}
	case 2:
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler(m.handler())}
		switch m.IntN(3) {
		case 0:
			c.LivenessProbe = probe
		case 1:
			c.ReadinessProbe = probe
		default:
			c.StartupProbe = probe
		}
	case 3:
		h := m.handler()
		l := &corev1.Lifecycle{}
		if m.IntN(2) == 0 {
			l.PostStart = &corev1.LifecycleHandler{HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}
		} else {
			l.PreStop = &corev1.LifecycleHandler{HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}
		}
		c.Lifecycle = l
	}
}

func (m *podMaker) handler() corev1.ProbeHandler {
	host := pick(m, "", "127.0.0.1")
	if m.IntN(2) == 0 {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: host}}
	}
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host}}
}

func (m *podMaker) spoilContext(c *corev1.SecurityContext) {
	switch m.IntN(11) {
	case 0:
		c.Privileged = pick(m, nil, pointer(false), pointer(true))
	case 1:
		c.ProcMount = pick(m, nil, pointer(corev1.DefaultProcMount), pointer(corev1.UnmaskedProcMount))
	case 2, 3:
		c.Capabilities = m.capabilities()
	case 4, 5:
		c.SeccompProfile = m.seccomp()
	case 6:
		c.SELinuxOptions = m.seLinux()
	case 7:
		c.AppArmorProfile = m.appArmor()
	case 8:
		c.RunAsNonRoot = pick(m, nil, nil, pointer(false))
	case 9:
		c.RunAsUser = pick(m, nil, pointer[int64](0), pointer[int64](1000))
	case 10:
		switch m.IntN(2) {
		case 0:
			c.AllowPrivilegeEscalation = pick(m, nil, pointer(true))
		default:
			c.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: maybe(m, 2, m.IntN(2) == 0)}
		}
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
