package apiserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/vap/apiserver"
)

func TestMerging(t *testing.T) {
	m := apiserver.NewMerging()
	for path, want := range map[string]string{
		"metadata/labels":                              "merged",
		"metadata/labels/a":                            "merged",
		"spec/containers":                              "merged name",
		"spec/containers/[]/env":                       "merged name",
		"spec/containers/[]/env/[]/value":              "merged",
		"spec/containers/[]/args":                      "atomic",
		"spec/containers/[]/ports":                     "merged containerPort protocol",
		"spec/tolerations":                             "atomic",
		"spec/nodeSelector":                            "atomic",
		"spec/nodeSelector/a":                          "atomic",
		"spec/dnsConfig/options":                       "atomic",
		"spec/containers/[]/securityContext/runAsUser": "merged",
		"spec/none":                                    "unknown",
	} {
		got := m.Of("", "v1", "Pod", strings.Split(path, "/"))
		text := "merged"
		switch {
		case !got.Known:
			text = "unknown"
		case got.Atomic:
			text = "atomic"
		}
		if keys := slices.Clone(got.Keys); text == "merged" && len(keys) > 0 {
			text += " " + strings.Join(keys, " ")
		}
		if text != want {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
	if m.Of("example.com", "v1", "Widget", nil).Known {
		t.Error("a custom kind is known")
	}
}
