package incluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	typedadmissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/registration"
)

// webhookSecret is where replicas share the webhook's certificates.
const webhookSecret = "kvap-webhook-tls"

// managedBy is the label of what kvap makes.
const managedBy = "app.kubernetes.io/managed-by"

// A secretStore keeps the record of an authority in a Secret.
type secretStore struct {
	secrets typedcorev1.SecretInterface
}

// Load implements certs.Store.
func (s *secretStore) Load(ctx context.Context) (data map[string][]byte, version string, err error) {
	secret, err := s.secrets.Get(ctx, webhookSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return secret.Data, secret.ResourceVersion, nil
}

// Save implements certs.Store.
func (s *secretStore) Save(ctx context.Context, data map[string][]byte, version string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: webhookSecret, ResourceVersion: version, Labels: map[string]string{managedBy: controller.Manager},
		},
		Type: corev1.SecretTypeTLS, Data: maps.Clone(data),
	}
	var err error
	if version == "" {
		_, err = s.secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return certs.ErrConflict
	}
	return err
}

// watchSecret yields after the Secret was changed, or is gone.
func watchSecret(ctx context.Context, client toolscache.Getter, namespace string) <-chan struct{} {
	changed := make(chan struct{}, 1)
	tell := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.NewListWatchFromClient(client, "secrets", namespace, fields.OneTermEqualSelector("metadata.name", webhookSecret)),
		ObjectType:    &corev1.Secret{},
		Handler:       toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell},
	})
	go informer.RunWithContext(ctx)
	return changed
}

// expiryMetric tells when the certificate ends that the webhook shows.
func expiryMetric(source endpoint.CertificateSource) error {
	return replace(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kvap_webhook_certificate_expires_timestamp_seconds", Help: "When the certificate ends that the webhook shows; 0 where it shows none.",
	}, func() float64 {
		shown, err := source.Certificate(&tls.ClientHelloInfo{})
		if err != nil || shown.Leaf == nil {
			return 0
		}
		return float64(shown.Leaf.NotAfter.Unix())
	}))
}

// areTold tells whether API servers are told to trust an authority, by each configuration of
// the webhook that there is.
func areTold(ctx context.Context, client typedadmissionv1.AdmissionregistrationV1Interface, authority *x509.Certificate) (bool, error) {
	ours := metav1.ListOptions{LabelSelector: labels.Set{managedBy: controller.Manager}.String()}
	validating, err := client.ValidatingWebhookConfigurations().List(ctx, ours)
	if err != nil {
		return false, err
	}
	mutating, err := client.MutatingWebhookConfigurations().List(ctx, ours)
	if err != nil {
		return false, err
	}
	var there []admissionregistrationv1.ValidatingWebhook
	for i := range validating.Items {
		there = append(there, registration.Configurations{Validating: &validating.Items[i]}.Webhooks()...)
	}
	for i := range mutating.Items {
		there = append(there, registration.Configurations{Mutating: &mutating.Items[i]}.Webhooks()...)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	return !slices.ContainsFunc(there, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return !bytes.Contains(w.ClientConfig.CABundle, text)
	}), nil
}
