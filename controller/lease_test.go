package controller

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Whoever leads and is killed is followed by another within ten seconds, as docs/controller.md
// says: it hears of the last renewal one try late, waits for the lease to end, and tries once
// more. Each wait is longer by a random part.
func TestHandOverIsShort(t *testing.T) {
	const try = leaseRetry + time.Duration(leaderelection.JitterFactor*10)*leaseRetry/10
	if longest := try + leaseDuration + try; longest > 10*time.Second {
		t.Errorf("a hand-over may take %v", longest)
	}
	if leaseDuration <= leaseRenewal || leaseRenewal <= try {
		t.Errorf("a lease of %v is renewed within %v, tried every %v: client-go refuses that", leaseDuration, leaseRenewal, try)
	}
	if leaseDuration%time.Second != 0 {
		t.Errorf("a lease tells whole seconds, and not %v", leaseDuration)
	}
}
