package background

import (
	"context"
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What a rule needs and may not do is named, with the namespace where its text tells.
func TestMissing(t *testing.T) {
	b := start(t, copies)
	var asked []string
	got, err := b.Missing(t.Context(), func(_ context.Context, verb string, k v1alpha1.KindReference, namespace string) (bool, error) {
		asked = append(asked, verb+" "+k.Kind+" "+namespace)
		return verb != "watch" && (verb != "patch" || namespace != "default"), nil
	})
	if err != nil || len(got) != 1 || got[0].Policy.Name != "copies" {
		t.Fatalf("%v: %v", got, err)
	}
	for _, part := range []string{"rule secret", "watch v1/Secret, nor", "patch v1/Secret in the namespace default", "rbac.kvap.dev/aggregate-to-controller"} {
		if !strings.Contains(got[0].Message, part) {
			t.Errorf("%q lacks %q", got[0].Message, part)
		}
	}
	if len(asked) != 8 {
		t.Errorf("asked %v", asked)
	}
}
