package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
)

func TestResources(t *testing.T) {
	for _, c := range []struct {
		group, version, kind string
		want                 []string
	}{
		{"*", "*", "Pod", []string{"v1 Pod pods namespaced"}},
		{"", "*", "Pod", []string{"v1 Pod pods namespaced"}},
		{"*", "*", "Deployment", []string{"apps/v1 Deployment deployments namespaced"}},
		{"apps", "v1", "Deployment", []string{"apps/v1 Deployment deployments namespaced"}},
		{"a?ps", "v?", "Deploy*", []string{"apps/v1 Deployment deployments namespaced"}},
		{"*", "*", "CronJob", []string{"batch/v1 CronJob cronjobs namespaced"}},
		{"*", "*", "Ingress", []string{"networking.k8s.io/v1 Ingress ingresses namespaced"}},
		{"*", "*", "PersistentVolumeClaim", []string{"v1 PersistentVolumeClaim persistentvolumeclaims namespaced"}},
		{"*", "*", "PersistentVolume", []string{"v1 PersistentVolume persistentvolumes cluster"}},
		{"*", "*", "HorizontalPodAutoscaler", []string{
			"autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced",
			"autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced",
		}},
		{"*", "*", "Event", []string{"v1 Event events namespaced", "events.k8s.io/v1 Event events namespaced"}},
		{"*", "*", "Endpoints", []string{"v1 Endpoints endpoints namespaced"}},
		{"*", "*", "Namespace", []string{"v1 Namespace namespaces cluster"}},
		{"*", "*", "TokenReview", []string{"authentication.k8s.io/v1 TokenReview tokenreviews cluster"}},
		{"*", "*", "Binding", []string{"v1 Binding bindings namespaced"}},
		{"*", "*", "*Role", []string{
			"rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster",
			"rbac.authorization.k8s.io/v1 Role roles namespaced",
		}},
		// not known: guessed, with group and version as they came
		{"*", "*", "Gateway", []string{"*/* Gateway gateways namespaced guessed"}},
		{"example.com", "v1", "NetworkPolicy", []string{"example.com/v1 NetworkPolicy networkpolicies namespaced guessed"}},
		{"*", "v1beta1", "Deployment", []string{"*/v1beta1 Deployment deployments namespaced guessed"}},
		{"core", "*", "Pod", []string{"core/* Pod pods namespaced guessed"}},
		{"*", "*", "pod", []string{"*/* pod pods namespaced guessed"}},
		{"*", "*", "No*", []string{"v1 Node nodes cluster"}},
		{"*", "*", "Nothing*", nil},
		{"*", "*", "", nil},
	} {
		got := summaries(builtin(t, "1.34").Resources(c.group, c.version, c.kind))
		if d := textdiff.Values(c.want, got); d != "" {
			t.Errorf("Resources(%q, %q, %q) (-want +got):\n%s", c.group, c.version, c.kind, d)
		}
	}
}

func summaries(rs []schema.Resource) (out []string) {
	for _, r := range rs {
		text := fmt.Sprintf("%s %s cluster", r.GVK, r.Plural)
		if r.Namespaced {
			text = fmt.Sprintf("%s %s namespaced", r.GVK, r.Plural)
		}
		if r.Guessed {
			text += " guessed"
		}
		out = append(out, text)
	}
	return out
}

func TestResourcesAreSorted(t *testing.T) {
	for _, release := range schema.Releases() {
		all := builtin(t, release).Resources("*", "*", "*")
		if !slices.IsSortedFunc(all, func(a, b schema.Resource) int { return a.GVK.Compare(b.GVK) }) {
			t.Errorf("%s: the resources are not in order", release)
		}
		if len(all) < 60 {
			t.Errorf("%s: only %d resources", release, len(all))
		}
		for _, r := range all {
			if !strings.HasPrefix(strings.ToLower(r.Kind), r.Plural[:1]) || r.Version == "" {
				t.Errorf("%s: a resource is odd: %+v", release, r)
			}
		}
	}
}

