//go:build e2e

package chainsaw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Setup is where tests run, with what is particular to it. Each of the functions
// may be nil.
type Setup struct {
	client.Client
	// Kubeconfig is the file for scripts.
	Kubeconfig string
	// Path is a folder with programs that scripts find before others; it may be empty.
	Path string
	// Prepare makes a cluster ready for an object that is about to be sent or looked for.
	Prepare func(context.Context, *unstructured.Unstructured) error
	// Settle returns when what an object says is in force; it was sent and taken. One that
	// was deleted has a time of deletion.
	Settle func(context.Context, *unstructured.Unstructured) error
	// Idle returns when nothing is under way that steps have started.
	Idle func(context.Context) error
	// Answer answers an assertion about an object in place of the cluster, where it is
	// mine. why is empty if the assertion holds.
	Answer func(ctx context.Context, asserted *unstructured.Unstructured) (why string, mine bool, err error)
	// Translate changes what is asserted of an object into how the cluster under test says it.
	Translate func(asserted *unstructured.Unstructured)
	// Sleep bounds each sleep.
	Sleep time.Duration
	// Patience is how long an assertion may take to come true, at least.
	Patience time.Duration
}

// A run is a test on its way.
type run struct {
	*Setup
	original  string // the folder of the test
	folder    string // a copy
	namespace string
	names     scope
	cut       time.Duration // what was cut off sleeps
	made      []*unstructured.Unstructured
	last      []func() error // done in the end, the last one first
}

// Run runs a test in a namespace, which it makes if there is none. An error is the first
// step that did not go as it should, or what could not be removed.
func (t *Test) Run(ctx context.Context, c *Setup, namespace string) (err error) {
	if t.spec.Namespace != "" {
		namespace = t.spec.Namespace
	}
	r := &run{Setup: c, original: t.Folder, namespace: namespace}
	if r.folder, err = os.MkdirTemp("", "kvap-chainsaw-"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(r.folder))
	}()
	if err := os.CopyFS(r.folder, os.DirFS(t.Folder)); err != nil {
		return err
	}
	r.names = scope{"namespace": namespace, "test": map[string]any{"metadata": map[string]any{"name": t.Name}}, "error": nil}
	defer func() { err = errors.Join(err, r.cleanUp(context.WithoutCancel(ctx))) }()
	if err := r.makeNamespace(ctx); err != nil {
		return err
	}
	if err := r.bind(t.spec.Bindings); err != nil {
		return err
	}
	for i, s := range t.spec.Steps {
		if err := r.step(ctx, t, s); err != nil {
			return fmt.Errorf("step %d %s: %w", i+1, s.Name, err)
		}
	}
	return nil
}

func (r *run) makeNamespace(ctx context.Context) error {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.namespace}}}
	if err := r.place(ctx, o); err != nil {
		return err
	}
	err := r.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		r.made = append(r.made, o)
		err = r.settle(ctx, o)
	}
	return err
}

func (r *run) bind(names []binding) error {
	for _, b := range names {
		value, err := r.names.resolve(b.Value)
		if err != nil {
			return err
		}
		r.names = r.names.with(b.Name, value)
	}
	return nil
}

// step does the operations of a step, or of the template that it uses. Names that it
// binds are forgotten after it.
func (r *run) step(ctx context.Context, t *Test, s step) (err error) {
	outer := r.names
	defer func() { r.names = outer }()
	if err := r.bind(s.Bindings); err != nil {
		return err
	}
	if s.Use != nil {
		if err := r.bind(s.Use.With.Bindings); err != nil {
			return err
		}
		steps, err := s.Use.template(t.Folder)
		if err != nil {
			return err
		}
		s.Try, s.Finally, s.Cleanup = append(steps.Try, s.Try...), append(steps.Finally, s.Finally...), append(steps.Cleanup, s.Cleanup...)
	}
	names := r.names
	for _, o := range slices.Backward(s.Cleanup) {
		r.last = append(r.last, func() error {
			r.names = names
			return r.operate(context.WithoutCancel(ctx), o)
		})
	}
	for i, o := range s.Try {
		if err = r.operate(ctx, o); err != nil {
			err = fmt.Errorf("operation %d: %w", i+1, err)
			break
		}
	}
	for i, o := range s.Finally {
		if failed := r.operate(context.WithoutCancel(ctx), o); failed != nil {
			err = errors.Join(err, fmt.Errorf("finally %d: %w", i+1, failed))
		}
	}
	return err
}

