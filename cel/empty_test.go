package cel_test

import (
	"testing"

	"github.com/kvap/kvap/cel"
)

func TestOrEmpty(t *testing.T) {
	for in, want := range map[string]string{
		"oldObject == null || oldObject.a == 1":            "false || oldObject.a == 1",
		"null != oldObject":                                "true",
		"has(oldObject.a) && oldObject.?b.orValue(1) == 1": "has(oldObject.a) && oldObject.?b.orValue(1) == 1",
		"oldObject['a'] == oldObject[?'b'].orValue(1)":     "oldObject['a'] == oldObject[?'b'].orValue(1)",
		"size(oldObject) == 0":                             "size(oldObject == null ? {} : oldObject) == 0",
		"[1].all(oldObject, oldObject == null)":            "[1].all(oldObject, oldObject == null)",
		"object == null && request.oldObject == null":      "object == null && request.oldObject == null",
	} {
		v, err := cel.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := cel.Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.OrEmpty("oldObject"); !cel.Equal(got, wanted) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
