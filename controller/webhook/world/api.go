package world

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/interp"
)

// dryRun is the key of a context of requests that are dry runs.
type dryRun struct{}

// DryRun is the context of a request that is a dry run: what is POSTed for it to the
// API server is one as well. What is POSTed to services is sent all the same, as
// Kyverno does: they are asked for an answer.
func DryRun(ctx context.Context) context.Context { return context.WithValue(ctx, dryRun{}, true) }

// dry is a path for a POST that leaves nothing behind where the request is a dry run.
func dry(ctx context.Context, path string) string {
	switch {
	case ctx.Value(dryRun{}) == nil:
		return path
	case strings.Contains(path, "?"):
		return path + "&dryRun=All"
	}
	return path + "?dryRun=All"
}

// API asks the API server for a path; data, if not nil, is POSTed.
func (w *World) API(ctx context.Context, path string, data []byte) ([]byte, error) {
	if err := lawful(path); err != nil {
		return nil, err
	}
	if data != nil {
		return w.ask(ctx, http.MethodPost, dry(ctx, path), data)
	}
	at, plain := placeOf(path)
	plain = plain && !w.options.Live
	if plain {
		if answer, ok := w.watches.answer(at); ok {
			w.options.Called(ByMemory)
			return answer, nil
		}
	}
	w.options.Called(ByServer)
	answer, err := w.ask(ctx, http.MethodGet, path, nil)
	if err == nil && plain {
		w.watches.consider(at, answer)
	}
	return answer, err
}

// lawful refuses what is not a path of the API server's data: escapes and dots, which
// may mean another path to whoever reads it next, and connections into pods,
// services and nodes, which answer with what runs there.
func lawful(path string) error {
	at, _, _ := strings.Cut(path, "?")
	if !strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//") {
		return fmt.Errorf("%q is no path of the API server", path)
	}
	if strings.ContainsAny(at, "%\\#;\r\n\t ") || strings.ContainsAny(path, "\r\n#") {
		return fmt.Errorf("the path %q has characters that no path of the API server needs", path)
	}
	segments := strings.Split(strings.Trim(at, "/"), "/")
	for _, s := range segments {
		if s == ".." || s == "." {
			return fmt.Errorf("the path %q has dots in place of a name", path)
		}
	}
	if r, ok := resourcePath(segments); ok && slices.Contains([]string{"proxy", "exec", "attach", "portforward"}, r.subresource) {
		return fmt.Errorf("the path %q leads into what runs in the cluster; rules cannot ask there", path)
	}
	if len(segments) > 2 && segments[0] == "api" && slices.Contains([]string{"proxy", "watch"}, segments[2]) {
		return fmt.Errorf("the path %q is no get and no list", path)
	}
	return nil
}

// An apiPath is an object, or objects, of the API server.
type apiPath struct {
	resource        schema.GroupVersionResource
	namespace, name string
	subresource     string
}

// resourcePath reads /api/v1/… and /apis/group/version/….
func resourcePath(segments []string) (apiPath, bool) {
	var p apiPath
	switch {
	case len(segments) >= 3 && segments[0] == "api":
		p.resource.Version, segments = segments[1], segments[2:]
	case len(segments) >= 4 && segments[0] == "apis":
		p.resource.Group, p.resource.Version, segments = segments[1], segments[2], segments[3:]
	default:
		return apiPath{}, false
	}
	if segments[0] == "namespaces" && len(segments) > 2 {
		p.namespace, segments = segments[1], segments[2:]
	}
	p.resource.Resource = segments[0]
	if len(segments) > 1 {
		p.name = segments[1]
	}
	if len(segments) > 2 {
		p.subresource = segments[2]
	}
	return p, true
}

// placeOf is what a plain get or list is about: no query, no subresource.
func placeOf(path string) (apiPath, bool) {
	p, ok := resourcePath(strings.Split(strings.Trim(path, "/"), "/"))
	if strings.Contains(path, "?") || p.subresource != "" {
		return apiPath{}, false
	}
	return p, ok
}

// path is where objects of a resource are.
func (p apiPath) path(namespace, name string) string {
	path := "/api/" + p.resource.Version
	if p.resource.Group != "" {
		path = "/apis/" + p.resource.Group + "/" + p.resource.Version
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + p.resource.Resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// object is what a path has.
func (w *World) object(ctx context.Context, path string) (map[string]any, error) {
	answer, err := w.API(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := kjson.Unmarshal(answer, &object); err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", path, err)
	}
	return object, nil
}

// A statusError is what the API server says when it does not answer.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

// Is tells that what is asked for does not exist.
func (e *statusError) Is(target error) bool {
	return target == interp.ErrNotFound && e.code == http.StatusNotFound
}

// ask asks the API server itself.
func (w *World) ask(ctx context.Context, method, path string, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	to, err := url.Parse(strings.TrimSuffix(w.base.String(), "/") + path)
	if err != nil {
		return nil, fmt.Errorf("%q is no path: %w", path, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if data != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := w.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("failed to %s resource with raw url: %s: %w", method, path, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read, or is not wanted
	answer, err := readAll(response.Body, w.options.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("failed to %s resource with raw url: %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, &statusError{response.StatusCode, fmt.Sprintf("failed to %s resource with raw url: %s: %s", method, path, reason(response.StatusCode, answer))}
	}
	return answer, nil
}

// reason is the API server's own, as far as it gives one.
func reason(code int, answer []byte) string {
	text := http.StatusText(code)
	var status metav1.Status
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		text = status.Message
	}
	if code == http.StatusForbidden || code == http.StatusUnauthorized {
		return "permission denied: " + text
	}
	return text
}

// readAll reads at most limit bytes, and errs if there are more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return data, err
}

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
