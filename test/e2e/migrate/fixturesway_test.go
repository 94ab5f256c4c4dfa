//go:build e2e

package migrate

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// Floors, so that a test that has nothing to do any more is seen.
const (
	membersAtLeast   = 85
	questionsAtLeast = 580
	wantedAtLeast    = 570 // that are answered as the cases have it
	badAtLeast       = 350
	clearAtLeast     = 75 // policies that need no --accept
)

// A crowd is what TestFixtures is about.
type crowd struct {
	*cluster
	policies  []*unstructured.Unstructured // as they were before the first verb
	questions []*question
	stream    *stream
}

// The policies of all fixtures go the whole way there and back, at once, while the
// requests of their cases are put all the time: from before the first verb to after the
// last, and wherever one is killed, each is answered as Kyverno alone has answered it.
func TestFixtures(t *testing.T) {
	if !*ofFixtures && *only == "" {
		t.Skip("it keeps two cores busy for ten minutes, and what runs beside it waits: make e2e-fixtures")
	}
	c := shared.crowd(t)
	t.Run("there and back", c.thereAndBack)
	if !t.Failed() {
		t.Run("killed", c.killed)
	}
	c.stream.stop()
}

// crowd has Kyverno alone judge by the policies, and the requests begin.
func (c *cluster) crowd(t *testing.T) *crowd {
	t.Helper()
	c.Apply(t, everybodyMay)
	all, left := members(t)
	tables := seat(t, all)
	asking := c.questioner(t)
	x := &crowd{cluster: c, questions: asking.questions(t, all)}
	for _, reason := range slices.Sorted(maps.Keys(asking.left)) {
		t.Logf("%d requests: %s\n\t%s", len(asking.left[reason]), reason, strings.Join(asking.left[reason], "\n\t"))
	}
	c.startKyverno(t)
	n := 0
	for _, m := range all {
		made, why := m.install(t, c)
		if why != "" {
			left[m.Name] = why
			x.questions = slices.DeleteFunc(x.questions, func(q *question) bool { return q.fixture == m.Name })
			continue
		}
		n++
		x.policies = append(x.policies, slices.DeleteFunc(made, func(o *unstructured.Unstructured) bool { return o.GetKind() == "PolicyException" })...)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Logf("not in the cluster: %s: %s", name, left[name])
	}
	x.ready(t)
	otherwise := answered(t, x.questions)
	t.Logf("%d answers are another way than the cases have it:\n\t%s", len(otherwise), strings.Join(otherwise, "\n\t"))
	bad := 0
	for _, q := range x.questions {
		if q.denied {
			bad++
		}
	}
	t.Logf("%d fixtures at %d tables, %d policies, %d requests, of which %d are bad", n, tables, len(x.policies), len(x.questions), bad)
	if *only == "" && (n < membersAtLeast || len(x.questions) < questionsAtLeast || len(x.questions)-len(otherwise) < wantedAtLeast || bad < badAtLeast) {
		t.Fatal("this is too little to say anything")
	}
	c.control(t, "--exclude-namespaces", "none", "--exception-namespaces", "*")
	x.stream = c.streamQuestions(t, x.questions)
	return x
}