func (r *run) operate(ctx context.Context, o operation) error {
	switch {
	case o.Apply != nil:
		return r.change(ctx, "apply", *o.Apply, r.apply)
	case o.Create != nil:
		return r.change(ctx, "create", *o.Create, r.create)
	case o.Update != nil:
		return r.change(ctx, "update", *o.Update, r.update)
	case o.Patch != nil:
		return r.change(ctx, "patch", *o.Patch, r.patch)
	case o.Delete != nil:
		return r.remove(ctx, *o.Delete)
	case o.Assert != nil:
		return r.assert(ctx, o.Assert.objectsFile, true)
	case o.Error != nil:
		return r.assert(ctx, o.Error.objectsFile, false)
	case o.Script != nil:
		return r.script(ctx, o.Script.Env, o.Script.Check, "sh", "-c", o.Script.Content)
	case o.Command != nil:
		return r.script(ctx, o.Command.Env, o.Command.Check, o.Command.Entrypoint, o.Command.Args...)
	case o.Sleep != nil:
		return r.sleep(ctx, o.Sleep.Duration.Duration)
	}
	return errors.New("an operation that is not known")
}

// sleep waits a while, and until nothing is under way.
func (r *run) sleep(ctx context.Context, wanted time.Duration) error {
	d := min(wanted, r.Sleep)
	r.cut += wanted - d
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	return r.idle(ctx)
}

func (r *run) idle(ctx context.Context) error {
	if r.Idle == nil {
		return nil
	}
	return r.Idle(ctx)
}

func (r *run) settle(ctx context.Context, o *unstructured.Unstructured) error {
	if r.Settle == nil {
		return nil
	}
	return r.Settle(ctx, o)
}

// objects are those of a source, with expressions evaluated, in the run's namespace if
// they name none.
func (r *run) objects(ctx context.Context, s objectsFile) ([]*unstructured.Unstructured, error) {
	all := []*unstructured.Unstructured{{Object: s.Resource}}
	if s.Resource == nil {
		file, err := r.names.resolve(s.File)
		if err != nil {
			return nil, err
		}
		name, _ := file.(string)
		folder := r.folder
		if strings.HasPrefix(name, "../") {
			folder = r.original
		}
		paths, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no file %s", name)
		}
		all = nil
		for _, path := range paths {
			some, err := Objects(path)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	for i, o := range all {
		if s.Template == nil || *s.Template {
			resolved, err := r.names.resolve(o.Object)
			if err != nil {
				return nil, err
			}
			all[i] = &unstructured.Unstructured{Object: resolved.(map[string]any)}
		}
		if err := r.place(ctx, all[i]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return all, nil
}

// place gives an object the run's namespace where it needs one.
func (r *run) place(ctx context.Context, o *unstructured.Unstructured) error {
	if r.Prepare != nil {
		if err := r.Prepare(ctx, o); err != nil {
			return err
		}
	}
	namespaced, err := r.IsObjectNamespaced(o)
	if meta.IsNoMatchError(err) {
		return nil // who sends it will hear of it
	}
	if namespaced && o.GetNamespace() == "" {
		o.SetNamespace(r.namespace)
	}
	return err
}

// patience is how long an assertion may take now.
func (r *run) patience(s objectsFile) time.Duration {
	patience := r.Patience + r.cut
	if s.Timeout != nil {
		patience = max(patience, s.Timeout.Duration)
	}
	return patience
}

// eventually asks until there is nothing to say against it.
func eventually(ctx context.Context, patience time.Duration, ask func() (why string, err error)) error {
	for deadline := time.Now().Add(patience); ; {
		why, err := ask()
		switch {
		case err != nil:
			return err
		case why == "":
			return nil
		case time.Now().After(deadline):
			return errors.New(why)
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New(why), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// cleanUp does what is to be done in the end, and removes what the run has made.
func (r *run) cleanUp(ctx context.Context) (err error) {
	for _, do := range slices.Backward(r.last) {
		if failed := do(); failed != nil {
			err = errors.Join(err, fmt.Errorf("cleanup: %w", failed))
		}
	}
	for _, o := range slices.Backward(r.made) {
		failed := r.Delete(ctx, o, client.GracePeriodSeconds(0))
		if gone(failed) {
			continue
		}
		if failed == nil {
			failed = r.settleRemoved(ctx, o)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("removing %s %s: %w", o.GetKind(), o.GetName(), failed))
		}
	}
	return err
}

// settleRemoved returns when what an object said is no longer in force.
func (r *run) settleRemoved(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return r.settle(ctx, o)
}

// gone tells of an object that is not there any more, or its kind.
func gone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
