package interp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/interp/internal/datum"
)

// A maker collects what the expressions of a GeneratingPolicy want for one trigger.
type maker struct {
	of      *generating
	trigger map[string]any
	review  *preparedRequest
	objects ObjectReader
	out     *Generation
}

// apply takes objects that are to exist in a namespace.
func (m *maker) apply(namespace string, objects []any) error {
	for i, object := range objects {
		if err := m.one(namespace, object); err != nil {
			return fmt.Errorf("failed to generate resources: entry %d: %w", i, err)
		}
	}
	return nil
}

// one takes one object, or the objects of a list.
func (m *maker) one(namespace string, value any) error {
	if value == nil {
		return errors.New("it is null: the object that is to be copied does not exist")
	}
	written, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("it is %s, and no object", datum.TypeName(value))
	}
	object, err := plainData(written)
	if err != nil {
		return err
	}
	items, isList := object["items"].([]any)
	if isList && strings.HasSuffix(digText(object, "kind"), "List") {
		for _, item := range items {
			one, ok := item.(map[string]any)
			if !ok {
				return errors.New("an item of a list is no object")
			}
			if err := m.add(namespace, ofList(one, object)); err != nil {
				return err
			}
		}
		return nil
	}
	return m.add(namespace, object)
}

// ofList is an item of a list, which says of what kind its items are: API servers leave
// that out of them.
func ofList(item, list map[string]any) map[string]any {
	if digText(item, "kind") == "" {
		item["kind"] = strings.TrimSuffix(digText(list, "kind"), "List")
	}
	if digText(item, "apiVersion") == "" {
		item["apiVersion"] = digText(list, "apiVersion")
	}
	return item
}

// add brings an object into its namespace, gives it its labels, and keeps it.
func (m *maker) add(namespace string, object map[string]any) error {
	if len(m.out.Targets) >= maxGenerated {
		return fmt.Errorf("the policy generates more than %d objects", maxGenerated)
	}
	p := m.of.policy
	made := Generated{
		APIVersion: digText(object, "apiVersion"), Kind: digText(object, "kind"), Name: metaText(object, "name"), Namespace: namespace,
		Synchronize: p.Generating.Synchronize,
	}
	if made.APIVersion == "" || made.Kind == "" || made.Name == "" {
		return fmt.Errorf("a generated object needs an apiVersion, a kind and a name; this one is %q %q %q", made.APIVersion, made.Kind, made.Name)
	}
	namespaced, err := m.objects.Namespaced(m.review.ctx, made.APIVersion, made.Kind)
	switch {
	case err != nil:
		return err
	case !namespaced && p.Namespaced():
		return fmt.Errorf("the policy of namespace %s cannot generate a %s, which is in no namespace", p.Namespace, made.Kind)
	case !namespaced:
		made.Namespace = ""
	}
	var source map[string]any
	if metaText(object, "resourceVersion") != "" { // it was read
		source = object
		made.Source = &ObjectReference{made.APIVersion, made.Kind, metaText(object, "namespace"), made.Name}
		if *made.Source == (ObjectReference{made.APIVersion, made.Kind, made.Namespace, made.Name}) {
			return nil // it is itself
		}
	}
	made.Object = fresh(object, made.Namespace, made.Name)
	if was := metaText(object, "namespace"); was != "" && was != made.Namespace {
		delete(digMap(made.Object, "metadata"), "ownerReferences")
	}
	if made.own, err = m.label(made.Object, source); err != nil {
		return err
	}
	m.out.Targets = append(m.out.Targets, made)
	return nil
}

// label gives an object the labels that lead back to the policy, its trigger and its
// source. What comes back are those by which the policy knows its own.
func (m *maker) label(object, source map[string]any) (own map[string]string, err error) {
	labels := TargetSelector(m.of.policy, "", m.trigger)
	if name := metaText(m.trigger, "name"); len(kvalidation.IsValidLabelValue(name)) == 0 {
		labels[generatePrefix+"trigger-name"] = name
	}
	if source != nil {
		labels[CloneSourceLabel] = ""
		addReference(labels, "source", source)
	}
	if err := label(object, labels); err != nil {
		return nil, err
	}
	own = map[string]string{}
	for _, key := range []string{managedByLabel, policyNameLabel, generatePrefix + "trigger-uid"} {
		own[key] = labels[key]
	}
	return own, nil
}

// template takes the documents of a template, each in the namespace that it names.
func (m *maker) template(scope celScope, documents []*celDocument) error {
	p := m.of.policy
	for _, doc := range documents {
		value, err := doc.fill(m.review.ctx, scope)
		if err != nil {
			return err
		}
		object, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("a document of the template has become %s", datum.TypeName(value))
		}
		namespace := metaText(object, "namespace")
		if p.Namespaced() {
			if namespace != "" && namespace != p.Namespace {
				return fmt.Errorf("the policy of namespace %s cannot generate into the namespace %q", p.Namespace, namespace)
			}
			namespace = p.Namespace
		}
		if err := m.apply(namespace, []any{object}); err != nil {
			return err
		}
	}
	return nil
}

// plainData is a map as JSON has it, whatever CEL made its values of.
func plainData(m map[string]any) (map[string]any, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	if len(text) > maxObject {
		return nil, fmt.Errorf("it is larger than %d bytes", maxObject)
	}
	var out map[string]any
	if err := kjson.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if datum.TooDeep(out) {
		return nil, errors.New("it is nested too deeply")
	}
	return out, nil
}
