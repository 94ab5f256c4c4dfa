package scan

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// A violation is told when its report is written, and not again: not at rest, not by the next
// leader, and not with the others of its object. One that comes back is told again.
func TestFindingsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, reportOf("ConfigMap", "a", "known"))
		c.put(configMaps, "a/known")
		c.put(configMaps, "a/map")
		teams := `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: It has a team., pattern: {metadata: {labels: {team: "?*"}}}}
`
		told := func(when string, want ...string) {
			t.Helper()
			settle(0)
			c.mu.Lock()
			defer c.mu.Unlock()
			if slices.Sort(c.told); !slices.Equal(c.told, want) {
				t.Errorf("%s: told %q, want %q", when, c.told, want)
			}
			c.told = nil
		}
		ctx, end := context.WithCancel(t.Context())
		s := c.runFor(ctx, policiesOf(t, scanned))
		told("at first", "a/map ClusterPolicy owners/owner fail")
		s.Set(policiesOf(t, scanned+"---"+teams))
		told("by another policy", "a/known ClusterPolicy teams/team fail", "a/map ClusterPolicy teams/team fail")
		end()
		settle(0)
		c.run(policiesOf(t, scanned+"---"+teams))
		told("by the next leader")
		c.put(configMaps, "a/map", set("me", "metadata", "labels", "owner"))
		told("when one is mended")
		c.put(configMaps, "a/map", set("", "metadata", "labels", "owner"))
		told("when it comes back", "a/map ClusterPolicy owners/owner fail")
	})
}
