//go:build e2e

package migrate

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/standin"
)

// close has the cluster upgraded to Kyverno 1.20, which carries out no policy of kyverno.io,
// and has the API server deny what makes or changes one.
func (c *cluster) close(t *testing.T, metadataPasses bool) {
	t.Helper()
	if err := standin.Close(t.Context(), c.Client, metadataPasses); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standin.Open(context.Background(), c.Client); err != nil {
			t.Error(err)
		}
	})
}

// versions are those of Kyverno's policies that there are.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name := range kinds() {
		if o := c.policyOf(t, "kyverno.io/v1", name); o != nil {
			out[name] = o.GetResourceVersion()
		}
	}
	return out
}

// unwritten fails where one of Kyverno's policies was changed.
func (c *cluster) unwritten(t *testing.T, when string, before map[string]string) {
	t.Helper()
	for name, version := range c.versions(t) {
		if before[name] != version {
			t.Errorf("%s: kvap wrote to Kyverno's policy %s", when, name)
		}
	}
}

// lasting sends requests all the time: good ones are admitted always, and bad ones are
// denied from when they were denied first, which for some is the beginning.
func (c *cluster) lasting(t *testing.T, from ...string) *stream {
	t.Helper()
	s := &stream{}
	var denied sync.Map
	for _, name := range from {
		denied.Store(name, true)
	}
	var each []func(context.Context)
	for name := range kinds() {
		good, bad := probe(t, name, true), probe(t, name, false)
		each = append(each, func(ctx context.Context) {
			at := time.Now().Format(time.StampMilli) + " " + name
			_, before := denied.Load(name)
			switch err := c.judged(ctx, bad); {
			case err != nil && ctx.Err() == nil:
				denied.Store(name, true)
			case before && ctx.Err() == nil:
				s.wrong.Store(at, "a bad request was admitted")
			}
			s.bad.Add(1)
			if err := c.judged(ctx, good); err != nil && ctx.Err() == nil {
				s.wrong.Store(at, "a good request was denied: "+err.Error())
			}
			s.good.Add(1)
			time.Sleep(5 * time.Millisecond)
		})
	}
	s.stop = testcluster.Repeat(t, each...)
	return s
}

