package live

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/cluster"
)

// A heartbeat is what Kyverno last said of being alive: it writes a lease every ten
// seconds, and has the API server ask it no more once the lease is older than maxSilence.
// The zero value is of a Kyverno that has no such lease, as older ones.
type heartbeat struct {
	lease, said string
	moved       bool // it was written while somebody looked
}

// maxSilence is how old the lease of a Kyverno that judges may be.
const maxSilence = 100 * time.Second

// readHeartbeat reads the lease.
func readHeartbeat(ctx context.Context, c *cluster.Connection) (heartbeat, error) {
	leases := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"})
	list, err := leases.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kyverno-health"})
	if err != nil {
		return heartbeat{}, readError("whether Kyverno is alive is", fmt.Errorf("leases: %w", err))
	}
	var out heartbeat
	for _, l := range list.Items {
		if said := l.GetAnnotations()["kyverno.io/last-request-time"]; said > out.said {
			out = heartbeat{lease: l.GetNamespace() + "/" + l.GetName(), said: said}
		}
	}
	return out, nil
}

// Silent says since when Kyverno has said nothing, as far as its lease tells at once; ""
// where it is alive, or that is not known.
func Silent(ctx context.Context, c *cluster.Connection) (string, error) {
	h, err := readHeartbeat(ctx, c)
	return h.silent(time.Now()), err
}

// after is the heartbeat after an earlier one.
func (h heartbeat) after(before heartbeat) heartbeat {
	h.moved = before.moved || before.said != "" && h.said != before.said
	return h
}

// silent says since when Kyverno has said nothing; "" where it is alive, or that is not
// known. The clocks of the cluster and of this machine may differ, but a lease that moves
// is alive whatever they say.
func (h heartbeat) silent(now time.Time) string {
	at, err := time.Parse(time.RFC3339, h.said)
	if h.said == "" || h.moved || err != nil {
		return ""
	}
	if age := now.Sub(at); age > maxSilence || age < -maxSilence {
		return fmt.Sprintf("Kyverno has not said that it is alive since %s (lease %s)", at.UTC().Format(time.RFC3339), h.lease)
	}
	return ""
}
