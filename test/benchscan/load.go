package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/test/controlplane"
)

// loaders are how many objects are made at a time.
const loaders = 24

// load makes definitions, policies and objects. Nothing judges them yet.
func (b *bench) load(ctx context.Context) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	for kind, resource := range map[string]string{"PolicyReport": "policyreports", "ClusterPolicyReport": "clusterpolicyreports"} {
		gvk := apischema.GroupVersionKind{Group: reports().Group, Version: reports().Version, Kind: kind}
		definitions = append(definitions, controlplane.StandIn(gvk, resource, kind == "PolicyReport"))
	}
	if err := b.plane.InstallCRDs(ctx, definitions...); err != nil {
		return err
	}
	begun := time.Now()
	if err := each(b.namespaces, func(i int) error {
		return b.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i, b.namespaces)}})
	}); err != nil {
		return err
	}
	if err := each(b.policies, func(i int) error { return b.client.Create(ctx, newPolicy(i)) }); err != nil {
		return err
	}
	if err := each(b.objects, func(i int) error { return b.create(ctx, b.newObject(i)) }); err != nil {
		return err
	}
	for i := range b.objects {
		if violates(i) {
			b.violating++
		}
	}
	fmt.Fprintf(os.Stderr, "%d objects are there, %d of them violate something: %s\n", b.objects, b.violating, time.Since(begun))
	return nil
}

func (b *bench) create(ctx context.Context, o runtime.Object) (err error) {
	core := b.typed.CoreV1()
	switch o := o.(type) {
	case *corev1.Namespace:
		_, err = core.Namespaces().Create(ctx, o, metav1.CreateOptions{})
	case *corev1.ConfigMap:
		_, err = core.ConfigMaps(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Pod:
		_, err = core.Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Service:
		_, err = core.Services(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	}
	return err
}

// each does something for each number below n, many at a time, until one fails.
func each(n int, do func(int) error) error {
	var group sync.WaitGroup
	errs := make([]error, loaders)
	for worker := range errs {
		group.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += loaders {
				errs[worker] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
