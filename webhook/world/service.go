package world

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/kvap/kvap/interp"
)

// Service asks a service, if the list of services allows it.
func (w *World) Service(ctx context.Context, call interp.ServiceCall) (none interp.ServiceAnswer, err error) {
	if !w.allowed(call.URL) {
		return none, fmt.Errorf("the service %q is not allowed; name it with --apicall-services", call.URL)
	}
	if call.Method != http.MethodGet && call.Method != http.MethodPost {
		return none, fmt.Errorf("a service is asked with GET or POST, not %s", call.Method)
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, call.Method, call.URL, bytes.NewReader(call.Data))
	if err != nil {
		return none, err
	}
	if call.Data != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for key, value := range call.Headers {
		request.Header.Set(key, value)
	}
	if request.Header.Get("Authorization") == "" && w.options.TokenFile != "" {
		if token, err := os.ReadFile(w.options.TokenFile); err == nil {
			request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
	}
	client, err := w.serviceClient(call.CABundle)
	if err != nil {
		return none, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return none, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read, or is not wanted
	answer, err := readAll(response.Body, w.options.MaxBytes)
	if err != nil {
		return none, err
	}
	return interp.ServiceAnswer{Status: response.StatusCode, Body: answer}, nil
}

// allowed tells whether a URL is below one of the list. A path with escapes or dots
// may mean another one, and a user in front of the host may look like a host.
func (w *World) allowed(text string) bool {
	to, err := url.Parse(text)
	if err != nil || to.User != nil || to.Opaque != "" || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return false
	}
	if strings.Contains(to.EscapedPath(), "%") || to.Path != "" && path.Clean(to.Path) != strings.TrimSuffix(to.Path, "/") && to.Path != "/" {
		return false
	}
	for _, entry := range w.options.Services {
		base, err := url.Parse(entry)
		if err != nil || base.Scheme != to.Scheme || !strings.EqualFold(base.Host, to.Host) {
			continue
		}
		prefix := strings.TrimSuffix(base.Path, "/")
		if to.Path == prefix || strings.HasPrefix(to.Path, prefix+"/") {
			return true
		}
	}
	return false
}

// maxRedirects is how often a service may send elsewhere.
const maxRedirects = 5

// serviceClient trusts the bundle, or the system where there is none, and follows
// redirects to what is allowed.
func (w *World) serviceClient(bundle string) (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if bundle != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(bundle)) {
			return nil, errors.New("the caBundle of the service has no certificate")
		}
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: trust, ResponseHeaderTimeout: w.options.Timeout},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) >= maxRedirects:
				return errors.New("the service redirects too often")
			case !w.allowed(r.URL.String()):
				return fmt.Errorf("the service redirects to %q, which is not allowed", r.URL.Redacted())
			}
			return nil
		},
	}, nil
}
