package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
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

// Without a cluster it says where one is looked for, and a word it does not take is named.
func TestRun(t *testing.T) {
	t.Setenv("KUBECONFIG", "nowhere")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exit.CodeRuntime, "kvap-controller: no cluster is configured: KUBECONFIG is nowhere, which is not there, or names none"},
		{[]string{"--mode", "loud"}, exit.CodeUsage, "--mode loud: want one of shadow, enforce, off"},
		{[]string{"--mdoe", "off"}, exit.CodeUsage, "unknown flag: --mdoe; did you mean --mode?"},
		{[]string{"--report-results", "pass,fine"}, exit.CodeUsage, "--report-results fine: want some of error, warn, pass, skip, or none"},
		{[]string{"--omit-events", "PolicyApplied,Normal"}, exit.CodeUsage, "--omit-events Normal: want some of PolicyViolation, PolicyError, PolicyApplied, PolicySkipped, kvap-admission, kvap-scan, kvap-generate, kvap-mutate"},
		{[]string{"policies"}, exit.CodeUsage, `kvap-controller takes no argument, and got "policies"`},
	} {
		var errs bytes.Buffer
		if code := command.Run(newRoot(), c.args, nil, io.Discard, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errs.String())
		}
	}
}
