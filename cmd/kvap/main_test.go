package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts from current output")

// program is for one that is built for another system, as for Windows, behind a script that
// runs it under wine.
var program = flag.String("program", "", "a folder with the kvap that the scripts run, in the place of the one under test")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kvap": main, "kubectl-kvap": main})
}

// Each script is a promise of the command line.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"GOGC", "GOMEMLIMIT"} { // some four hundred programs that live for a moment
				env.Setenv(name, os.Getenv(name))
			}
			if *program != "" {
				env.Setenv("PATH", *program+string(filepath.ListSeparator)+env.Getenv("PATH"))
			}
			images, err := filepath.Abs("internal/suite/testdata/images") // a folder of a registry, and policies about it
			env.Setenv("IMAGES", images)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode,
			"pad":      pad,
			"inert":    inert,
			"many":     many,
		},
	})
}

// exitCode CODE PROGRAM ARGS... is exec, for a program that ends with that code.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// pad FILE SIZE makes a file so large by adding comments to it.
func pad(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	line := []byte("# all work and no play\n")
	data = append(data, bytes.Repeat(line, (size-len(data))/len(line)+1)...)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// inert FILE checks that a text neither steers a terminal nor commands the log of a
// build, whose runner trims lines.
func inert(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: inert FILE")
	}
	text := ts.ReadFile(args[0])
	if text == "" {
		ts.Fatalf("%s is empty", args[0])
	}
	for line := range strings.Lines(text) {
		command := strings.HasPrefix(strings.TrimSpace(line), "::") && !strings.HasPrefix(line, "::error file=") && !strings.HasPrefix(line, "::warning file=")
		if command || strings.ContainsAny(line, "\x1b\x07\u202e") || strings.Contains(line, "##[") {
			ts.Fatalf("%s: %q", args[0], line)
		}
	}
}

// many N makes N policies, each in a file of the folder policies.
func many(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		text := strings.ReplaceAll(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pN}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {owner: "?*"}}}
`, "pN", "p"+strconv.Itoa(i+1))
		ts.Check(os.WriteFile(ts.MkAbs("policies/p"+strconv.Itoa(i+1)+".yaml"), []byte(text), 0o644))
	}
}