func TestSubresources(t *testing.T) {
	s := builtin(t, "1.36")
	for _, c := range []struct{ resource, want string }{
		{"v1 pods/exec", "v1 PodExecOptions"},
		{"v1 pods/attach", "v1 PodAttachOptions"},
		{"v1 pods/portforward", "v1 PodPortForwardOptions"},
		{"v1 pods/proxy", "v1 PodProxyOptions"},
		{"v1 pods/binding", "v1 Binding"},
		{"v1 pods/eviction", "policy/v1 Eviction"},
		{"v1 pods/ephemeralcontainers", "v1 Pod"},
		{"v1 pods/log", "v1 Pod"},
		{"v1 pods/status", "v1 Pod"},
		{"v1 pods/resize", "v1 Pod"},
		{"v1 namespaces/finalize", "v1 Namespace"},
		{"v1 nodes/proxy", "v1 NodeProxyOptions"},
		{"v1 services/proxy", "v1 ServiceProxyOptions"},
		{"v1 serviceaccounts/token", "authentication.k8s.io/v1 TokenRequest"},
		{"v1 replicationcontrollers/scale", "autoscaling/v1 Scale"},
		{"apps/v1 deployments/scale", "autoscaling/v1 Scale"},
		{"apps/v1 deployments/status", "apps/v1 Deployment"},
		{"certificates.k8s.io/v1 certificatesigningrequests/approval", "certificates.k8s.io/v1 CertificateSigningRequest"},
		{"v1 pods/nothing", "none"},
		{"v1 deployments/scale", "none"},
	} {
		place := gvk(c.resource) // the resource stands where a kind would
		got := "none"
		if r, ok := s.ByResource(place.Group, place.Version, place.Kind); ok {
			_, name, _ := strings.Cut(place.Kind, "/")
			if sub, ok := r.Subresource(name); ok {
				got = sub.GVK.String()
			}
		}
		if got != c.want {
			t.Errorf("the body of %s is %s, want %s", c.resource, got, c.want)
		}
	}
}

func TestByKind(t *testing.T) {
	s := builtin(t, "1.36")
	for _, r := range s.Resources("*", "*", "*") {
		if got, ok := s.ByKind(r.GVK); !ok || got.Plural != r.Plural {
			t.Errorf("ByKind(%s) is %v", r.GVK, got)
		}
		if got, ok := s.ByResource(r.Group, r.Version, r.Plural); !ok || got.GVK != r.GVK {
			t.Errorf("ByResource(%s, %s, %s) is %v", r.Group, r.Version, r.Plural, got)
		}
	}
	if got, ok := s.ByKind(gvk("v2 Pod")); ok {
		t.Errorf("there is a v2 Pod: %v", got)
	}
}

// TestCallersMayWrite: a result is the caller's own.
func TestCallersMayWrite(t *testing.T) {
	s := builtin(t, "1.36")
	r, _ := s.ByResource("", "v1", "pods")
	r.Subresources[0].Name = "changed"
	if again, _ := s.ByResource("", "v1", "pods"); again.Subresources[0].Name == "changed" {
		t.Error("the set has changed")
	}
}

func TestPlurals(t *testing.T) {
	s := builtin(t, "1.36")
	for kind, want := range map[string]string{
		"Kafka": "kafkas", "Gateway": "gateways", "Policy": "policies", "Ingress": "ingresses",
		"Switch": "switches", "Mesh": "meshes", "Index": "indexes", "Y": "ys", "VirtualService": "virtualservices",
	} {
		if got := s.Resources("example.com", "v1", kind)[0].Plural; got != want {
			t.Errorf("the plural of %s is %s, want %s", kind, got, want)
		}
	}
	// The rule gives the right plural for every built-in kind but one.
	for _, r := range s.Resources("*", "*", "*") {
		got := s.Resources("example.com", "v1", r.Kind)[0].Plural
		if got != r.Plural && r.Kind != "Endpoints" {
			t.Errorf("the plural of %s is guessed as %s, is %s", r.Kind, got, r.Plural)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"*", "Pod"}, {"P?d", "Pod"}, {"*o*", "Pod"}, {"", ""}, {"**a?*", "aab"}, {"?", "é"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 20 || len(text) > 20 {
			return
		}
		if got, want := schema.MatchPattern(pattern, text), matchSlowly([]rune(pattern), []rune(text)); got != want {
			t.Errorf("pattern %q, text %q: %t, want %t", pattern, text, got, want)
		}
	})
}

// matchSlowly is the definition of a match, word for word.
func matchSlowly(pattern, text []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(text) == 0
	case pattern[0] == '*':
		return matchSlowly(pattern[1:], text) || len(text) > 0 && matchSlowly(pattern, text[1:])
	case len(text) == 0:
		return false
	}
	return (pattern[0] == '?' || pattern[0] == text[0]) && matchSlowly(pattern[1:], text[1:])
}
