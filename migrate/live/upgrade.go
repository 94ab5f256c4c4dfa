package live

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/report"
)

// UpgradeOf is what a cluster tells of its Kyverno: the version, by the image that it runs
// and by the labels of its definitions, whether it is alive, by its lease, and whether the
// API server takes policies such as those of legacy still. Nothing is changed.
func UpgradeOf(ctx context.Context, c *cluster.Connection, legacy []unstructured.Unstructured) (*report.Upgrade, error) {
	out := &report.Upgrade{Unknown: []string{}}
	beat, err := readHeartbeat(ctx, c)
	if err != nil && !apierrors.IsForbidden(err) {
		return out, err
	}
	out.Silent = beat.silent(time.Now())
	namespace, _, _ := strings.Cut(beat.lease, "/")
	var forbidden error
	for _, read := range []func() (string, string, error){
		func() (string, string, error) { return imageVersion(ctx, c, namespace) },
		func() (string, string, error) { return labelVersion(ctx, c) },
	} {
		version, seen, err := read()
		if apierrors.IsForbidden(err) {
			forbidden = err
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if out.Version == "" {
			out.Version, out.Seen = version, seen
		}
	}
	if out.Version == "" && forbidden != nil {
		out.Unknown = append(out.Unknown, readError("Kyverno's version is", forbidden).Error())
	}
	for i := range legacy {
		if out.Closed, err = Closed(ctx, c, &legacy[i]); err != nil || out.Closed != "" {
			return out, err
		}
	}
	return out, nil
}

// tag is the version at the end of the name of an image, or in a label.
var tag = regexp.MustCompile(`^v?(\d+\.\d+(\.\d+)?([-+.][0-9A-Za-z.-]+)?)$`)

// imageVersion is the version of the image of Kyverno's admission controller, in the
// namespace of its lease where that is known.
func imageVersion(ctx context.Context, c *cluster.Connection, namespace string) (version, seen string, err error) {
	deployments := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	list, err := deployments.Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kyverno"})
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		containers, _, _ := unstructured.NestedSlice(list.Items[i].Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			image, _ := container["image"].(string)
			name, _, _ := strings.Cut(image, "@") // the digest
			slash := strings.LastIndex(name, "/")
			repository, version, _ := strings.Cut(name[slash+1:], ":")
			if m := tag.FindStringSubmatch(version); m != nil && repository == "kyverno" {
				return m[1], "image " + image, nil
			}
		}
	}
	return "", "", nil
}

// labelVersion is the version that a label of Kyverno's definitions tells. Where it was
// installed by its chart, that is of the chart, and of its manifests it is Kyverno's.
func labelVersion(ctx context.Context, c *cluster.Connection) (version, seen string, err error) {
	const label = "app.kubernetes.io/version"
	definitions := c.Dynamic.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	list, err := definitions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		d := &list.Items[i]
		if m := tag.FindStringSubmatch(d.GetLabels()[label]); m != nil && strings.HasSuffix(d.GetName(), ".kyverno.io") {
			if strings.HasPrefix(m[1], "1.") {
				return m[1], "label of " + d.GetName(), nil
			}
			return fmt.Sprintf("that of the chart %s", m[1]), "label of " + d.GetName(), nil
		}
	}
	return "", "", nil
}
