package interp

import "testing"

// A policy of a namespace stays in it, whatever its variables hold.
func TestInNamespace(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/shop/secrets":                            true,
		"/api/v1/namespaces/shop/secrets?limit=1":                    true,
		"/api/v1/namespaces/shop":                                    true,
		"/apis/apps/v1/namespaces/shop/deployments/web":              true,
		"/apis/apps/v1/namespaces/shop/deployments/":                 true,
		"/api/v1/namespaces/shopping/secrets":                        false,
		"/api/v1/namespaces/other/secrets":                           false,
		"/api/v1/namespaces/other/secrets?x=/namespaces/shop/":       false,
		"/api/v1/namespaces/other/services/a/proxy/namespaces/shop/": false,
		"/api/v1/namespaces/shop/../other/secrets":                   false,
		"/api/v1/namespaces/shop/%2e%2e/other/secrets":               false,
		"/api/v1/namespaces/shop%2f..%2fother/secrets":               false,
		"/api/v1/namespaces/shop//secrets":                           false,
		"/api/v1/secrets":                                            false,
		"/apis/namespaces/shop":                                      false,
		"/apis/a/namespaces/shop/x":                                  false,
		"api/v1/namespaces/shop":                                     false,
		"/version":                                                   false,
		"":                                                           false,
	} {
		if got := inNamespace(path, "shop"); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
