package standin

import "testing"

// The stand-in's webhooks are called as those that compare and enforce know.
func TestEntryName(t *testing.T) {
	for _, tt := range []struct{ verb, name, url, want string }{
		{"validate", "validate-fail.webhook.kvap.dev", "https://a/validate/fail", "validate.kyverno.svc-fail"},
		{"mutate", "mutate-ignore.webhook.kvap.dev", "https://a/mutate/ignore", "mutate.kyverno.svc-ignore"},
		{"mutate", "mutate-fail-1a2b.webhook.kvap.dev", "https://a/mutate/fail/within/1a2b", "mutate.kyverno.svc-1a2b-fail"},
		{"validate", "validate-fail-1a2b.webhook.kvap.dev", "https://a/validate/fail/policy/shop/teams", "validate.kyverno.svc-fail-finegrained-shop-teams"},
	} {
		if got := entryName(tt.verb, tt.name, tt.url); got != tt.want {
			t.Errorf("%s at %s is called %s, want %s", tt.name, tt.url, got, tt.want)
		}
	}
}
