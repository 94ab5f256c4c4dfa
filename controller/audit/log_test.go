package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// A log is followed from its end on, over rotation and what is no event, and each line is told once.
func TestLog(t *testing.T) {
	denial := func(name string) string {
		return string(anEvent(t, answered(422, `pods "web" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'b' denied request: words`),
			with("objectRef", map[string]any{"apiVersion": "v1", "resource": "pods", "namespace": "shop", "name": name}))) + "\n"
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.log")
	registry := prometheus.NewRegistry()
	var got, created []string
	begin := func() *Log {
		l, err := New(Options{
			File: file, Natives: natives(), Register: registry, Log: logr.Discard(),
			Tell: func(d Decision) { got = append(got, d.Object.Name) },
			Created: func(_ context.Context, request map[string]any) {
				created = append(created, fmt.Sprint(request["operation"], " ", request["namespace"], "/", request["name"], " ", request["userInfo"]))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	write := func(text string) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func(l *Log, want ...string) {
		t.Helper()
		got = nil
		if err := l.look(t.Context()); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	early := begin()
	if err := early.look(t.Context()); err == nil {
		t.Error("a file that is not there is read")
	}
	write(denial("a"))
	look(early, "a") // the file is newer than the log
	l := begin()
	look(l)
	one := denial("b")
	write(one[:40])
	look(l)
	write(one[40:] + "no event\n{\"kind\": \"validation.policy.admission.k8s.io/validation_failure\"}\n" + strings.Repeat("x", longestLine) + "\n" + string(anEvent(t)) + "\n" + denial("c"))
	look(l, "b", "c")
	if err := os.Rename(file, filepath.Join(dir, "audit-2026-01-02T00-00-00.000.log")); err != nil {
		t.Fatal(err)
	}
	write(denial("d"))
	look(l, "d")
	look(l)
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	look(l)
	write(strings.Replace(denial("e"), `"pods"`, `"others"`, 1) + denial("f"))
	look(l, "f")
	object := with("requestObject", map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"}})
	for _, changes := range [][]func(map[string]any){ // of these the first only is a creation that the log has
		{object}, {}, {object, answered(409, "it is there")}, {object, with("requestURI", "/api?dryRun=All")}, {object, with("verb", "update")},
		{object, with("objectRef", map[string]any{"apiVersion": "v1", "resource": "pods", "subresource": "binding"})},
	} {
		write(string(anEvent(t, changes...)) + "\n")
	}
	look(l)
	if want := "CREATE shop/web map[groups:[] username:alice]"; !slices.Equal(created, []string{want}) {
		t.Errorf("created %q, want %q", created, want)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	for result, want := range map[string]float64{countBad: 2, countLong: 1, countUnknown: 1, countLost: 0} {
		if counted[result] != want {
			t.Errorf("%g lines are counted as %s, want %g", counted[result], result, want)
		}
	}
}
