package controlplane

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// freePorts asks the kernel for ports. All are held until all are found, so that
// they differ.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free port: %w", err)
		}
		defer l.Close() //nolint:errcheck // a listener that nobody has connected to
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func etcdFlags(dir, client, peer string) []string {
	return []string{
		"--name=one", "--data-dir=" + filepath.Join(dir, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=one=" + peer,
		"--unsafe-no-fsync", // the data outlives no crash anyway
		"--log-level=warn",
	}
}

func apiServerFlags(dir, audit string, port int, etcd string) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + filepath.Join(dir, certFolder), // the server signs a certificate of its own there
		"--token-auth-file=" + filepath.Join(dir, tokenFile), "--anonymous-auth=false",
		"--authorization-mode=RBAC", // by default all is allowed, and so says the authorizer of CEL
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + filepath.Join(dir, keyFile),
		"--service-account-key-file=" + filepath.Join(dir, keyFile),
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount", // nothing makes the default account of a namespace
		"--allow-privileged=true",
		"--audit-policy-file=" + filepath.Join(dir, auditFile),
		"--audit-log-path=" + audit, "--audit-log-mode=blocking",
	}
}

func controllerManagerFlags(dir string, more []string) []string {
	running := append([]string{"validatingadmissionpolicy-status-controller", "namespace-controller", "garbage-collector-controller"}, more...)
	return []string{
		"--kubeconfig=" + filepath.Join(dir, controllers+".kubeconfig"),
		"--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000", // nobody else is to be spared
		"--controllers=" + strings.Join(running, ","),
	}
}
