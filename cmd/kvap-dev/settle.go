package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/diag"
)

// How long the controller and the API server have to take up the policies. A policy with an
// error is never ready.
const (
	settleWithin = 20 * time.Second
	settleEvery  = 200 * time.Millisecond
)

// policies is how many of the objects are policies.
func (d *running) policies() (n int) {
	for _, o := range d.Objects {
		if o.GetKind() != "PolicyException" {
			n++
		}
	}
	return n
}

// settle waits until the policies are ready, so that the first request of the user is judged
// by them, and names those that are not.
func (d *running) settle(ctx context.Context, config *rest.Config, applied int) error {
	if d.Kyverno != noKyverno || applied == 0 { // else Kyverno judges, and the user has kvap begin
		return nil
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	var list v1alpha1.PolicyTranslationList
	notReady := func() (names []string) {
		for _, t := range list.Items {
			ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
			switch {
			case ready == nil:
				names = append(names, t.Name)
			case ready.Status != metav1.ConditionTrue:
				names = append(names, t.Name+": "+ready.Message)
			}
		}
		return names
	}
	err = wait.PollUntilContextTimeout(ctx, settleEvery, settleWithin, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &list)
		return len(list.Items) >= applied && len(notReady()) == 0, err
	})
	if err != nil && !wait.Interrupted(err) {
		return err
	}
	for _, name := range notReady() {
		fmt.Fprintf(d.Errs, "warning: not ready: %s\n", diag.Inert(name))
	}
	return ctx.Err()
}
