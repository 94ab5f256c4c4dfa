package controller

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An owner is a ClusterRole with which the webhook configurations end, by the cluster's
// garbage collection: where kvap is uninstalled nobody is left to remove them, and API
// servers would refuse requests for want of an answer.
type owner struct {
	direct client.Reader
	name   string // empty for none
}

// own makes objects the owner's.
func (o owner) own(ctx context.Context, objects ...client.Object) error {
	if o.name == "" {
		return nil
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := o.direct.Get(ctx, client.ObjectKey{Name: o.name}, role); err != nil {
		return fmt.Errorf("the owner of the webhook configurations: %w", err)
	}
	for _, object := range objects {
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: role.APIVersion, Kind: role.Kind, Name: role.Name, UID: role.UID,
		}})
	}
	return nil
}

// owned tells that an object has all owners that are wanted.
func owned(want, have metav1.Object) bool {
	return !slices.ContainsFunc(want.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return !slices.Contains(have.GetOwnerReferences(), r)
	})
}
