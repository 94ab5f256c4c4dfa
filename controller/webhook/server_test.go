package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/controller/webhook/registration"
)

func TestNotReadyBeforePolicies(t *testing.T) {
	var lacks error
	c := start(t, Options{Ready: func() error { return lacks }})
	if status, _ := c.post(t, "/validate/fail", creation(t, plain)); status != http.StatusServiceUnavailable {
		t.Errorf("a review before Set: %d", status)
	}
	if status, _ := c.post(t, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("readyz before Set: %d", status)
	}
	c.Set(PolicySet{})
	if status, text := c.post(t, "/readyz", ""); status != http.StatusOK {
		t.Errorf("readyz after Set: %d %s", status, text)
	}
	lacks = errors.New("no certificate")
	if status, text := c.post(t, "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "no certificate") {
		t.Errorf("readyz without a certificate: %d %s", status, text)
	}
}

func TestOnlyTLS13(t *testing.T) {
	c := start(t, Options{})
	c.http.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	if r, err := c.http.Get(c.url + "/healthz"); err == nil {
		r.Body.Close()
		t.Error("a client of TLS 1.2 got an answer")
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	c := start(t, Options{MaxBytes: 2000})
	c.Set(PolicySet{})
	for name, test := range map[string]struct {
		path, body string
		want       int
	}{
		"no JSON":          {"/validate/fail", "{", 400},
		"another kind":     {"/validate/fail", `{"apiVersion":"v1","kind":"Pod"}`, 400},
		"an old version":   {"/validate/fail", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}`, 400},
		"no request":       {"/validate/fail", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400},
		"no uid":           {"/validate/fail", creation(t, plain, `{"uid":""}`), 400},
		"no operation":     {"/validate/fail", creation(t, plain, `{"operation":"PATCH"}`), 400},
		"too large":        {"/validate/fail", creation(t, plain, `{"name":"`+strings.Repeat("x", 2000)+`"}`), 413},
		"an unknown place": {"/validate/fail/policy/later", creation(t, plain), 404},
		"a shared place":   {"/mutate/ignore", creation(t, plain), 200},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := c.post(t, test.path, test.body); status != test.want {
				t.Errorf("%d %s, want %d", status, text, test.want)
			}
		})
	}
	if r, err := c.http.Get(c.url + "/validate/fail"); err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v %v", r, err)
	}
	if r, err := c.http.Post(c.url+"/validate/fail", "text/plain", strings.NewReader("x")); err != nil || r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("text: %v %v", r, err)
	}
}

// What the server has begun when it is told to end is answered, and so is what
// comes in while it still takes connections.
func TestDrain(t *testing.T) {
	world := &slowWorld{begun: make(chan struct{}), goOn: make(chan struct{})}
	c := start(t, Options{World: world, Drain: 50 * time.Millisecond})
	c.Set(set(policies(t, asksForConfigMap)))
	answered := make(chan bool)
	go func() { answered <- c.ask(t, "/validate/fail", plain).Allowed }()
	<-world.begun
	ended := make(chan error)
	go func() { ended <- c.end() }()
	for c.Ready() == nil {
		time.Sleep(time.Millisecond)
	}
	close(world.goOn)
	if !<-answered {
		t.Error("denied")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A policy whose place changes answers at the old one until that is forgotten, and
// one that is gone does not.
func TestPlacesLinger(t *testing.T) {
	now := time.Unix(1000, 0)
	c := start(t, Options{Now: func() time.Time { return now }})
	fail := strings.ReplaceAll(ownerRequired, "MODE", "Fail")
	ignore := strings.ReplaceAll(ownerRequired, "MODE", "Ignore")
	c.Set(set(policies(t, fail)))
	c.Set(set(policies(t, ignore)))
	for _, path := range []string{"/validate/fail", "/validate/ignore"} {
		if c.ask(t, path, plain).Allowed {
			t.Errorf("%s admits just after the change", path)
		}
	}
	now = now.Add(2 * linger)
	if !c.ask(t, "/validate/fail", plain).Allowed {
		t.Error("the old place still denies")
	}
	if c.ask(t, "/validate/ignore", plain).Allowed {
		t.Error("the new place admits")
	}
	c.Set(PolicySet{})
	if !c.ask(t, "/validate/ignore", plain).Allowed {
		t.Error("a policy that is gone denies")
	}
}

// Where a client certificate is wanted, whoever shows none, or one of somebody else, is
// not answered, and counts for nothing.
func TestOnlyTheAPIServerAsks(t *testing.T) {
	mine, roots := selfSigned(t)
	foreign, _ := selfSigned(t)
	for _, tt := range []struct {
		name  string
		shows *tls.Certificate
		names []string
		want  int
	}{
		{"its certificate", mine, nil, http.StatusOK},
		{"its certificate and its name", mine, []string{"other", "apiserver"}, http.StatusOK},
		{"another name", mine, []string{"other"}, http.StatusForbidden},
		{"none", nil, nil, http.StatusForbidden},
		{"one that nobody vouches for", foreign, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, Options{ClientCAs: roots, ClientNames: tt.names})
			c.Set(set(policies(t, enforced(ownerRequired))))
			if tt.shows != nil {
				c.http.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					return tt.shows, nil
				}
			}
			if tt.want == 0 {
				if r, err := c.http.Get(c.url + "/healthz"); err == nil {
					r.Body.Close()
					t.Error("it is answered")
				}
				return
			}
			for _, path := range []string{"/validate/fail", "/mutate/fail", registration.ProbePath} {
				if status, text := c.post(t, path, creation(t, plain)); status != tt.want {
					t.Errorf("%s: %d %s, want %d", path, status, text, tt.want)
				}
			}
			if recorded := len(c.records) > 0; recorded != (tt.want == http.StatusOK) {
				t.Errorf("of what was asked is recorded: %v", recorded)
			}
			if status, _ := c.post(t, "/healthz", ""); status != http.StatusOK {
				t.Errorf("healthz: %d", status)
			}
		})
	}
}

// What does not compile is told after it is served, and only as long as somebody waits.
func TestBroken(t *testing.T) {
	c := start(t, Options{})
	list := policies(t, "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: broken}\nspec:\n  rules:\n"+
		"  - {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {cel: {expressions: [{expression: objct == 1}]}}}\n")
	c.Set(set(list))
	ended, end := context.WithCancel(t.Context())
	end()
	if broken := c.Broken(ended); len(broken) > 0 {
		t.Errorf("nobody waits: %v", broken)
	}
	if broken := c.Broken(t.Context()); len(broken) != 1 || broken[list[len(list)-1]] == nil {
		t.Errorf("%v", broken)
	}
}
