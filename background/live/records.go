package live

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/background"
)

// LedgerName is the name of the ConfigMap in kvap's own namespace that says what rules
// make.
const LedgerName = "kvap-generated"

// ledgerKey is its only key.
const ledgerKey = "rules.json"

// ConfigMapRecords keeps what rules make in a ConfigMap.
type ConfigMapRecords struct {
	client    client.Client
	namespace string
}

var _ background.RecordStore = (*ConfigMapRecords)(nil)

// NewLedger is the record store in the namespace of some requests.
func NewLedger(r *Requests) *ConfigMapRecords { return &ConfigMapRecords{r.client, r.namespace} }

// Load implements background.Ledger. What nobody can read is an error, and not empty:
// what was written there is not lost for a slip of the pen.
func (l *ConfigMapRecords) Load(ctx context.Context) ([]background.RuleRecord, error) {
	at := &corev1.ConfigMap{}
	err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: LedgerName}, at)
	if apierrors.IsNotFound(err) || err == nil && at.Data[ledgerKey] == "" {
		return nil, nil
	}
	var out []background.RuleRecord
	if err == nil {
		err = json.Unmarshal([]byte(at.Data[ledgerKey]), &out)
	}
	if err != nil {
		return nil, fmt.Errorf("the ConfigMap %s/%s: %w", l.namespace, LedgerName, err)
	}
	return out, nil
}

// Save implements background.Ledger.
func (l *ConfigMapRecords) Save(ctx context.Context, all []background.RuleRecord) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: LedgerName, Labels: map[string]string{"app.kubernetes.io/managed-by": FieldManager}},
		Data:       map[string]string{ledgerKey: string(text)},
	}
	err = l.client.Update(ctx, want, client.FieldOwner(FieldManager))
	if apierrors.IsNotFound(err) {
		err = l.client.Create(ctx, want, client.FieldOwner(FieldManager))
	}
	if err != nil {
		return fmt.Errorf("the ConfigMap %s/%s: %w", l.namespace, LedgerName, err)
	}
	return nil
}
