package incluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/audit"
	"github.com/kvap/kvap/vap"
)

// auditLogEvery is how often it is looked for new lines of the audit log.
const auditLogEvery = 100 * time.Millisecond

// followAuditLog tells what native policies decide, by a log of an API server if there is one, until the
// context ends. What they let in is judged again by their rules, if these are given.
func followAuditLog(ctx context.Context, config *rest.Config, events *ruleEvents, again *nativeRules, log logr.Logger) error {
	if events.options.AuditLog == "" {
		return nil
	}
	known, err := newNatives(ctx, config)
	if err != nil {
		return err
	}
	options := audit.Options{
		File: events.options.AuditLog, Every: auditLogEvery, Natives: known, Tell: events.decided, Register: metrics.Registry, Log: log.WithName("audit"),
	}
	if again != nil {
		options.Created = again.created
	}
	follower, err := audit.New(options)
	if err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	go follower.Run(ctx)
	return nil
}

// natives are the native policies that kvap has in the cluster, and what they were made from. They are
// watched, so that a log with many denials asks for nothing.
type natives struct {
	reader client.Reader
	mapper meta.RESTMapper
}

var _ audit.NativePolicies = (*natives)(nil)

func newNatives(ctx context.Context, config *rest.Config) (*natives, error) {
	scheme := runtime.NewScheme()
	both := runtime.NewSchemeBuilder(v1alpha1.AddToScheme, admissionregistrationv1.AddToScheme)
	if err := both.AddToScheme(scheme); err != nil {
		return nil, err
	}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, web)
	if err != nil {
		return nil, err
	}
	watched, err := cache.New(config, cache.Options{
		HTTPClient: web, Scheme: scheme, Mapper: mapper,
		ByObject: map[client.Object]cache.ByObject{
			&admissionregistrationv1.ValidatingAdmissionPolicy{}: {
				Label: labels.SelectorFromSet(labels.Set{vap.ManagedByLabel: controller.Manager}), Transform: onlyMap,
			},
			&v1alpha1.PolicyTranslation{}: {Transform: onlyObjects},
		},
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = watched.Start(ctx) }() // it fails only where it was started before
	return &natives{watched, mapper}, nil
}

// onlyMap leaves of a native policy what leads back to its source.
func onlyMap(o any) (any, error) {
	p, ok := o.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return o, nil
	}
	for i := range p.ManagedFields {
		p.ManagedFields[i].FieldsV1 = nil
	}
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{}
	for _, v := range p.Spec.Validations {
		spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{Message: v.Message})
	}
	p.Spec, p.Status = spec, admissionregistrationv1.ValidatingAdmissionPolicyStatus{}
	return p, nil
}

// onlyObjects leaves of what is said of a policy which native objects judge by it.
func onlyObjects(o any) (any, error) {
	t, ok := o.(*v1alpha1.PolicyTranslation)
	if !ok {
		return o, nil
	}
	status := v1alpha1.PolicyTranslationStatus{Mode: t.Status.Mode}
	for _, r := range t.Status.Rules {
		status.Rules = append(status.Rules, v1alpha1.RuleStatus{Rule: r.Rule, Objects: r.Objects})
	}
	return &v1alpha1.PolicyTranslation{TypeMeta: t.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion}, Spec: t.Spec, Status: status}, nil
}

// Native implements audit.NativePolicies.
func (n *natives) Native(ctx context.Context, name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	out := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	err := n.reader.Get(ctx, client.ObjectKey{Name: name}, out)
	if apierrors.IsNotFound(err) || err == nil && !controller.Made(out) {
		return nil, nil
	}
	return out, err
}

// Source implements audit.NativePolicies. Of policies of a name it is the one that names the native
// policy: they are of several kinds. In shadow nobody is told.
func (n *natives) Source(ctx context.Context, m vap.TranslatedMember, native string) (of v1alpha1.PolicyReference, known bool, err error) {
	all := &v1alpha1.PolicyTranslationList{}
	if err := n.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return of, false, err
	}
	found := slices.DeleteFunc(slices.Clone(all.Items), func(t v1alpha1.PolicyTranslation) bool {
		return strings.TrimPrefix(t.Spec.Source.Namespace+"/"+t.Spec.Source.Name, "/") != m.Policy
	})
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(t v1alpha1.PolicyTranslation) bool {
			return !slices.ContainsFunc(t.Status.Rules, func(r v1alpha1.RuleStatus) bool { return slices.Contains(r.Objects, native) })
		})
	}
	if len(found) != 1 || found[0].Status.Mode == v1alpha1.ModeShadow {
		return of, false, nil
	}
	return found[0].Spec.Source, true, nil
}

// Kind implements audit.NativePolicies.
func (n *natives) Kind(of schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return n.mapper.KindFor(of)
}
