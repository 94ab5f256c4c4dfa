package world

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// bindings are the role bindings of the cluster, found by whom they bind.
type bindings struct {
	factory          informers.SharedInformerFactory
	roles, clusterly cache.SharedIndexInformer
}

// bySubject is the index of bindings by whom they bind.
const bySubject = "subject"

func newBindings(client kubernetes.Interface) *bindings {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagers))
	b := &bindings{
		factory: factory, roles: factory.Rbac().V1().RoleBindings().Informer(),
		clusterly: factory.Rbac().V1().ClusterRoleBindings().Informer(),
	}
	for _, informer := range []cache.SharedIndexInformer{b.roles, b.clusterly} {
		_ = informer.AddIndexers(cache.Indexers{bySubject: subjectKeys}) // it has not started
	}
	return b
}

// withoutManagers drops what nobody asks about.
func withoutManagers(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func (b *bindings) start(ctx context.Context) { b.factory.Start(ctx.Done()) }

func (b *bindings) synced() bool { return b.roles.HasSynced() && b.clusterly.HasSynced() }

// subjectKeys are the subjects of a binding as keys.
func subjectKeys(object any) ([]string, error) {
	var subjects []rbacv1.Subject
	namespace := ""
	switch o := object.(type) {
	case *rbacv1.RoleBinding:
		subjects, namespace = o.Subjects, o.Namespace
	case *rbacv1.ClusterRoleBinding:
		subjects = o.Subjects
	}
	keys := make([]string, len(subjects))
	for i, s := range subjects {
		keys[i] = s.Kind + ":" + s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			keys[i] = s.Kind + ":" + in + ":" + s.Name
		}
	}
	return keys, nil
}

// of are the roles and cluster roles of a user. A cluster role that is bound in a
// namespace counts in that namespace.
func (b *bindings) of(user string, groups []string, namespace string) (roles, clusterRoles []string) {
	keys := []string{rbacv1.UserKind + ":" + user}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		keys = append(keys, rbacv1.ServiceAccountKind+":"+account)
	}
	for _, g := range groups {
		keys = append(keys, rbacv1.GroupKind+":"+g)
	}
	for _, key := range keys {
		found, _ := b.roles.GetIndexer().ByIndex(bySubject, key) // the index exists
		for _, object := range found {
			binding := object.(*rbacv1.RoleBinding)
			switch {
			case binding.RoleRef.Kind == "Role":
				roles = append(roles, binding.Namespace+":"+binding.RoleRef.Name)
			case binding.RoleRef.Kind == "ClusterRole" && binding.Namespace == namespace:
				clusterRoles = append(clusterRoles, binding.RoleRef.Name)
			}
		}
		found, _ = b.clusterly.GetIndexer().ByIndex(bySubject, key)
		for _, object := range found {
			if binding := object.(*rbacv1.ClusterRoleBinding); binding.RoleRef.Kind == "ClusterRole" {
				clusterRoles = append(clusterRoles, binding.RoleRef.Name)
			}
		}
	}
	slices.Sort(roles)
	slices.Sort(clusterRoles)
	return slices.Compact(roles), slices.Compact(clusterRoles)
}
