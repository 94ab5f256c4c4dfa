//go:build e2e

package chainsaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change sends each of its objects, and has the answers be as they are expected.
func (r *run) change(ctx context.Context, verb string, c patchStep, send func(context.Context, *unstructured.Unstructured) error) error {
	all, err := r.objects(ctx, c.objectsFile)
	if err != nil {
		return err
	}
	for _, o := range all {
		refused := send(ctx, o)
		if err := r.expect(c.Expect, o, refused); err != nil {
			return fmt.Errorf("%s %s %s: %w", verb, o.GetKind(), o.GetName(), err)
		}
		if refused == nil {
			if err := r.settle(ctx, o); err != nil {
				return fmt.Errorf("%s %s %s: %w", verb, o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

// expect compares an answer with what is expected of it: that there is no error, if
// nothing is.
func (r *run) expect(expected []expectation, o *unstructured.Unstructured, refused error) error {
	names := r.names
	if refused != nil {
		names = names.with("error", refused.Error())
	}
	matched := false
	for _, e := range expected {
		if e.Match != nil {
			if why, err := names.differs(e.Match, o.Object, ""); err != nil || why != "" {
				if err != nil {
					return err
				}
				continue
			}
		}
		matched = true
		why, err := names.differs(e.Check, o.Object, "")
		if err != nil {
			return err
		}
		switch {
		case why != "" && refused != nil:
			return fmt.Errorf("%s; the answer was: %w", why, refused)
		case why != "":
			return errors.New(why)
		}
	}
	if !matched {
		return refused
	}
	return nil
}

func (r *run) create(ctx context.Context, o *unstructured.Unstructured) error {
	err := r.Create(ctx, o)
	if err == nil {
		r.made = append(r.made, o)
	}
	return err
}

// apply creates an object, or merges it into the one that is there.
func (r *run) apply(ctx context.Context, o *unstructured.Unstructured) error {
	have := like(o)
	err := r.Get(ctx, client.ObjectKeyFromObject(o), have)
	if apierrors.IsNotFound(err) {
		if err = r.create(ctx, o); !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = nil // somebody else has made it meanwhile
	}
	if err != nil {
		return err
	}
	return r.merge(ctx, have, o)
}

func (r *run) patch(ctx context.Context, o *unstructured.Unstructured) error {
	return r.merge(ctx, like(o), o)
}

// merge sends a patch even where it changes nothing: the request is judged.
func (r *run) merge(ctx context.Context, have, o *unstructured.Unstructured) error {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	return r.Patch(ctx, have, client.RawPatch(types.MergePatchType, data))
}

func (r *run) update(ctx context.Context, o *unstructured.Unstructured) error {
	have := like(o)
	if err := r.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	o = o.DeepCopy()
	o.SetResourceVersion(have.GetResourceVersion())
	return r.Update(ctx, o)
}

// like is an empty object of a kind and name.
func like(o *unstructured.Unstructured) *unstructured.Unstructured {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(o.GroupVersionKind())
	have.SetName(o.GetName())
	have.SetNamespace(o.GetNamespace())
	return have
}

// remove deletes objects, and waits until they are gone.
func (r *run) remove(ctx context.Context, d deletion) error {
	s := objectsFile{File: d.File, Template: d.Template, Timeout: d.Timeout}
	if d.Ref != nil {
		metadata := map[string]any{}
		for field, value := range map[string]string{"name": d.Ref.Name, "namespace": d.Ref.Namespace} {
			if value != "" {
				metadata[field] = value
			}
		}
		if len(d.Ref.Labels) > 0 {
			labels := map[string]any{}
			for name, value := range d.Ref.Labels {
				labels[name] = value
			}
			metadata["labels"] = labels
		}
		s.Resource = map[string]any{"apiVersion": d.Ref.APIVersion, "kind": d.Ref.Kind, "metadata": metadata}
	}
	all, err := r.objects(ctx, s)
	if err != nil {
		return err
	}
	for _, o := range all {
		found, err := r.candidates(ctx, o)
		if err != nil {
			return err
		}
		for _, one := range found {
			if err := r.removeOne(ctx, d, s, one); err != nil {
				return fmt.Errorf("delete %s %s: %w", o.GetKind(), one.GetName(), err)
			}
		}
	}
	return nil
}

func (r *run) removeOne(ctx context.Context, d deletion, s objectsFile, o *unstructured.Unstructured) error {
	refused := r.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(refused) {
		refused = nil
	}
	if err := r.expect(d.Expect, o, refused); err != nil || refused != nil {
		return err
	}
	err := eventually(ctx, r.patience(s), func() (string, error) {
		now := like(o)
		switch err := r.Get(ctx, client.ObjectKeyFromObject(o), now); {
		case gone(err) || err == nil && now.GetUID() != o.GetUID(): // kvap may have made it anew by now
			return "", nil
		case err != nil:
			return "", err
		}
		return "it is still there", nil
	})
	if err != nil {
		return err
	}
	return r.settleRemoved(ctx, o)
}

// assert waits until an object like each of those asserted is there, or is not.
func (r *run) assert(ctx context.Context, s objectsFile, wanted bool) error {
	all, err := r.objects(ctx, s)
	if err != nil {
		return err
	}
	if !wanted {
		if err := r.idle(ctx); err != nil {
			return err
		}
	}
	for _, o := range all {
		if r.Translate != nil {
			r.Translate(o)
		}
		err := eventually(ctx, r.patience(s), func() (string, error) {
			why, err := r.missing(ctx, o)
			switch {
			case err != nil || wanted:
				return why, err
			case why == "":
				return "there is one like that", nil
			}
			return "", nil
		})
		if err != nil {
			word := "assert"
			if !wanted {
				word = "error"
			}
			return fmt.Errorf("%s %s %s %s: %w", word, o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
	return nil
}

// missing says why there is no object as it is asserted, and is empty where there is.
func (r *run) missing(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	if r.Answer != nil {
		if why, mine, err := r.Answer(ctx, o); mine || err != nil {
			return why, err
		}
	}
	found, err := r.candidates(ctx, o)
	if err != nil {
		return "", err
	}
	why := "there is none"
	for _, have := range found {
		if why, err = r.names.differs(o.Object, have.Object, ""); why == "" || err != nil {
			return "", err
		}
	}
	return why, nil
}

// candidates are the objects that are meant: the one that is named, or all with the
// labels.
func (r *run) candidates(ctx context.Context, o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.GetName() != "" {
		have := like(o)
		err := r.Get(ctx, client.ObjectKeyFromObject(o), have)
		if gone(err) {
			return nil, nil
		}
		return []*unstructured.Unstructured{have}, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(o.GetAPIVersion())
	list.SetKind(o.GetKind() + "List")
	if err := r.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingLabels(o.GetLabels())); err != nil {
		if gone(err) {
			return nil, nil
		}
		return nil, err
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// script runs a program in the folder of the test, with kubectl in reach.
func (r *run) script(ctx context.Context, env []environment, check any, program string, args ...string) error {
	kubeconfig, err := r.kubeconfig()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if found, err := exec.LookPath(filepath.Join(r.Path, program)); err == nil && r.Path != "" {
		program = found
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(filepath.Dir(r.Kubeconfig), "kubectl-cache"), "NAMESPACE="+r.namespace)
	if r.Path != "" {
		cmd.Env = append(cmd.Env, "PATH="+r.Path+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	cmd.WaitDelay = time.Second
	for _, e := range env {
		value, err := r.names.resolve(e.Value)
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%v", e.Name, value))
	}
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run()
	if errors.Is(failed, exec.ErrNotFound) || ctx.Err() != nil {
		return fmt.Errorf("%s: %w\n%s%s", program, failed, out.String(), said.String())
	}
	if check != nil {
		names := r.names.with("stdout", out.String()).with("stderr", said.String())
		if failed != nil {
			names = names.with("error", failed.Error())
		}
		var why string
		if why, err = names.differs(check, nil, ""); why != "" {
			err = errors.New(why)
		}
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("%s %s: %w\n%s%s", program, strings.Join(args, " "), failed, out.String(), said.String())
	}
	return r.idle(ctx)
}

// kubeconfig is a copy of the file for scripts, which may change it. As with chainsaw its
// namespace is not that of the run.
func (r *run) kubeconfig() (string, error) {
	data, err := os.ReadFile(r.Kubeconfig)
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.folder, ".kubeconfig")
	return path, os.WriteFile(path, data, 0o600)
}
