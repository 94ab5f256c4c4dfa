package live

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/controller/background"
)

// A process that led before does not write over what another has written since, until it
// has read that.
func TestRecordsOfAnotherLeader(t *testing.T) {
	requests := &Requests{client: fake.NewClientBuilder().WithScheme(clientscheme.Scheme).Build(), namespace: "kvap-system"}
	before, now := NewLedger(requests), NewLedger(requests)
	load := func(l *ConfigMapRecords, want int) {
		t.Helper()
		if all, err := l.Load(t.Context()); err != nil || len(all) != want {
			t.Fatalf("%v %v; want %d records", all, err, want)
		}
	}
	records := func(n int) []background.RuleRecord { return make([]background.RuleRecord, n) }
	load(before, 0)
	load(now, 0)
	for n := 1; n <= 2; n++ {
		if err := now.Save(t.Context(), records(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Save(t.Context(), records(7)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("what was not there when it was read: %v", err)
	}
	load(before, 2)
	if err := now.Save(t.Context(), records(3)); err != nil {
		t.Fatal(err)
	}
	if err := before.Save(t.Context(), records(7)); !apierrors.IsConflict(err) {
		t.Errorf("what is not as it was read: %v", err)
	}
	load(before, 3)
	if err := before.Save(t.Context(), records(4)); err != nil {
		t.Error(err)
	}
	if err := requests.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kvap-system", Name: LedgerName}}); err != nil {
		t.Fatal(err)
	}
	if err := now.Save(t.Context(), records(5)); err == nil {
		t.Errorf("what is there no more: %v", err)
	}
	load(now, 0)
}
