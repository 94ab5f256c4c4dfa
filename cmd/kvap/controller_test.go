package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// The limit of a namespace is the one that was asked for, and there is one by default.
func TestNamespaceLimitFlag(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      int
	}{{nil, 100}, {[]string{"--namespace-limit", "7"}, 7}, {[]string{"--namespace-limit=0"}, 0}} {
		var f controllerFlags
		flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse(test.arguments); err != nil {
			t.Fatal(err)
		}
		o, err := f.options()
		if err != nil || o.NamespaceLimit != test.want {
			t.Errorf("%v: %d, %v, want %d", test.arguments, o.NamespaceLimit, err, test.want)
		}
	}
}
