package interp

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func hostNamespaces(p *pod) podViolation {
	var bad []fieldError
	if p.spec.HostNetwork {
		bad = append(bad, podForbidden("hostNetwork", true))
	}
	if p.spec.HostPID {
		bad = append(bad, podForbidden("hostPID", true))
	}
	if p.spec.HostIPC {
		bad = append(bad, podForbidden("hostIPC", true))
	}
	return because("host namespaces", bad)
}

func hostPathVolumes(p *pod) podViolation {
	var bad []fieldError
	for i, v := range p.spec.Volumes {
		if v.HostPath != nil {
			bad = append(bad, podForbidden(fmt.Sprintf("volumes[%d].hostPath", i), v.HostPath.Path))
		}
	}
	return because("hostPath volumes", bad)
}

func hostPorts(p *pod) podViolation {
	var bad []fieldError
	for _, c := range p.containers() {
		for j, port := range c.Ports {
			if port.HostPort != 0 {
				bad = append(bad, fieldError{
					field:     fmt.Sprintf("%s.ports[%d].hostPort", c.path, j),
					container: c.Name, bad: int(port.HostPort),
				})
			}
		}
	}
	return because("hostPort", bad)
}

// probeHosts names no fields, so nothing can be excluded from it.
func probeHosts(p *pod) podViolation {
	for _, c := range p.containers() {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && namesHost(probe.HTTPGet, probe.TCPSocket) {
				return podViolation{reason: "probe or lifecycle host"}
			}
		}
		if c.Lifecycle == nil {
			continue
		}
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil && namesHost(h.HTTPGet, h.TCPSocket) {
				return podViolation{reason: "probe or lifecycle host"}
			}
		}
	}
	return podViolation{}
}

func namesHost(get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction) bool {
	return get != nil && get.Host != "" || socket != nil && socket.Host != ""
}

func volumeTypes(p *pod) podViolation {
	var bad []fieldError
	for i := range p.spec.Volumes {
		v := &p.spec.Volumes[i]
		if v.ConfigMap != nil || v.CSI != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.Ephemeral != nil ||
			v.Image != nil || v.PersistentVolumeClaim != nil || v.Projected != nil || v.Secret != nil {
			continue
		}
		bad = append(bad, podForbidden(fmt.Sprintf("volumes[%d].%s", i, volumeType(v)), nil))
	}
	return because("restricted volume types", bad)
}

// volumeType names the source of a volume of a restricted type.
func volumeType(v *corev1.Volume) string {
	for _, source := range []struct {
		is   bool
		name string
	}{
		{v.HostPath != nil, "hostPath"},
		{v.GCEPersistentDisk != nil, "gcePersistentDisk"},
		{v.AWSElasticBlockStore != nil, "awsElasticBlockStore"},
		{v.GitRepo != nil, "gitRepo"},
		{v.NFS != nil, "nfs"},
		{v.ISCSI != nil, "iscsi"},
		{v.Glusterfs != nil, "glusterfs"},
		{v.RBD != nil, "rbd"},
		{v.FlexVolume != nil, "flexVolume"},
		{v.Cinder != nil, "cinder"},
		{v.CephFS != nil, "cephfs"},
		{v.Flocker != nil, "flocker"},
		{v.FC != nil, "fc"},
		{v.AzureFile != nil, "azureFile"},
		{v.VsphereVolume != nil, "vsphereVolume"},
		{v.Quobyte != nil, "quobyte"},
		{v.AzureDisk != nil, "azureDisk"},
		{v.PhotonPersistentDisk != nil, "photonPersistentDisk"},
		{v.PortworxVolume != nil, "portworxVolume"},
		{v.ScaleIO != nil, "scaleIO"},
		{v.StorageOS != nil, "storageos"},
	} {
		if source.is {
			return source.name
		}
	}
	return "unknown"
}

// sysctls allows what the minor release allows.
func sysctls(minor int) func(*pod) podViolation {
	return func(p *pod) podViolation {
		var bad []fieldError
		for i, s := range p.security().Sysctls {
			if minor < sysctlSince(s.Name) {
				bad = append(bad, podForbidden(fmt.Sprintf("securityContext.sysctls[%d].name", i), s.Name))
			}
		}
		return because("forbidden sysctls", bad)
	}
}

// sysctlSince is the minor release from which a sysctl is allowed.
func sysctlSince(name string) int {
	switch name {
	case "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start":
		return 0
	case "net.ipv4.ip_local_reserved_ports":
		return 27
	case "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes":
		return 29
	case "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem":
		return 32
	}
	return 1 << 30
}

func hostProcess(p *pod) podViolation {
	var bad []fieldError
	is := func(w *corev1.WindowsSecurityContextOptions) bool {
		return w != nil && w.HostProcess != nil && *w.HostProcess
	}
	if is(p.security().WindowsOptions) {
		bad = append(bad, podForbidden("securityContext.windowsOptions.hostProcess", true))
	}
	for _, c := range p.containers() {
		if is(c.security().WindowsOptions) {
			bad = append(bad, c.forbidden("windowsOptions.hostProcess", true))
		}
	}
	return because("hostProcess", bad)
}
