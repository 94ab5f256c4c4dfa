package incluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/audit"
	"github.com/kvap/kvap/controller/background"
	"github.com/kvap/kvap/controller/internal/notice"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// judged tells what a rule of the webhook says of a request. Dry runs and policies in shadow change
// nothing, so nobody is told.
func (e *ruleEvents) judged(r webhook.Record, of v1alpha1.PolicyReference) {
	if r.Err != nil || r.Shadow || r.Request.DryRun {
		return
	}
	v := verdict{
		by: byAdmission, policy: notice.OfPolicy(of, ""), rule: r.Rule, status: r.Status, blocked: r.Blocked, applied: actionPassed, message: shadow.MessageOf(r),
		there: !r.Blocked && r.Request.Operation != "DELETE",
		object: corev1.ObjectReference{
			APIVersion: r.Request.APIVersion, Kind: r.Request.Kind, Namespace: r.Request.Namespace, Name: r.Request.Name, UID: types.UID(r.Request.Object),
		},
	}
	if r.Mutates {
		v.applied = actionMutated
	}
	for _, name := range r.Exceptions {
		v.exceptions = append(v.exceptions, exceptionOf(r.Of, name))
	}
	e.note(v)
}

// exceptionOf is a reference to an exception from a policy, by namespace/name.
func exceptionOf(p *policy.Policy, name string) corev1.ObjectReference {
	out := corev1.ObjectReference{APIVersion: "kyverno.io/v2", Kind: "PolicyException", Name: name}
	if p.InCEL() {
		out.APIVersion = "policies.kyverno.io/v1"
	}
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		out.Namespace, out.Name = namespace, name
	}
	return out
}

// decided tells what a native policy said of a request, as the log of an API server has it.
func (e *ruleEvents) decided(d audit.Decision) {
	status := interp.Fail
	if d.Erred {
		status = interp.Error
	}
	e.note(verdict{
		by: byAdmission, policy: notice.OfPolicy(d.Policy, ""), rule: d.Rule, status: status, blocked: d.Blocked, message: d.Message,
		object: d.Object, there: d.Admitted && d.Operation != "DELETE",
	})
}

// found tells of a violation that is new in the report about an object.
func (e *ruleEvents) found(of v1alpha1.PolicyReference, f scan.Finding) {
	status := interp.Fail // or a warning, which is a violation that does not score
	if f.Result.Result == string(interp.Error) {
		status = interp.Error
	}
	o := f.Object
	e.note(verdict{
		by: byScan, policy: notice.OfPolicy(of, ""), rule: f.Result.Rule, status: status, message: f.Result.Message, there: true,
		object: corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)},
	})
}

// workOf is the part of kvap that does work which requests start.
func workOf(changes bool) string {
	if changes {
		return byMutate
	}
	return byGenerate
}

// worked tells what background work has to say of a policy: what cannot be carried out is an error, of
// which the action says more than Kyverno's does.
func (e *ruleEvents) worked(n background.Notice) {
	by, reason, action := workOf(n.Changes), n.Reason, "Generate"
	if n.Warning {
		reason, action = reasonError, n.Reason
	}
	if e.wanted(by, reason) {
		related := referenceOf(n.About)
		e.make(by, notice.OfPolicy(n.Policy, ""), related, n.Warning, reason, action, n.Note)
	}
}

// applied tells of work that made or changed objects.
func (e *ruleEvents) applied(a background.Applied) {
	by, action := workOf(a.Changes), actionGenerated
	if a.Changes {
		action = actionMutated
	}
	if !e.wanted(by, reasonApplied) {
		return
	}
	for _, object := range a.Objects[:min(len(a.Objects), mostApplied)] {
		o := referenceOf(object)
		e.make(by, notice.OfPolicy(a.Policy, ""), o, false, reasonApplied, action, placeOf(o)+": ["+a.Rule+"] pass")
	}
}

// mostApplied is of how many objects of one piece of work is told.
const mostApplied = 10
