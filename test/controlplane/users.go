package controlplane

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// A User is somebody whom the API server knows by a token.
type User struct {
	Name   string
	Groups []string

	token string
	file  string // of the kubeconfig, without its ending
}

const (
	// Admin may do everything.
	Admin = "admin"
	// Plain is a user whom RBAC grants nothing but what every user may; the groups
	// are dev and qa.
	Plain = "alice"
	// controllers is the file name for kube-controller-manager's user.
	controllers = "controllers"

	controllerUser = "system:kube-controller-manager"
)

// Files of the data folder, and the folder of the server's certificate.
const (
	tokenFile  = "tokens.csv"
	keyFile    = "serviceaccount.key"
	auditFile  = "audit-policy.yaml"
	certFolder = "certs"
)

// withTokens are the users that always exist and those given, each with a token.
func withTokens(given []User) []User {
	users := slices.Concat([]User{
		{Name: Admin, Groups: []string{"system:masters"}},
		{Name: Plain, Groups: []string{"dev", "qa"}},
		{Name: controllerUser, file: controllers},
	}, given)
	for i := range users {
		users[i].token = rand.Text()
		if users[i].file == "" {
			users[i].file = users[i].Name
		}
	}
	return users
}

// Kubeconfig is the file with which clients act as the user; it is empty for a
// user who does not exist.
func (c *ControlPlane) Kubeconfig(user string) string {
	u, ok := c.user(user)
	if !ok {
		return ""
	}
	return filepath.Join(c.dir, u.file+".kubeconfig")
}

// Config lets client-go act as the user, without a limit on its rate; it is nil
// for a user who does not exist.
func (c *ControlPlane) Config(user string) *rest.Config {
	u, ok := c.user(user)
	if !ok {
		return nil
	}
	return &rest.Config{
		Host:            c.url,
		BearerToken:     u.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.certificate()},
		QPS:             -1,
	}
}

func (c *ControlPlane) user(name string) (User, bool) {
	i := slices.IndexFunc(c.users, func(u User) bool { return u.Name == name })
	if i < 0 {
		return User{}, false
	}
	return c.users[i], true
}

// certificate is what the API server signs for itself.
func (c *ControlPlane) certificate() string {
	return filepath.Join(c.dir, certFolder, "apiserver.crt")
}

// writeFiles writes what the servers and the clients read.
func (c *ControlPlane) writeFiles() error {
	key, err := signingKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{keyFile: key, auditFile: []byte(auditPolicy)}
	var tokens strings.Builder
	for _, u := range c.users {
		fmt.Fprintf(&tokens, "%s,%s,uid-%s", u.token, u.Name, u.Name)
		if len(u.Groups) > 0 {
			fmt.Fprintf(&tokens, ",%q", strings.Join(u.Groups, ","))
		}
		tokens.WriteString("\n")
		files[u.file+".kubeconfig"] = []byte(c.kubeconfig(u))
	}
	files[tokenFile] = []byte(tokens.String())
	for _, folder := range []string{"logs", "etcd", certFolder} {
		if err := os.MkdirAll(filepath.Join(c.dir, folder), 0o700); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// auditPolicy keeps who asked for what, and with which response; of the control
// plane's own requests only those that write.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver", "` + controllerUser + `"]
  verbs: [get, list, watch]
- level: None
  nonResourceURLs: ["/readyz", "/openapi*"]
- level: Metadata
`

func (c *ControlPlane) kubeconfig(u User) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: kvap
clusters:
- name: kvap
  cluster: {server: %q, certificate-authority: %q}
users:
- name: %[3]q
  user: {token: %q}
contexts:
- name: kvap
  context: {cluster: kvap, user: %[3]q}
`, c.url, c.certificate(), u.Name, u.token)
}

// signingKey is for the tokens of service accounts.
func signingKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}
