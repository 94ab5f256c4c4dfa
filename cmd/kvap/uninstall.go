package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
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
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			return exit.Runtime(writeLeftovers(cmd.Context(), cmd.OutOrStdout(), c))
		},
	}
	f.addConnection(inOrder(cmd))
	return cmd
}

// writeLeftovers writes what stays and what ends.
func writeLeftovers(ctx context.Context, w io.Writer, c *cluster.Connection) error {
	var rows []string
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"} {
		bindings, err := listOf(ctx, c, apischema.GroupKind{Group: "admissionregistration.k8s.io", Kind: kind}, "app.kubernetes.io/managed-by="+controller.Manager)
		if err != nil {
			return err
		}
		for _, b := range bindings {
			policy, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
			actions, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
			if kind == "MutatingAdmissionPolicyBinding" {
				actions = []string{"changes objects"}
			}
			rows = append(rows, diag.Inert(policy)+"\t"+strings.Join(actions, ", "))
		}
	}
	translations, err := listOf(ctx, c, v1alpha1.GroupVersion().WithKind("PolicyTranslation").GroupKind(), "")
	if err != nil {
		return err
	}
	var ending []string
	for _, t := range translations {
		if n, _, _ := unstructured.NestedInt64(t.Object, "status", "webhook"); n > 0 {
			ending = append(ending, diag.Inert(t.GetName()))
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "No native policy of the controller is in the cluster: nothing stays in force without it.")
	} else {
		fmt.Fprint(w, "These native policies stay in force without the controller. Nothing restores or updates them then:\n\n")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "POLICY\tACTION")
		for _, row := range rows {
			fmt.Fprintln(table, row)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprint(w, `
To have them go too, set the policies to kvap.dev/mode: "off" and wait until kubectl get ptrans shows it, before you
uninstall. Afterwards delete what is left, the bindings first:

  kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller
  kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies -l app.kubernetes.io/managed-by=kvap-controller   # from 1.36 on
`)
	}
	if len(ending) > 0 {
		fmt.Fprintf(w, "\nThe webhook ends with the controller. Nobody judges by its rules of these policies then:\n\n  %s\n", strings.Join(ending, "\n  "))
	}
	return nil
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
