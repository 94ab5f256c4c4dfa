package cel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
)

// actualCost is what the API server counts, and whether there is a count: an
// evaluation that fails has none.
func actualCost(t testing.TB, e *celgo.Env, text string, vars map[string]any) (int64, bool) {
	t.Helper()
	ast, err := compile(e, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := e.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	_, details, err := p.Eval(vars)
	if details == nil || details.ActualCost() == nil || err != nil {
		return 0, false
	}
	return int64(*details.ActualCost()), true
}

func TestCostCoversRandomExpressions(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	counted := 0
	for seed := range uint64(1500) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 3))}
		v := s.bool(3)
		if _, err := compile(e, v.String()); err != nil {
			continue
		}
		vars := map[string]any{"object": s.object(), "oldObject": s.object()}
		got, ok := actualCost(t, e, v.String(), vars)
		if !ok {
			continue
		}
		counted++
		// no string, list or map of a random object is larger
		if est := Cost(v, func(string) int { return 5 }); est < got {
			t.Errorf("%s\ncosts %d, estimated %d\n%v", v, got, est, vars)
		}
	}
	if counted < 200 {
		t.Errorf("only %d expressions count", counted)
	}
}

// pod has n of everything that a pod can have more than one of, and strings of n characters.
func pod(n int) map[string]any {
	text := strings.Repeat("a", n)
	env, labels, containers := []any{}, map[string]any{}, []any{}
	for i := range n {
		env = append(env, map[string]any{"name": text, "value": text})
		labels[fmt.Sprintf("%0*d", n, i)] = text
	}
	for range n {
		containers = append(containers, map[string]any{"name": text, "image": text, "env": env, "args": []any{text, text}})
	}
	return map[string]any{
		"metadata": map[string]any{"name": text, "labels": labels},
		"spec":     map[string]any{"containers": containers, "initContainers": containers, "ip": "10.0.0.1", "q": "1Gi"},
	}
}

// The worst cases: every element is looked at, so the count comes near to the estimate.
func TestCostCoversWorstCase(t *testing.T) {
	for _, text := range []string{
		`object.spec.containers.all(c, has(c.image) && !c.image.endsWith(':latest'))`,
		`object.spec.containers.all(c, c.env.all(e, e.name != 'zz' && !e.value.contains('zz')))`,
		`!object.spec.containers.exists(c, c.image.matches('^b+$'))`,
		`(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image.matches(r'^(docker\.io/)?[a-z]+'))`,
		`object.metadata.labels.all(k, !k.startsWith('zz') && object.metadata.labels[k] != 'zz')`,
		`object.metadata.?labels[?'app'].orValue('') == '' ? size(object.metadata.labels) > 0 : false`,
		`object.spec.containers.filter(c, c.name in ['x', 'y', c.image == '' ? 'z' : 'w']).size() == 0`,
		`object.spec.containers.map(c, c.name != 'x', c.image + ':' + c.name).exists_one(i, i == 'x') == false`,
		`object.spec.containers.map(c, c.args).exists(a, a.exists(b, b == 'x')) == false`,
		`object.spec.containers.map(c, c.name).join(',').lowerAscii().replace('zz', 'x').split('z').size() == 1`,
		`sets.contains(object.spec.containers.map(c, c.name), ['x', 'y']) == false`,
		`quantity(object.spec.q).isLessThan(quantity('2Gi')) && isIP(object.spec.ip) && ip(object.spec.ip).family() == 4`,
		`cidr('10.0.0.0/8').containsIP(object.spec.ip) && url('https://a.b/c').getHost() == 'a.b'`,
		`object.spec.?ip.optMap(x, x + 'a').orValue('b').trim().substring(1).size() > 0`,
		`'%s is %s'.format([object.metadata.name, object.spec.containers.map(c, c.name)]).size() > 0`,
		`{'a': object.metadata.name, 'b': object.metadata.name}.exists(k, k == 'c') == false`,
		`object.spec.containers.map(c, size(c.args)).sum() > 0 && object.spec.containers.map(c, c.name).isSorted()`,
		`object.spec.containers.map(c, c.name).indexOf('z') == -1`,
		`object.spec.containers.map(c, c.name).distinct().sort().size() > 0`,
		`object.spec.containers.sortBy(c, c.name)[0].name == object.metadata.name`,
		`object.spec.containers.all(i, c, i >= 0 && c.name != 'z')`,
		`object.metadata.labels.transformMap(k, v, v + k).size() > 0 && object.metadata.labels.transformList(k, v, k != 'z', v).size() > 0`,
		`object.metadata.labels == object.metadata.labels && object.spec.containers == object.spec.initContainers`,
		`object.metadata.name.find('a+') == object.metadata.name && object.metadata.name.findAll('a').size() > 0`,
		`format.dns1123Label().validate(object.metadata.name).orValue([]).size() >= 0`,
		`[[1, 2], [3]].flatten().reverse().slice(0, 2).size() == 2 && lists.range(3).size() == 3`,
		`-object.spec.containers.size() * 3 - 1 < 4 && !(true && false)`,
	} {
		v := parse(t, text)
		for _, n := range []int{1, 3, 20} {
			got, ok := actualCost(t, env(t, Latest), text, map[string]any{"object": pod(n)})
			if !ok {
				t.Errorf("%s with %d is an error", text, n)
				continue
			}
			est := Cost(v, func(path string) int { return max(n, 8) })
			if est < got {
				t.Errorf("%s with %d costs %d, estimated %d", text, n, got, est)
			}
			if n == 20 {
				t.Logf("%6d of %6d %s", got, est, text)
			}
		}
	}
}

func TestCostOfTheUnbounded(t *testing.T) {
	v := parse(t, `object.a.all(a, a.b.all(b, b.c.all(c, c.d.all(d, d.e.all(e, e.f.all(f, f.g.all(g, g.h.all(h, h == 1))))))))`)
	if got := Cost(v, func(string) int { return 1 << 30 }); got != 1<<62 {
		t.Errorf("got %d", got)
	}
	if got := Cost(parse(t, `authorizer.path('/x').check('get').allowed()`), nil); got < 350_000 || got > 351_000 {
		t.Errorf("got %d", got)
	}
	for text, want := range map[string]int{`'abc'`: 3, `[1, 2]`: 2, `object.spec.containers`: 30, `object.spec.containers + object.spec.initContainers`: 60} {
		if got := SizeOf(parse(t, text), nil); got != want {
			t.Errorf("size of %s: got %d, want %d", text, got, want)
		}
	}
}