// everybodyMay gives every user all rights: what is tested comes after RBAC.
const everybodyMay = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`

// ready waits until Kyverno says so of all policies, and notes what they are.
func (x *crowd) ready(t *testing.T) {
	t.Helper()
	for _, o := range x.policies {
		testcluster.Soon(t, "Kyverno has taken up "+o.GetName(), func() bool {
			if err := x.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			ready, _, _ := unstructured.NestedBool(o.Object, "status", "ready")
			alike, _, _ := unstructured.NestedBool(o.Object, "status", "conditionStatus", "ready")
			return ready || alike
		})
	}
}

// during is that of the stream.
func (x *crowd) during(t *testing.T, what string, do func()) {
	t.Helper()
	x.stream.during(t, what, len(x.questions), do)
}

func (x *crowd) thereAndBack(t *testing.T) {
	x.during(t, "plan", func() { x.migrate(t, 0, "plan") })
	x.during(t, "shadow", func() { x.migrate(t, 0, "shadow", "--all") })
	recorded := t.TempDir()
	x.during(t, "record", func() { x.record(t, recorded) })
	x.during(t, "compare", func() {
		x.migrate(t, 0, "compare", "-A", "--requests", recorded, "--verify", "20", "--exception-namespaces", "*")
	})
	x.during(t, "enforce what was compared", func() {
		if _, code := x.try(t, "enforce", "--all", "--yes"); code != 4 && *only == "" {
			t.Errorf("exit code %d, where some policies want --accept", code)
		}
	})
	if n := x.standing(t, v1alpha1.StageEnforced); *only == "" && n < clearAtLeast {
		t.Errorf("%d policies are enforced without --accept, want %d or more", n, clearAtLeast)
	}
	x.during(t, "enforce", func() { x.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--yes") })
	if n := x.standing(t, v1alpha1.StageEnforced); n != len(x.policies) {
		t.Errorf("%d policies of %d are enforced", n, len(x.policies))
	}
	// What is enforced is of Kyverno's kinds, and would go with their definitions.
	x.during(t, "finish", func() { x.migrate(t, 1, "finish") })
	x.during(t, "rollback", func() { x.migrate(t, 0, "rollback", "--all", "--yes") })
	x.asBefore(t)
}

// killed kills verbs in the middle; what they leave is gone on with, or back from.
func (x *crowd) killed(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	soonDead := func() time.Duration { return time.Duration(500+random.IntN(6000)) * time.Millisecond }
	var some []string // those beside them stay where they are
	for i, o := range x.policies {
		if i%4 == 0 && o.GetNamespace() == "" {
			some = append(some, o.GetName())
		}
	}
	enforce := append([]string{"enforce", "--accept", "a test", "--yes", "--settle", "1s"}, some...)
	rollback := append([]string{"rollback", "--yes", "--settle", "2s"}, some...)
	for _, args := range [][]string{enforce, enforce, rollback, enforce, rollback} {
		x.during(t, args[0]+", killed", func() { x.migrateUntil(t, x.stream.after(t, soonDead()), args...) })
		x.recorded(t)
	}
	x.during(t, "rollback", func() { x.migrate(t, 0, rollback...) })
	x.asBefore(t)
}

// standing is how many policies stand somewhere, with nothing begun.
func (x *crowd) standing(t *testing.T, stage v1alpha1.MigrationStage) (n int) {
	t.Helper()
	for _, o := range x.policies {
		if s := x.recordOf(t, recordName(o)); s.Stage == stage && s.Doing == nil {
			n++
		}
	}
	return n
}

func recordName(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	return controller.TranslationName(v1alpha1.PolicyReference{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()})
}

// recorded wants every policy at a stage that there is, whatever is under way.
func (x *crowd) recorded(t *testing.T) {
	t.Helper()
	for _, o := range x.policies {
		s := x.recordOf(t, recordName(o))
		if !slices.Contains([]v1alpha1.MigrationStage{"", v1alpha1.StageNone, v1alpha1.StageShadow, v1alpha1.StageEnforced}, s.Stage) {
			t.Errorf("%s is at %q", o.GetName(), s.Stage)
		}
	}
}

// asBefore wants the policies as they were before the first verb.
func (x *crowd) asBefore(t *testing.T) {
	t.Helper()
	for _, was := range x.policies {
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(was.GroupVersionKind())
		if err := x.Get(t.Context(), client.ObjectKeyFromObject(was), is); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) || !maps.Equal(is.GetAnnotations(), was.GetAnnotations()) || !maps.Equal(is.GetLabels(), was.GetLabels()) {
			t.Errorf("%s is not as before: %v", was.GetName(), is)
		}
	}
	if n := x.standing(t, v1alpha1.StageNone); n != len(x.policies) {
		t.Errorf("%d policies of %d are back", n, len(x.policies))
	}
}

// record has `kvap migrate record` write what is asked, until that is all requests once.
func (x *crowd) record(t *testing.T, dir string) {
	t.Helper()
	address, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	var out testcluster.Buffer
	command := exec.Command(x.Kvap, "migrate", "record", "--output-dir", dir, "--webhook-url", "https://"+address, "--webhook-address", address,
		"--exclude-namespaces", "none", "-q", "--kubeconfig", x.Plane.Kubeconfig(controlplane.Admin))
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // it has ended
	testcluster.Soon(t, "something is recorded", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		return slices.ContainsFunc(files, func(name string) bool { s, err := os.Stat(name); return err == nil && s.Size() > 0 })
	})
	before := x.stream.good.Load() + x.stream.bad.Load()
	testcluster.Soon(t, "all requests are recorded", func() bool {
		return x.stream.good.Load()+x.stream.bad.Load() > before+int64(len(x.questions)+asked)
	})
	_ = command.Process.Signal(os.Interrupt)
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}
