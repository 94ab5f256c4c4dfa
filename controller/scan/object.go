package scan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/report"
)

// nextPage reads a page of the objects of a kind, and adds them to the queue. The next one is read
// when they are judged.
func (l *leader) nextPage(ctx context.Context, f *followed) error {
	if !f.informer.HasSynced() || !l.reportsOf(f.namespaced).HasSynced() {
		return nil // it is asked for again
	}
	l.mu.Lock()
	pass, lacking := f.pass, f.lacking
	turn := len(pass.page) == 0 && !pass.done && lacking == nil
	if turn && pass.ended {
		l.finish(f, pass)
	}
	turn = turn && !pass.ended
	l.mu.Unlock()
	if !turn {
		return nil
	}
	page, err := l.page(ctx, f.GroupVersionResource, pass.token)
	if apierrors.IsResourceExpired(err) { // what was judged already is not judged again
		pass.token = ""
	}
	l.problems.unread(f.resource, problemOf(ctx, metav1.ListOptions{}, err))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.pass != pass {
		return nil // it begins anew
	}
	pass.token, pass.ended = page.GetContinue(), page.GetContinue() == ""
	for i := range page.Items {
		o := &unstructured.Unstructured{Object: page.Items[i].Object}
		t := task{f.groupKind(), o.GetNamespace(), o.GetName(), o.GetUID()}
		if t.uid == "" {
			continue // a report is about a UID
		}
		if !f.judge.excludes(t.namespace) || l.reportsOf(f.namespaced).digest(t) != 0 {
			pass.page[t] = o
			l.queue.Add(t)
		}
	}
	if len(pass.page) == 0 {
		l.queue.Add(task{kind: f.groupKind()})
	}
	return nil
}

// finish notes that all objects of a kind were judged.
func (l *leader) finish(f *followed, p *pass) {
	p.done = true
	l.problems.finish(f.resource)
	l.passed(p)
}

// passOver has the scan of everything not wait for a kind that cannot be read.
func (l *leader) passOver(f *followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed(f.pass)
}

// passed notes that a scan of everything does not wait for a pass any more.
func (l *leader) passed(p *pass) {
	if l.passes[p] {
		delete(l.passes, p)
		if len(l.passes) == 0 {
			l.metrics.scanned(l.now().Sub(l.began))
		}
	}
}

// took notes that an object of a page is judged, or will be later.
func (l *leader) took(f *followed, p *pass, t task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := p.page[t]; !ok {
		return
	}
	delete(p.page, t)
	if len(p.page) == 0 {
		l.queue.Add(task{kind: f.groupKind()})
	}
}

// object judges an object that is new, or has changed, or whose report is not what it should be, and
// brings the report into step. One that cannot be judged, or is about to go, keeps the report that
// it has.
func (l *leader) object(ctx context.Context, f *followed, t task) error {
	if f == nil {
		return l.removeUnasked(ctx, t)
	}
	l.mu.Lock()
	pass, judge, whole, lacking, o := f.pass, f.judge, f.whole, f.lacking, f.pass.page[t]
	l.mu.Unlock()
	defer l.took(f, pass, t)
	reports := l.reportsOf(f.namespaced)
	switch {
	case lacking != nil || !reports.HasSynced():
		return nil // all objects of the kind are judged once that is over
	case judge.excludes(t.namespace):
		return reports.remove(ctx, t)
	}
	if kept := f.kept(t); o == nil || kept == nil || kept.ResourceVersion != o.GetResourceVersion() {
		now, err := l.dynamic.Resource(f.GroupVersionResource).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
		switch {
		case isGone(err, t.name) || err == nil && now.GetUID() != t.uid:
			l.judged(pass, t, nil)
			return reports.remove(ctx, t)
		case err != nil:
			return fmt.Errorf("it cannot be judged: %w", err)
		}
		o = now
	}
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	namespace, err := l.namespace(ctx, t.namespace)
	if err != nil {
		return fmt.Errorf("it cannot be judged: %w", err)
	}
	is := judgement{digestOfObject(o, namespace, whole), reports.digest(t)}
	if was, ok := l.was(pass, t); ok && was == is {
		return nil
	}
	l.metrics.judged.Inc()
	scanned, err := judge.Object(ctx, o, namespace)
	if err != nil {
		return fmt.Errorf("it cannot be judged: %w", err)
	}
	wanted := report.ObjectReport(scanned, l.options.Report, l.now().Unix())
	there := is.report
	is.report = digestOfReport(wanted)
	l.judged(pass, t, &is) // before the report tells of itself
	if is.report == there {
		return nil
	}
	if wanted == nil {
		return reports.remove(ctx, t)
	}
	before, wrote, err := reports.write(ctx, t, wanted)
	if wrote {
		l.tell(scanned, wanted, before)
	}
	return err
}

// tell tells what violates in a report which is in it since it was written.
func (s *Scanner) tell(scanned report.ScannedObject, wanted, before map[string]any) {
	if s.options.Tell == nil {
		return
	}
	for _, r := range scanned.Results {
		violates := r.Result != "pass" && r.Result != "skip"
		if violates && r.IsListed(wanted, scanned.UID) && !r.IsListed(before, scanned.UID) {
			s.options.Tell(Finding{scanned, r})
		}
	}
}

// was is what was judged of an object.
func (l *leader) was(p *pass, t task) (judgement, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, ok := p.judged[t.uid]
	return j, ok
}

// judged notes what was judged of an object; nil for one that is gone.
func (l *leader) judged(p *pass, t task, j *judgement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j == nil {
		delete(p.judged, t.uid)
		return
	}
	p.judged[t.uid] = *j
}

// removeUnasked removes the report about an object of a kind that no rule is about, or that is not
// served. Of groups that are away nothing is known.
func (l *leader) removeUnasked(ctx context.Context, t task) error {
	l.mu.Lock()
	away := l.away[t.kind.Group]
	l.mu.Unlock()
	if away {
		return nil
	}
	return l.reportsOf(t.namespace != "").remove(ctx, t)
}

// isGone tells that there is no object of a name, and not that its kind is not served.
func isGone(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return !apierrors.IsUnexpectedServerError(err) && details != nil && details.Name == name && name != ""
}
