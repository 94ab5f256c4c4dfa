//go:build e2e

package webhook

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A restless cluster changes all the time what rules read.
type restless struct {
	*cluster
	t      *testing.T
	random *rand.Rand
}

// restlessIn are the namespaces that the rules are about, each of which may have a ConfigMap.
func restlessIn() []string { return []string{"restless-one", "restless-two"} }

func (r *restless) some(of ...string) string { return of[r.random.IntN(len(of))] }

// text is a policy that reads the ConfigMap of a namespace, or of each object's own.
func (r *restless) text(name string) string {
	from := r.some(append(restlessIn(), "{{ request.namespace }}")...)
	return strings.NewReplacer("in-team", name, `names: ["team-*"]`, `names: ["`+name+`-*"], namespaceSelector: {matchLabels: {restless: "yes"}}`,
		"name: missing-teams, namespace: default", `name: restless-teams, namespace: "`+from+`"`).Replace(inTeam)
}

func (r *restless) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.some(restlessIn()...), Name: "restless-teams"}, Data: map[string]string{"team": r.some("red", "green")},
	}
}

// must takes what comes of changes that cross.
func (r *restless) must(err error) {
	r.t.Helper()
	if client.IgnoreNotFound(err) != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
}

// step changes something.
func (r *restless) step() {
	ctx := r.t.Context()
	steps := []func(){
		func() { r.must(r.Create(ctx, r.configMap())) },
		func() { r.must(r.Create(ctx, r.configMap())) },
		func() { r.must(r.Update(ctx, r.configMap())) },
		func() { r.must(r.Delete(ctx, r.configMap())) },
		func() {
			cm := r.configMap()
			r.must(r.Delete(ctx, cm))
			r.must(r.Create(ctx, cm))
		},
		func() {
			name := r.some("restless-a", "restless-b")
			r.change(r.t, name, testcluster.Read(r.t, r.text(name))[0].Object["spec"].(map[string]any))
		},
		func() { r.must(r.Create(ctx, testcluster.Read(r.t, r.text("restless-c"))[0])) },
		func() { r.must(r.Delete(ctx, testcluster.Read(r.t, r.text("restless-c"))[0])) },
		func() {
			p := &v1alpha1.Params{ObjectMeta: r.configMap().ObjectMeta}
			const patch = `{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}, "data": {"other": "x"}}`
			r.must(r.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(patch))))
		},
	}
	steps[r.random.IntN(len(steps))]()
}

// Whatever ConfigMaps and policies do at once, what a rule matches is refused, and nothing
// else is.
func TestRestless(t *testing.T) {
	shared.start(t, "")
	for _, name := range restlessIn() {
		shared.Namespace(t, name, map[string]string{"restless": "yes"})
	}
	r := &restless{shared, t, rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() {
		for _, name := range restlessIn() {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "restless-teams"}}
			if err := client.IgnoreNotFound(shared.Delete(context.Background(), cm)); err != nil {
				t.Error(err)
			}
		}
	})
	var laws []*law
	for _, name := range []string{"restless-a", "restless-b", "restless-c"} {
		shared.Apply(t, r.text(name))
		testcluster.Soon(t, "the rule is in force", func() bool {
			_, err := shared.try(t.Context(), t, strings.NewReplacer("namespace: default", "namespace: restless-one").Replace(secretOf(name+"-a", "blue")))
			return err != nil
		})
		if name != "restless-c" { // which comes and goes
			laws = append(laws, shared.holds(t, name, restlessIn()...))
		}
	}
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		r.step()
		time.Sleep(time.Duration(r.random.IntN(600)) * time.Millisecond)
	}
	for _, l := range laws {
		l.check(t)
	}
}
