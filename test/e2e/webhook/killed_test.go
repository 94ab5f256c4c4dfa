//go:build e2e

package webhook

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const stamped = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: stamped}
spec:
  background: false # its rule reads who asks
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [stamps], operations: [CREATE]}}]}
    mutate: {patchStrategicMerge: {data: {+(stamp): "{{ request.userInfo.username }}"}}}
`

// While a process is killed again and again, no object is stored as its user sent it
// that a policy must change.
func TestKilledWhileChanging(t *testing.T) {
	const plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: stamps}"
	shared.Namespace(t, "stamps", nil)
	p := shared.start(t, "", "--mutations", "webhook")
	shared.Apply(t, stamped)
	testcluster.Soon(t, "a stamp", func() bool { return shared.admitted(t, plain).Object["data"] != nil })
	var changed, unchanged, refused atomic.Int64
	stop := testcluster.Repeat(t, slices.Repeat([]func(context.Context){func(ctx context.Context) {
		o, err := shared.try(ctx, t, plain)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			refused.Add(1)
			time.Sleep(5 * time.Millisecond)
		case o.Object["data"] == nil:
			unchanged.Add(1)
		default:
			changed.Add(1)
		}
	}}, 4)...)
	for range 4 {
		before := changed.Load()
		testcluster.Soon(t, "objects are changed", func() bool { return changed.Load() > before+20 })
		p.kill()
		p = shared.start(t, p.address, "--mutations", "webhook")
	}
	before := changed.Load()
	testcluster.Soon(t, "objects are changed again", func() bool { return changed.Load() > before })
	stop()
	if n := unchanged.Load(); n > 0 || refused.Load() == 0 {
		t.Errorf("%d objects were not changed, %d were, %d were refused", n, changed.Load(), refused.Load())
	}
}
