package main

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/webhook/certs"
)

// webhookSecret is where replicas share the webhook's certificates.
const webhookSecret = "kvap-webhook-tls"

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
			Name: webhookSecret, ResourceVersion: version, Labels: map[string]string{"app.kubernetes.io/managed-by": controller.Manager},
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
