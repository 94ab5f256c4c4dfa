//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// casesAtLeast is the floor under the cases that are judged as they are written.
const casesAtLeast = 600

// A tally counts what became of the cases.
type tally struct {
	asWritten int
	others    map[string][]string // by reason: the cases that did not run, or not as they are written
}

func (y *tally) note(reason, fixture string, c fixtures.Case) {
	y.others[reason] = append(y.others[reason], fixture+": "+c.Note)
}

// tell fails where too few cases are judged as they are written.
func (y *tally) tell(t *testing.T, atLeast int) {
	t.Helper()
	t.Logf("%d cases judged as they are written", y.asWritten)
	for _, reason := range slices.Sorted(maps.Keys(y.others)) {
		t.Logf("%d: %s\n\t%s", len(y.others[reason]), reason, strings.Join(y.others[reason], "\n\t"))
	}
	if *only == "" && y.asWritten < atLeast {
		t.Errorf("%d cases, want %d or more", y.asWritten, atLeast)
	}
}

// Native rules deny and admit real requests as the fixtures' cases say. Where the
// server's defaults change what a case is about, the reference interpreter says
// what is right. The judge that works in process must say the same each time.
func TestVerdicts(t *testing.T) {
	shared.everybodyMay(t)
	installKinds(t)
	for _, form := range forms() {
		t.Run(form.String(), func(t *testing.T) { verdicts(t, form) })
	}
}

func verdicts(t *testing.T, form form) {
	y := &tally{others: map[string][]string{}}
	for i, table := range tables(t) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { judgeTable(t, table, form, y) })
	}
	y.tell(t, casesAtLeast)
}

// tables are the fixtures that have cases, at tables whose policies are in force together:
// to wait until API servers have taken policies up is most of the work. One with options
// or with objects that its rules look up sits alone. Those that make namespaces come first,
// for namespaces stay.
func tables(t *testing.T) [][]*attempt.Guest {
	t.Helper()
	var guests []*attempt.Guest
	var alone [][]*attempt.Guest
	for _, f := range fixtures.All() {
		if f.Cases == nil || !strings.Contains(f.Name, *only) {
			continue
		}
		if g := attempt.NewGuest(t, f); f.Options == nil && f.Context == nil {
			guests = append(guests, g)
		} else {
			alone = append(alone, []*attempt.Guest{g})
		}
	}
	slices.SortStableFunc(guests, func(a, b *attempt.Guest) int { return cmp.Compare(namespacesMade(t, b), namespacesMade(t, a)) })
	return append(attempt.Seat(t, guests), alone...)
}

// namespacesMade is how many cases of a fixture make a namespace.
func namespacesMade(t *testing.T, g *attempt.Guest) (n int) {
	t.Helper()
	for _, c := range g.Cases {
		if a := attempt.New(t, c); a.At.Resource == attempt.Namespaces() && a.Admission.Operation == admissionv1.Create {
			n++
		}
	}
	return n
}

// A trial is a fixture in force, with those that are asked for their opinion.
type trial struct {
	*attempt.Guest
	conversion
	denyExisting bool
	inProcess    *apiserver.Judge
	reference    *interp.Interpreter
	// prefix begins the names of the policies that are in force for it, and for no other
	// one at its table. It is empty where the controller names them.
	prefix string
}

func newTrial(t *testing.T, g *attempt.Guest, form form) *trial {
	t.Helper()
	s := fixtureSubject(t, g.Fixture)
	s.flags = append(s.flags, "--exclude-namespaces", "none")
	return &trial{Guest: g, conversion: shared.convert(t, s, form), denyExisting: slices.Contains(s.flags, "deny")}
}

// prepare makes what rules look up, and those that are asked.
func (x *trial) prepare(t *testing.T) {
	t.Helper()
	params := storeContext(t, x.Fixture)
	x.inProcess = newJudge(t, x.objects, params)
	x.reference = newReference(t, x.Fixture, params)
}

// inForce are the policies and bindings, with names that no other fixture's have.
func (x *trial) inForce(t *testing.T) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range x.objects {
		if _, ok := resourceOf(o); !ok {
			continue
		}
		o = o.DeepCopy()
		o.SetName(x.prefix + o.GetName())
		if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
			policy, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
			set(t, o, x.prefix+policy, "spec", "policyName")
		}
		out = append(out, o)
	}
	return out
}

func judgeTable(t *testing.T, table []*attempt.Guest, form form, y *tally) {
	var trials []*trial
	var objects []*unstructured.Unstructured
	for i, g := range table {
		x := newTrial(t, g, form)
		x.prefix = fmt.Sprintf("e2e-%d-", i)
		x.prepare(t)
		trials, objects = append(trials, x), append(objects, x.inForce(t)...)
	}
	shared.enforce(t, objects)
	for _, x := range trials {
		t.Run(x.Name, func(t *testing.T) {
			for _, c := range x.Cases {
				x.judge(t, c, y)
			}
		})
	}
}

// judge puts one case before the server, and says where it belongs in the tally.
func (x *trial) judge(t *testing.T, c fixtures.Case, y *tally) {
	t.Helper()
	a := attempt.New(t, c)
	if why := a.Impossible(); why != "" {
		y.note(why, x.Name, c)
		return
	}
	if err := a.Prepare(t, shared.store()); err != nil {
		y.note("the API server refuses "+err.Error(), x.Name, c)
		return
	}
	if a.Stored != nil {
		defer shared.store().Remove(t, a.At, a.Stored.GetName())
	}
	object, err := a.Send(t.Context(), t, a.As(t, shared.second))
	if err != nil {
		y.note("the API server refuses it by itself: "+err.Error(), x.Name, c)
		return
	}
	served := a.AsServed(t, object)
	labels := namespaceLabels(t, a)
	refused := x.ask(t, a, x.refusedInProcess(t, served, labels))
	statuses := x.statuses(t, c, served, labels)
	if !x.agrees(c, statuses, refused) {
		t.Errorf("%s: refused is %v, and the interpreter says %v", c.Note, refused, statuses)
	}
	if !x.agrees(c, c.Want, refused) {
		y.note("with what the server fills in, the case is another one", x.Name, c)
		return
	}
	y.asWritten++
}