// A cluster was upgraded to Kyverno 1.20 with its policies on every part of their way. By
// both plans for its guard they come to kvap.dev, however often the command is killed,
// nothing is written to Kyverno's policies, what was enforced is enforced at every moment,
// and rollback says that there is no way back.
func TestClosed(t *testing.T) {
	for plan, metadataPasses := range map[string]bool{"all changes are denied": false, "changes of metadata pass": true} {
		t.Run(plan, func(t *testing.T) {
			c := shared
			t.Cleanup(func() { // the API server forgets later than the objects go
				testcluster.Soon(t, "nobody judges any more", func() bool { return c.judged(context.Background(), probe(t, "labelled", false)) == nil })
			})
			_, stop := c.startKyverno(t)
			c.apply(t, strings.TrimSpace(policies))
			c.control(t)
			before := c.stream(t)
			c.migrate(t, 0, "shadow", "asks")
			c.migrate(t, 0, "enforce", "labelled", "foreground", "--accept", "a test", "--yes", "--settle", "2s")
			before.stop()
			before.check(t, "Kyverno 1.19")
			stop()
			c.close(t, metadataPasses)
			was := c.versions(t)
			s := c.lasting(t, "labelled", "foreground")

			d := standin.Deployment("v1.20.0")
			if err := c.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Delete(context.Background(), d) })
			planned := c.migrate(t, 0, "plan")
			for _, want := range []string{
				"Kyverno is 1.20.0 (image reg.kyverno.io/kyverno/kyverno:v1.20.0)", "takes no new or changed policy of kyverno.io any more: ", "ignored       gone",
			} {
				if !strings.Contains(planned, want) {
					t.Errorf("plan does not say %q", want)
				}
			}
			if out := c.migrate(t, 1, "finish"); !strings.Contains(out, "nobody enforces it") || !strings.Contains(out, "kvap migrate enforce mixed") {
				t.Error("finish does not say that nobody enforces mixed")
			}
			out := c.migrate(t, 4, "rollback", "--all", "--yes")
			for _, want := range []string{"kvap goes on enforcing", "Kyverno 1.19 or earlier", "kubectl annotate --overwrite clusterpolicies.kvap.dev foreground kvap.dev/mode=shadow", "kvap migrate adopt labelled"} {
				if !strings.Contains(out, want) {
					t.Errorf("rollback does not say %q", want)
				}
			}
			s.check(t, "rollback")
			c.unwritten(t, "rollback", was)

			c.migrate(t, 0, "shadow", "mixed")
			c.unwritten(t, "shadow", was)
			if o := c.policyOf(t, "kvap.dev/v1alpha1", "mixed"); o != nil {
				t.Errorf("shadow has made %v", o)
			}
			if out, _ := c.try(t, "compare", "mixed", "--verify", "20"); !strings.Contains(out, "mixed   labelled") || !strings.Contains(out, "agree") {
				t.Error("compare says nothing of what is in shadow beside it")
			}
			if err := c.judged(t.Context(), probe(t, "mixed", false)); err != nil {
				t.Errorf("shadow denies: %v", err)
			}
			c.migrate(t, 1, "enforce", "mixed", "--yes")
			const seed = 2
			random := rand.New(rand.NewPCG(seed, seed))
			for range 4 {
				c.migrateUntilKilled(t, time.Duration(300+random.IntN(2500))*time.Millisecond, "enforce", "--all", "--accept", "a test", "--yes", "--settle", "1s")
				s.check(t, "enforce was killed")
				c.unwritten(t, "enforce was killed", was)
			}
			c.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--yes", "--settle", "1s")
			for range 2 {
				c.migrateUntilKilled(t, time.Duration(300+random.IntN(1500))*time.Millisecond, "adopt", "--all", "--yes", "--settle", "1s")
				s.check(t, "adopt was killed")
			}
			c.migrate(t, 0, "adopt", "--all", "--yes", "--settle", "1s")
			s.check(t, "adopt")
			for name := range kinds() {
				if c.policyOf(t, "kyverno.io/v1", name) != nil || c.policyOf(t, "kvap.dev/v1alpha1", name) == nil {
					t.Errorf("%s is not where it should be", name)
				}
				if got := c.record(t, name); got.Stage != v1alpha1.StageAdopted || got.Doing != nil || got.Original == nil {
					t.Errorf("%s: the record has %+v", name, got)
				}
				if err := c.judged(t.Context(), probe(t, name, false)); err == nil {
					t.Errorf("%s is not enforced", name)
				}
			}
			if kept := c.record(t, "mixed").Original.Policy; !strings.Contains(kept, "verifyImages") {
				t.Errorf("the rule that nobody carries out is not in the record: %s", kept)
			}
			c.migrate(t, 1, "rollback", "--all", "--yes")
			s.check(t, "rollback")
			c.migrate(t, 0, "finish")
			s.stop()
		})
	}
}

// The guard of the stand-in denies what Kyverno's does, and lets pass what that does.
func TestGuard(t *testing.T) {
	c := shared
	c.apply(t, labelledPolicy)
	t.Cleanup(func() { c.clean(t) })
	o := c.policyOf(t, "kyverno.io/v1", "labelled")
	o.SetFinalizers([]string{"example.com/held"})
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.close(t, false)
	change := func(f func(*unstructured.Unstructured)) error {
		o := c.policyOf(t, "kyverno.io/v1", "labelled")
		f(o)
		return c.Update(t.Context(), o)
	}
	if err := change(func(*unstructured.Unstructured) {}); err == nil || !strings.Contains(err.Error(), standin.GuardName) {
		t.Errorf("a change that changes nothing: %v", err)
	}
	if err := change(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) }); err == nil {
		t.Error("an annotation passes")
	}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Errorf("to delete it: %v", err)
	}
	if err := change(func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }); err != nil {
		t.Errorf("to take its finalizer away: %v", err)
	}
	testcluster.Soon(t, "it is gone", func() bool { return c.policyOf(t, "kyverno.io/v1", "labelled") == nil })
}
