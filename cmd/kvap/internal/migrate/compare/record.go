package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// Record writes what was found into the Migration of each policy, and tells of which it
// speaks for them.
func (c *Comparing) Record(ctx context.Context, result report.Comparison) (clean []string) {
	if _, ok := c.Cluster.Serves(v1alpha1.Group, "Migration", v1alpha1.Version); !ok {
		c.leave(fmt.Errorf("the result is not recorded, for the cluster does not know the kind Migration; install the definitions of kvap.dev, or say --dry-run"))
		return nil
	}
	for _, p := range c.setting.compared {
		if p.object.GroupVersionKind().Group == v1alpha1.Group {
			continue // it has arrived
		}
		found, ok := comparisonOf(result, p.name)
		if !ok {
			continue
		}
		if c.unread > 0 {
			found.Clean = false
			lines := doc.Count(c.unread, "recorded request or log entry", "recorded requests or log entries")
			found.Message = shortened(strings.TrimSuffix(lines+" could not be read; "+found.Message, "; "))
		}
		if p.unread != nil {
			c.leave(fmt.Errorf("the result for the policy %s is not recorded: %w", p.name, p.unread))
			continue
		}
		found.At, found.Digest = metav1.NewTime(time.Now().UTC().Truncate(time.Second)), p.digest
		if err := c.recordOne(ctx, p.object, found); err != nil {
			c.leave(fmt.Errorf("the result for the policy %s is not recorded: %w", p.name, err))
		} else if found.Clean {
			clean = append(clean, p.name)
		}
	}
	return clean
}

// recordOne writes a record that others write too.
func (c *Comparing) recordOne(ctx context.Context, source unstructured.Unstructured, found v1alpha1.Comparison) error {
	gvk := source.GroupVersionKind()
	reference := v1alpha1.PolicyReference{Group: gvk.Group, Kind: gvk.Kind, Namespace: source.GetNamespace(), Name: source.GetName(), UID: source.GetUID()}
	name := controller.TranslationName(reference)
	resource, _ := c.Cluster.Serves(v1alpha1.Group, "Migration", v1alpha1.Version)
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultRetry, again, func() error {
		record := migrate.NewRecord(name, reference)
		there, err := c.Cluster.Dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(there.Object, record)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		record.Status.Comparison = &found
		if c.TryOnly {
			return live.Record(ctx, c.Cluster, record, metav1.DryRunAll)
		}
		return live.Record(ctx, c.Cluster, record)
	})
}

// comparisonOf sums up what was found of the rules of a policy. It is clean where
// something was seen of each rule that leaves Kyverno, and nothing that disagrees.
func comparisonOf(result report.Comparison, policyName string) (out v1alpha1.Comparison, ok bool) {
	by := map[string]v1alpha1.Evidence{}
	var thin, lacking []string // reasons; those of rules of which nothing was seen
	disagreed, seen := false, false
	unseen := false // of some rule
	for _, r := range result.Rules {
		if r.Policy != policyName {
			continue
		}
		ok = true
		if r.Target != report.Unsupported {
			total := r.Total().Seen
			seen, unseen = seen || total > 0, unseen || total == 0
		}
		for _, e := range r.Evidence {
			sum := by[e.Source]
			sum.Source = e.Source
			sum.Requests += int64(e.Seen)
			sum.Agreed += int64(e.Agreed)
			sum.Disagreed += int64(e.Disagreed)
			by[e.Source] = sum
		}
		if len(r.Disagreements) > 0 && !disagreed {
			disagreed = true
			text := r.Rule + " on " + r.Disagreements[0].Subject
			for _, v := range r.Disagreements[0].Sides {
				text += fmt.Sprintf("; %s: %s", v.Who, v.Says)
			}
			out.Message = shortened(text)
		}
		for _, why := range r.Thin {
			thin = append(thin, r.Rule+": "+why)
			if r.Total().Seen == 0 {
				lacking = append(lacking, r.Rule+": "+why)
			}
		}
	}
	for _, e := range by {
		out.Evidence = append(out.Evidence, e)
	}
	slices.SortFunc(out.Evidence, func(a, b v1alpha1.Evidence) int { return cmp.Compare(a.Source, b.Source) })
	out.Clean = seen && !unseen && !disagreed
	switch {
	case disagreed:
	case unseen: // that is why it is not clean
		out.Message = shortened(strings.Join(lacking, "; "))
	default:
		out.Message = shortened(strings.Join(thin, "; "))
	}
	return out, ok
}

// shortened keeps a message short enough for a status.
func shortened(s string) string { return doc.Cut(s, 1000) }
