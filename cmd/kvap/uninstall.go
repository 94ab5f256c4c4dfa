package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

func newUninstall() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Say what stays in force when the controller is uninstalled",
		Long: `Uninstall lists the native policies that the controller has made, which API servers go
on to enforce without it, and the policies with rules that only its webhook judges. It
says how to have them go too.

It changes nothing, and uninstalls nothing: helm uninstall does, or kubectl delete -k.

Exit codes: 0 done, 2 usage, 3 no cluster answers.`,
		Example: `  kvap uninstall
  kvap uninstall --context production`,
		Args: command.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			left, err := leftovers(cmd.Context(), c)
			if err != nil {
				return exit.Runtime(err)
			}
			return exit.Runtime(left.Document().Write(cmd.OutOrStdout(), doc.Options{}))
		},
	}
	f.addConnection(command.InOrder(cmd))
	return cmd
}

// leftovers are what stays in a cluster, and what ends.
func leftovers(ctx context.Context, c *cluster.Connection) (out report.Leftovers, err error) {
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"} {
		bindings, err := listOf(ctx, c, apischema.GroupKind{Group: "admissionregistration.k8s.io", Kind: kind}, "app.kubernetes.io/managed-by="+controller.Manager)
		if err != nil {
			return out, err
		}
		for _, b := range bindings {
			policy, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
			actions, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
			if kind == "MutatingAdmissionPolicyBinding" {
				actions = []string{"changes objects"}
			}
			out.Native = append(out.Native, report.StayingPolicy{Name: policy, Action: strings.Join(actions, ", ")})
		}
	}
	translations, err := listOf(ctx, c, v1alpha1.GroupVersion().WithKind("PolicyTranslation").GroupKind(), "")
	for _, t := range translations {
		if n, _, _ := unstructured.NestedInt64(t.Object, "status", "webhook"); n > 0 {
			out.Ending = append(out.Ending, t.GetName())
		}
	}
	return out, err
}

// listOf are the objects of a kind, in whatever version the cluster serves; none where it
// serves none.
func listOf(ctx context.Context, c *cluster.Connection, kind apischema.GroupKind, selector string) ([]unstructured.Unstructured, error) {
	at, err := c.Mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := c.Dynamic.Resource(at.Resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
