package policy

import "testing"

// The ConfigMap of an entry is known where no variable decides which it is.
func TestFixedConfigMap(t *testing.T) {
	for _, tt := range []struct {
		of, name, namespace string
		want                string
	}{
		{"", "limits", "", "default/limits"},
		{"", "limits", "team", "team/limits"},
		{"", "{{ request.name }}", "team", ""},
		{"", "limits", "{{ request.namespace }}", ""},
		{"", "", "team", ""},
		{"own", "limits", "", "own/limits"},
		{"own", "limits", "own", "own/limits"},
		{"own", "limits", "team", ""},
	} {
		p := &Policy{Kind: "ClusterPolicy"}
		if tt.of != "" {
			p = &Policy{Kind: "Policy", Namespace: tt.of}
		}
		namespace, name, ok := (&ConfigMapEntry{Name: Text{Value: tt.name}, Namespace: Text{Value: tt.namespace}}).Fixed(p)
		if got := namespace + "/" + name; ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s/%s of %q: %s, %t", tt.namespace, tt.name, tt.of, got, ok)
		}
	}
}
