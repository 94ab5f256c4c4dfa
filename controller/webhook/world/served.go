package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kvap/kvap/controller/webhook/registration"
)

// Served is what a cluster serves, as it was when it was last asked.
type Served struct {
	client   discovery.DiscoveryInterface
	current  atomic.Pointer[registration.Table]
	changed  chan struct{}
	expected chan struct{}
}

func newServed(client discovery.DiscoveryInterface) *Served {
	return &Served{client: client, changed: make(chan struct{}, 1), expected: make(chan struct{}, 1)}
}

// Refresh asks the cluster. Groups whose server does not answer are left out.
func (s *Served) Refresh() error {
	_, lists, err := s.client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return err
	}
	next := resourcesOf(lists)
	before := s.current.Swap(&next)
	if before != nil && !equality.Semantic.DeepEqual(*before, next) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// Discover asks a cluster once what it serves.
func Discover(client discovery.DiscoveryInterface) (registration.Table, error) {
	s := newServed(client)
	err := s.Refresh()
	return s.All(), err
}

// The cluster is asked every expectInterval for an expectTime where a kind is expected.
const (
	expectInterval = time.Second
	expectTime     = 30 * time.Second
)

// Expect has the cluster asked often for a while, as when a kind is missed of which the
// definition may have come a moment ago: it is served a little later.
func (s *Served) Expect() {
	select {
	case s.expected <- struct{}{}:
	default:
	}
}

// run asks again and again: kinds come and go.
func (s *Served) run(ctx context.Context) {
	next, until := time.Now().Add(syncInterval), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.expected:
			until = time.Now().Add(expectTime)
			if soon := time.Now().Add(expectInterval); soon.Before(next) {
				next = soon
			}
		case <-time.After(time.Until(next)):
			_ = s.Refresh() // what was known is known still
			next = time.Now().Add(syncInterval)
			if time.Now().Before(until) {
				next = time.Now().Add(expectInterval)
			}
		}
	}
}

// Changed yields after what is served changed.
func (s *Served) Changed() <-chan struct{} { return s.changed }

func resourcesOf(lists []*metav1.APIResourceList) registration.Table {
	var out registration.Table
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		at := map[string]int{}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				at[r.Name] = len(out)
				out = append(out, registration.Resource{Group: version.Group, Version: version.Version, Kind: r.Kind, Plural: r.Name, Namespaced: r.Namespaced})
			}
		}
		for _, r := range list.APIResources {
			if name, sub, ok := strings.Cut(r.Name, "/"); ok {
				if i, known := at[name]; known {
					out[i].Subresources = append(out[i].Subresources, sub)
				}
			}
		}
	}
	return out
}

// All are the resources, in the order of the cluster.
func (s *Served) All() registration.Table { return *s.Table() }

// Table are the resources, another one when they have changed.
func (s *Served) Table() *registration.Table {
	if list := s.current.Load(); list != nil {
		return list
	}
	return &registration.Table{}
}

// Resource is the resource of a kind.
func (w *World) Resource(_ context.Context, apiVersion, kind string) (string, error) {
	at, err := w.resource(apiVersion, kind)
	return at.resource.Resource, err
}

// resource is where objects of a kind are.
func (w *World) resource(apiVersion, kind string) (apiPath, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiPath{}, err
	}
	for _, r := range w.served.All() {
		if r.Group == version.Group && r.Version == version.Version && r.Kind == kind {
			return apiPath{resource: version.WithResource(r.Plural)}, nil
		}
	}
	return apiPath{}, fmt.Errorf("the cluster serves no kind %s of %s", kind, apiVersion)
}

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