// ask puts the request before the server, and says whether a policy refuses it.
// The server's knowledge of namespaces and params trails what is stored by some
// milliseconds, so it is asked again for a while where its answer is not the one
// expected.
func (x *trial) ask(t *testing.T, a *attempt.Attempt, expected bool) bool {
	t.Helper()
	client := a.As(t, shared.Config)
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := a.Send(t.Context(), t, client)
		refused := err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+x.prefix)
		if err != nil && !refused {
			t.Errorf("%s: %v", a.Note, err)
			return refused
		}
		if refused == expected {
			return refused
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: refused is %v, and in process it is %v (%v)", a.Note, refused, expected, err)
			return refused
		}
	}
}

// agrees tells whether a refusal is what the statuses of native rules make of a
// request. A rule that errs is refused, unless errors are to be ignored.
func (x *trial) agrees(c fixtures.Case, statuses map[string]string, refused bool) bool {
	must, may := false, false
	for rule, status := range statuses {
		if !x.native[rule] && !x.native[x.origin(rule)] {
			continue
		}
		if x.denyExisting && c.Operation == "UPDATE" && status == "skip" {
			status = "fail" // that is what the option asks for
		}
		must = must || status == "fail"
		may = may || status == "error"
	}
	return refused == must || refused && may
}

func (x *trial) refusedInProcess(t *testing.T, r *admissionv1.AdmissionRequest, labels map[string]string) bool {
	t.Helper()
	verdicts, err := x.inProcess.Review(t.Context(), r, apiserver.Labelled(labels))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(verdicts, func(v apiserver.Verdict) bool { return v.Refused })
}

// statuses are what the interpreter says of each rule.
func (x *trial) statuses(t *testing.T, c fixtures.Case, r *admissionv1.AdmissionRequest, labels map[string]string) map[string]string {
	t.Helper()
	request, err := interp.ParseAdmission(marshal(t, r))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, result := range x.reference.Judge(t.Context(), &interp.Request{
		Admission: request, NamespaceLabels: labels, Roles: c.Roles, ClusterRoles: c.ClusterRoles,
	}) {
		if result.Status != interp.None {
			got[result.Rule] = string(result.Status)
		}
	}
	return got
}

func namespaceLabels(t *testing.T, a *attempt.Attempt) map[string]string {
	t.Helper()
	if a.At.Namespace == "" || a.At.Resource == attempt.Namespaces() {
		return a.NamespaceLabels
	}
	ns, err := shared.unjudged.Resource(attempt.Namespaces()).Get(t.Context(), a.At.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.GetLabels()
}

// newJudge is the judge in process, for bindings that deny.
func newJudge(t *testing.T, objects, params []*unstructured.Unstructured) *apiserver.Judge {
	t.Helper()
	var ps []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bs []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, o := range ofKind(objects, "ValidatingAdmissionPolicy") {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		typed(t, o, p)
		vap.DefaultPolicy(p) // as the server does
		ps = append(ps, p)
	}
	for _, o := range ofKind(objects, "ValidatingAdmissionPolicyBinding") {
		b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		typed(t, o, b)
		vap.DefaultBinding(b)
		b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		bs = append(bs, b)
	}
	namespaces := map[string]*corev1.Namespace{}
	for _, o := range ofKind(params, "Namespace") {
		namespaces[o.GetName()] = &corev1.Namespace{}
		typed(t, o, namespaces[o.GetName()])
	}
	judge, err := apiserver.NewJudge(ps, bs, apiserver.JudgeOptions{Params: params, Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	return judge
}

func typed(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// newReference is the interpreter, in a world that has the fixture's context.
func newReference(t *testing.T, f fixtures.Fixture, objects []*unstructured.Unstructured) *interp.Interpreter {
	t.Helper()
	file, _ := policy.Parse("policy.yaml", f.Policy)
	world := &interp.Offline{Kinds: attempt.CustomKind, Formats: judge.Formats(shared.schemas(t)), Answers: map[string][]byte{}}
	for _, o := range objects {
		world.Objects = append(world.Objects, o.Object)
		if o.GetKind() == "Namespace" {
			world.Answers["/api/v1/namespaces/"+o.GetName()] = marshal(t, o)
		}
	}
	return interp.New(file.Policies, file.Exceptions, world, interp.Limits{})
}

// storeContext makes what the fixture's rules look up, until the end of the test.
func storeContext(t *testing.T, f fixtures.Fixture) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, made := range shared.store().Context(t, f) {
		objects = append(objects, made.Unstructured)
		if made.At.Resource == attempt.Namespaces() { // its end would take long, and others use it
			continue
		}
		t.Cleanup(func() { // t.Context is over by then
			_ = made.At.In(shared.unjudged).Delete(context.Background(), made.GetName(), metav1.DeleteOptions{})
		})
	}
	return objects
}

// installKinds defines them.
func installKinds(t *testing.T) {
	t.Helper()
	for resource, kind := range attempt.CustomKinds() {
		crd := controlplane.StandIn(resource.GroupVersion().WithKind(kind), resource.Resource, true)
		if err := shared.Plane.InstallCRDs(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		at := attempt.Collection{Resource: resource}
		testcluster.Soon(t, fmt.Sprintf("%s is served by both servers", kind), func() bool {
			_, err := at.In(shared.unjudged).List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	}
}
