package live

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/background"
)

// Requests are the GenerateRequests of a namespace, which is kvap's own.
type Requests struct {
	client    client.Client
	namespace string
}

var _ background.Requests = (*Requests)(nil)

// Get implements background.Requests.
func (r *Requests) Get(ctx context.Context, name string) (*v1alpha1.GenerateRequest, error) {
	out := &v1alpha1.GenerateRequest{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// Create implements background.Requests.
func (r *Requests) Create(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	one = one.DeepCopy()
	one.Namespace = r.namespace
	err := r.client.Create(ctx, one)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Count is how many there are.
func (r *Requests) Count(ctx context.Context) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("GenerateRequestList"))
	n := 0
	for next := ""; ; {
		limit := int64(pageSize)
		if n == 0 {
			limit = 1 // the API server says how many more there are, but need not
		}
		if err := r.client.List(ctx, list, &client.ListOptions{Namespace: r.namespace, Limit: limit, Continue: next}); err != nil {
			return 0, err
		}
		n += len(list.Items)
		if more := list.GetRemainingItemCount(); more != nil {
			return n + int(*more), nil
		}
		if next = list.GetContinue(); next == "" || n >= maxListed {
			return n, nil
		}
	}
}

// SetStatus implements background.Requests.
func (r *Requests) SetStatus(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	return r.client.Status().Update(ctx, one)
}

// Delete implements background.Requests.
func (r *Requests) Delete(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	return client.IgnoreNotFound(r.client.Delete(ctx, one, client.Preconditions{UID: &one.UID}))
}

// LedgerName is the name of the ConfigMap in kvap's own namespace that says what rules
// make.
const LedgerName = "kvap-generated"

// ledgerKey is its only key.
const ledgerKey = "rules.json"

// ConfigMapRecords keeps what rules make in a ConfigMap. It writes over what it has read or
// written last, and nothing else: a process that led before may not know that another leads.
type ConfigMapRecords struct {
	client    client.Client
	namespace string
	version   string // of the ConfigMap; empty where there is none
}

var _ background.RecordStore = (*ConfigMapRecords)(nil)

// NewLedger is the record store in the namespace of some requests.
func NewLedger(r *Requests) *ConfigMapRecords {
	return &ConfigMapRecords{client: r.client, namespace: r.namespace}
}

// Load implements background.RecordStore. What nobody can read is an error, and not empty:
// what was written there is not lost for a slip of the pen.
func (l *ConfigMapRecords) Load(ctx context.Context) ([]background.RuleRecord, error) {
	at := &corev1.ConfigMap{}
	err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: LedgerName}, at)
	l.version = at.ResourceVersion
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

// Save implements background.RecordStore.
func (l *ConfigMapRecords) Save(ctx context.Context, all []background.RuleRecord) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.namespace, Name: LedgerName, ResourceVersion: l.version, Labels: map[string]string{"app.kubernetes.io/managed-by": FieldManager},
		},
		Data: map[string]string{ledgerKey: string(text)},
	}
	if l.version == "" {
		err = l.client.Create(ctx, want, client.FieldOwner(FieldManager))
	} else {
		err = l.client.Update(ctx, want, client.FieldOwner(FieldManager))
	}
	if err != nil {
		return fmt.Errorf("the ConfigMap %s/%s: %w", l.namespace, LedgerName, err)
	}
	l.version = want.ResourceVersion
	return nil
}
