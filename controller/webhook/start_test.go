package webhook

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

const generates = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: makes}
spec:
  failurePolicy: MODE
  rules:
  - name: makes
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: Secret, name: s, namespace: prod, synchronize: true, data: {}}
`

// started collects the work that requests start.
type started struct {
	mu   sync.Mutex
	work []Start
	err  error
}

func (s *started) start(_ context.Context, work Start) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = append(s.work, work)
	return s.err
}

func TestWorkIsStarted(t *testing.T) {
	var kept started
	c := start(t, Options{Start: kept.start, Roles: func(context.Context, User, string) ([]string, []string, error) {
		return nil, []string{"view"}, nil
	}})
	c.Set(set(policies(t, enforced(generates))))
	if got := c.ask(t, "/validate/fail", plain); !got.Allowed || len(got.Warnings) != 0 {
		t.Fatalf("%+v", got)
	}
	if len(kept.work) != 1 || kept.work[0].Rule != "makes" || kept.work[0].Remove || kept.work[0].Object["kind"] != "ConfigMap" || len(kept.work[0].Request.ClusterRoles) != 1 {
		t.Errorf("kept %+v", kept.work)
	}
}

// A request that is denied starts nothing, nor does one that is dry.
func TestNoWorkIsStarted(t *testing.T) {
	var kept started
	c := start(t, Options{Start: kept.start})
	c.Set(set(policies(t, enforced(generates)+"---\n"+enforced(ownerRequired))))
	if got := c.ask(t, "/validate/fail", plain); got.Allowed || len(kept.work) != 0 {
		t.Errorf("denied: %+v, kept %v", got, kept.work)
	}
	c.Set(set(policies(t, enforced(generates))))
	if got := c.ask(t, "/validate/fail", plain, `{"dryRun": true}`); !got.Allowed || len(kept.work) != 0 {
		t.Errorf("dry: %+v, kept %v", got, kept.work)
	}
}

// Work that cannot be kept is for the failure policy.
func TestWorkIsNotKept(t *testing.T) {
	kept := started{err: errors.New("no room")}
	c := start(t, Options{Start: kept.start})
	c.Set(set(policies(t, enforced(generates))))
	if got := c.ask(t, "/validate/fail", plain); got.Allowed || !strings.Contains(got.Result.Message, "makes") || !strings.Contains(got.Result.Message, "no room") {
		t.Errorf("fail: %+v", got)
	}
	c.Set(set(policies(t, strings.ReplaceAll(generates, "MODE", "Ignore"))))
	if got := c.ask(t, "/validate/ignore", plain); !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "no room") {
		t.Errorf("ignore: %+v", got)
	}
}

// What the program does itself starts work only for rules that want it.
func TestOwnRequests(t *testing.T) {
	var kept started
	c := start(t, Options{Start: kept.start, User: "alice"})
	c.Set(set(policies(t, enforced(generates))))
	if got := c.ask(t, "/validate/fail", plain); !got.Allowed || len(kept.work) != 0 {
		t.Errorf("%+v, kept %v", got, kept.work)
	}
	c.Set(set(policies(t, strings.Replace(enforced(generates), "- name: makes", "- name: makes\n    skipBackgroundRequests: false", 1))))
	if got := c.ask(t, "/validate/fail", plain); !got.Allowed || len(kept.work) != 1 {
		t.Errorf("%+v, kept %v", got, kept.work)
	}
}
