package incluster

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/interp"
)

// TestFormatsInACluster: rules that are judged in a cluster compare quantities as native ones do.
func TestFormatsInACluster(t *testing.T) {
	formats, err := builtinFormats()
	if err != nil {
		t.Fatal(err)
	}
	in, err := world.New(&rest.Config{Host: "127.0.0.1:1"}, world.Options{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]interp.Format{
		"spec.containers.*.resources.limits.memory": interp.Quantity,
		"spec.containers.*.image":                   interp.AnyText,
	} {
		if got := in.Format("", "v1", "Pod", strings.Split(field, ".")); got != want {
			t.Errorf("%s: %v, want %v", field, got, want)
		}
	}
}
