package incluster

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/webhook/shadow"
)

// shadowTimeout is for how many seconds a request waits at most for a webhook whose
// answer changes nothing.
const shadowTimeout = 2

// withoutEffect is a policy, as text, for whose answer no API server waits for long, or
// refuses a request for want of it.
func withoutEffect(text []byte) []byte {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return text // it is told of where it is parsed
	}
	spec, ok := doc["spec"].(map[string]any)
	if !ok {
		return text
	}
	delete(spec, "webhookTimeoutSeconds")
	if kind, _ := doc["kind"].(string); !strings.HasSuffix(kind, "GeneratingPolicy") { // which has none, and denies nothing
		spec["failurePolicy"] = "Ignore"
	}
	configuration, _ := spec["webhookConfiguration"].(map[string]any)
	if configuration == nil {
		configuration = map[string]any{}
	}
	configuration["timeoutSeconds"] = shadowTimeout
	delete(configuration, "failurePolicy")
	spec["webhookConfiguration"] = configuration
	out, err := yaml.Marshal(doc)
	if err != nil {
		return text // as above
	}
	return out
}

// tellShadowEvery is how often what was said in shadow is written to the cluster, where
// there is something new.
const tellShadowEvery = 10 * time.Second

// keepBook keeps a book of what is said in shadow, and writes it into the status of each
// PolicyTranslation until the context ends. Each replica has an entry of its own.
func (o *fallback) keepBook(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		o.log.Error(err, "this process has no name of its own")
	}
	by := cmp.Or(host, "webhook")
	o.book = shadow.New(by, time.Now)
	translations := client.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "policytranslations"})
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, page := range o.book.News() {
			if err := tellShadow(ctx, translations, page); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				o.log.V(1).Info("what was judged in shadow is not written", "policy", page.Source.Name, "reason", err.Error())
				o.book.Again(page.Source)
			}
		}
	}, tellShadowEvery)
	return nil
}

// tellShadow writes the entry of this process, and leaves those of others.
func tellShadow(ctx context.Context, translations dynamic.ResourceInterface, page shadow.PolicyTally) error {
	name := controller.TranslationName(page.Source)
	data, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "PolicyTranslation", "metadata": map[string]any{"name": name},
		"status": map[string]any{"shadow": []v1alpha1.ShadowStatus{page.Status}},
	})
	if err != nil {
		return err
	}
	force := true
	_, err = translations.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "kvap-shadow-" + page.Status.By, Force: &force}, "status")
	return err
}
