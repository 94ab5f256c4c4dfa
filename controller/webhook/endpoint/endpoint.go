package endpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/controller/webhook/certs"
)

// An Endpoint is where a webhook listens, and what the API server calls it.
type Endpoint struct {
	Address string // "" or 0 for nowhere
	Service string // as name or namespace/name, with the port 443
	URL     string // in place of a service
}

// A CertificateSource is what the webhook shows, and what to trust it by.
type CertificateSource interface {
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Bundle() []byte
	Changed() <-chan struct{}
	// Ready tells why nothing can be shown.
	Ready() error
	// Trusted tells why API servers refuse what is shown, as before they were told of its
	// authority.
	Trusted() error
}

// Enabled tells that it listens at all.
func (e Endpoint) Enabled() bool { return e.Address != "" && e.Address != "0" }

// Check tells what is wrong with it, by the flags that say so.
func (e Endpoint) Check() error {
	if (e.Service == "") == (e.URL == "") {
		return errors.New("--webhook-address needs --webhook-service or --webhook-url, so that the API server finds the webhook")
	}
	if e.URL != "" {
		to, err := url.Parse(e.URL)
		if err != nil || to.Scheme != "https" || to.Host == "" || to.Path != "" && to.Path != "/" {
			return fmt.Errorf("--webhook-url %s: want https://HOST:PORT", e.URL)
		}
	}
	return nil
}

// At is the endpoint with the URL of a listener, where nothing else is said.
func (e Endpoint) At(l net.Listener) Endpoint {
	if e.Service == "" && e.URL == "" {
		e.URL = "https://" + l.Addr().String()
	}
	return e
}

// Names are what the API server calls the webhook by. The namespace is that of a service
// which names none.
func (e Endpoint) Names(namespace string) certs.Names {
	if s := e.Reference(namespace); s != nil {
		full := s.Name + "." + s.Namespace + ".svc"
		return certs.Names{DNS: []string{full, full + ".cluster.local", s.Name + "." + s.Namespace}}
	}
	to, _ := url.Parse(e.URL) // checked
	if ip := net.ParseIP(to.Hostname()); ip != nil {
		return certs.Names{IPs: []net.IP{ip}}
	}
	return certs.Names{DNS: []string{to.Hostname()}}
}

// Reference is the service; nil where there is a URL.
func (e Endpoint) Reference(namespace string) *admissionregistrationv1.ServiceReference {
	if e.Service == "" {
		return nil
	}
	in, name, found := strings.Cut(e.Service, "/")
	if !found {
		in, name = namespace, e.Service
	}
	return &admissionregistrationv1.ServiceReference{Namespace: in, Name: name}
}

// Base is the URL without a slash at its end.
func (e Endpoint) Base() string { return strings.TrimSuffix(e.URL, "/") }
