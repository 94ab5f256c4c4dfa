package check

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Cost is what evaluating something costs, in units of the API server's budget.
type Cost struct {
	Field    string // an expression, or spec.validations, spec.matchConditions, spec.auditAnnotations
	Estimate int64  // about the most, with nothing cut short
	Measured int64  // the most that the server's counter gave on large objects
	Limit    int64
	// Driver says what of the object or the params the measured cost grows with most, where it
	// comes near to the limit, and Safe is how much of it there was while the limit was kept,
	// with everything else as it was measured. Safe is 0 where nothing alone makes the difference.
	Driver string
	Safe   int
}

// A costing is the costing of one policy.
type costing struct {
	sizes     cel.Sizes
	meter     *apiserver.Meter
	parsed    map[string]cel.Value // by field
	shape     map[string]int       // sizes of variables
	estimates map[string]int64     // by field
	params    []map[string]any     // those that bindings may give; none where they are not known
	read      *readField           // what the expressions read
	dearest   map[string]sample    // by field
}

// A sample is an object that was generated.
type sample struct {
	of   *schema.Type
	form worst
}

// near is the part of a limit above which a cost is told: objects may be a few times as large
// as what is assumed.
func near(limit int64) int64 { return limit / 3 }

// SizeOf is what is assumed at a path: what the user says of it or of its last field,
// or what is common.
func SizeOf(own map[string]int) cel.Sizes {
	return func(path string) int {
		last := path[strings.LastIndexByte(path, '.')+1:]
		if n := cmp.Or(own[path], own[last]); n > 0 {
			return n
		}
		switch {
		case strings.Contains(path, "rules[]."+last):
			return ofRoles(last)
		case last == "image":
			return image
		}
		return 0
	}
}

// image is how many characters a reference to an image has: the name is at most 255.
const image = 240

// ofRoles is how large the parts of a rule of a role are: there are many rules of a
// few resources, or few of many.
func ofRoles(field string) int {
	const resource = 63 + 1 + 31 // with a subresource
	switch field {
	case "resources", "resourceNames", "nonResourceURLs":
		return 30
	case "resources[]":
		return resource
	}
	return 0
}

// cost says what the expressions of a policy cost.
func (c *checking) cost(r *Result, s *anyPolicy) {
	k := &costing{
		sizes: c.options.Sizes, meter: c.meter(), parsed: map[string]cel.Value{}, shape: map[string]int{}, estimates: map[string]int64{},
		params: c.paramsOf(s), dearest: map[string]sample{},
	}
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		k.parsed[e.field] = v
		if e.role == variable {
			k.shape["variables."+e.name] = cel.SizeOf(v, k.at)
		}
	}
	measured := k.measure(s, c.largest(r, s))
	sums := map[string]*Cost{}
	for _, e := range s.expressions {
		v, ok := k.parsed[e.field]
		if !ok {
			continue
		}
		one := Cost{Field: e.field, Estimate: k.estimated(e.field, v), Measured: measured[e.field], Limit: apiserver.ExpressionBudget}
		if one.Measured > near(one.Limit) {
			one.Driver, one.Safe = k.safe(s, e, one.Limit)
		}
		r.Cost = append(r.Cost, one)
		for _, group := range groupsOf(e, s) {
			if sums[group] == nil {
				sums[group] = &Cost{Field: group, Limit: limitOf(group)}
			}
			sums[group].Estimate += one.Estimate
			sums[group].Measured += one.Measured
		}
	}
	for _, group := range slices.Sorted(maps.Keys(sums)) {
		r.Cost = append(r.Cost, *sums[group])
	}
	r.reportCosts(s)
}

// groupsOf are the budgets that an expression is paid from. A variable is evaluated
// once for the validations and once for their messages.
func groupsOf(e expression, s *anyPolicy) []string {
	switch e.role {
	case condition:
		return []string{"spec.matchConditions"}
	case audit:
		return []string{"spec.auditAnnotations"}
	case mutation:
		return []string{"spec.mutations"}
	case variable:
		if s.object.Mutating != nil {
			return []string{"spec.mutations"}
		}
	}
	return []string{"spec.validations"}
}

func limitOf(group string) int64 {
	if group == "spec.matchConditions" {
		return apiserver.MatchConditionBudget
	}
	return apiserver.PolicyBudget
}

// at is the assumed size at a path.
func (k *costing) at(path string) int {
	if n := k.shape[path]; n > 0 {
		return n
	}
	if k.sizes == nil {
		return SizeOf(nil)(path)
	}
	return k.sizes(path)
}

// safe is what there must not be more of for an expression to keep its limit, and how many.
// Of several it is what has to grow or to shrink least.
func (k *costing) safe(s *anyPolicy, e expression, limit int64) (driver string, size int) {
	sample, ok := k.dearest[e.field]
	if !ok {
		return "", 0
	}
	keeps := func(path string, n int) bool {
		w, of := sample.form, sample.form.sizes
		w.sizes = func(p string) (chars, items int) {
			if p == path {
				return n, n
			}
			return of(p)
		}
		measured := map[string]int64{}
		k.evaluate(s, sample.of, &w, measured, func(other expression) bool { return other.field == e.field })
		return measured[e.field] <= limit
	}
	const larger = 4 // times what is assumed is as large as is looked at
	nearest := math.Inf(1)
	collections, texts := k.read.paths()
	for _, paths := range [][]string{collections, texts} {
		for _, path := range paths {
			chars, items := sample.form.sizes(path)
			assumed := max(chars, items)
			if !keeps(path, 1) || keeps(path, larger*assumed) {
				continue // something else exceeds it, or nothing does
			}
			most := sort.Search(larger*assumed, func(n int) bool { return n > 1 && !keeps(path, n) }) - 1
			if far := math.Abs(math.Log(float64(most) / float64(assumed))); far < nearest {
				driver, size, nearest = inWords(path, slices.Contains(texts, path)), most, far
			}
		}
		if driver != "" { // a number of elements is what people know
			break
		}
	}
	return driver, size
}

// inWords is what there is so many of at a place.
func inWords(path string, text bool) string {
	field := strings.TrimSuffix(path, "[]")
	name := field[strings.LastIndexByte(field, '.')+1:]
	switch {
	case field != path && text:
		return "characters in each of " + name
	case text:
		return "characters of " + name
	}
	return name
}

// places are what the expressions read, with variables written out.
func (k *costing) places(s *anyPolicy) *readField {
	root := &readField{}
	written := map[string]cel.Value{}
	for _, e := range s.expressions {
		v, ok := k.parsed[e.field]
		if !ok {
			continue
		}
		v = writtenOut(v, written)
		if e.role == variable {
			written[e.name] = v
		}
		cel.Cost(v, func(path string) int {
			if old, ok := strings.CutPrefix(path, "oldObject"); ok {
				path = "object" + old // they are one and the same here
			}
			root.add(path)
			return 1
		})
	}
	return root
}

// writtenOut is v with its variables in place; v itself where that would be too large.
func writtenOut(v cel.Value, variables map[string]cel.Value) (out cel.Value) {
	defer func() {
		if r := recover(); r != nil {
			if _, large := r.(cel.TooLarge); !large {
				panic(r)
			}
			out = v
		}
	}()
	out = v
	for _, name := range v.Uses("variables") {
		if w, ok := variables[name]; ok {
			out = out.SubstituteField("variables", name, w)
		}
	}
	return out
}

// largest are large objects of the policy's first kinds, and what goes with them.
func (c *checking) largest(r *Result, s *anyPolicy) []*schema.Type {
	const most = 3
	set := c.of(r.Releases[len(r.Releases)-1]).set
	var out []*schema.Type
	for _, kind := range kindsOf(s.constraints, set) {
		if t := set.Type(kind); t != nil && len(out) < most {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		out = append(out, nil)
	}
	return out
}

// measure is the most that each expression cost on a few large objects.
func (k *costing) measure(s *anyPolicy, types []*schema.Type) map[string]int64 {
	out := map[string]int64{}
	k.read = k.places(s)
	for i, t := range types {
		for j, w := range k.variants(s) {
			const plain = 2 // variants that all kinds are tried with
			open := func(expression) bool { return true }
			if i > 0 && j >= plain {
				continue
			}
			if i+j > 0 {
				open = func(e expression) bool { return k.undecided(e, out) }
			}
			if slices.ContainsFunc(s.expressions, open) {
				before := maps.Clone(out)
				k.evaluate(s, t, w, out, open)
				for field, cost := range out {
					if cost > before[field] {
						k.dearest[field] = sample{t, *w}
					}
				}
			}
		}
	}
	return out
}

// undecided tells that an expression may come near to its limit, and has not yet: one
// look at it is not enough.
func (k *costing) undecided(e expression, measured map[string]int64) bool {
	const tenth = apiserver.ExpressionBudget / 10
	v, ok := k.parsed[e.field]
	return ok && measured[e.field] <= apiserver.ExpressionBudget && (measured[e.field] > tenth || k.estimated(e.field, v) > tenth)
}

// estimated is the estimate of an expression, made once.
func (k *costing) estimated(field string, v cel.Value) int64 {
	n, ok := k.estimates[field]
	if !ok {
		n = cel.Cost(v, k.at)
		k.estimates[field] = n
	}
	return n
}

// variants are ways to fill large objects: with long texts, and with the words that
// the policy itself has.
func (k *costing) variants(s *anyPolicy) []*worst {
	var words []string
	for _, e := range s.expressions {
		for _, m := range regexp.MustCompile(`'([^'\\]{1,60})'`).FindAllStringSubmatch(e.text, -1) {
			if !slices.Contains(words, m[1]) && len(words) < 20 {
				words = append(words, m[1])
			}
		}
	}
	full := func(path string) (chars, items int) { return cel.AssumedSize(path, k.at) }
	return []*worst{{sizes: full}, {sizes: full, texts: words, flag: true}, {sizes: full, flag: true}, {sizes: full, texts: words}}
}

// largestObject is how many characters a generated object has at most, about as many
// as etcd takes.
const largestObject = 1_500_000

func (k *costing) evaluate(s *anyPolicy, t *schema.Type, w *worst, most map[string]int64, open func(expression) bool) {
	root := k.read
	w.room = largestObject
	w.made = 0
	vars := apiserver.Authorizers()
	object := w.value(root.within("object"), t, "object")
	vars["object"] = object
	vars["oldObject"] = object
	vars["request"] = w.request()
	vars["namespaceObject"] = map[string]any{"metadata": map[string]any{"name": "default", "labels": map[string]any{}, "annotations": map[string]any{}}}
	params := []any{w.value(root.within("params"), nil, "params")}
	if len(k.params) > 0 {
		params = nil
		for _, p := range k.params {
			params = append(params, p)
		}
	}
	for _, vars["params"] = range params {
		variables := map[string]any{}
		vars["variables"] = variables
		for _, e := range s.expressions {
			if _, ok := k.parsed[e.field]; !ok || e.role != variable && !open(e) {
				continue
			}
			reading := k.meter.Measure(e.text, vars)
			most[e.field] = max(most[e.field], reading.Cost)
			if e.role == variable {
				variables[e.name] = reading.Value
			}
		}
	}
}

// paramsOf are the given params that a policy may be asked with: of its kind, and named by a
// binding of it.
func (c *checking) paramsOf(s *anyPolicy) (out []map[string]any) {
	if s.paramKind == nil {
		return nil
	}
	for _, p := range c.options.Params {
		o := unstructured.Unstructured{Object: p}
		if o.GetAPIVersion() != s.paramKind.APIVersion || o.GetKind() != s.paramKind.Kind {
			continue
		}
		if slices.ContainsFunc(c.bindings(s), func(b bound) bool {
			return b.param != nil && (b.param.Name == "" || b.param.Name == o.GetName()) && (b.param.Namespace == "" || b.param.Namespace == o.GetNamespace())
		}) {
			out = append(out, p)
		}
	}
	return out
}

// reportCosts warns of what was measured near to a limit, where an object that is larger in one
// way, and that can be stored, exceeds it. An estimate alone is no warning: it takes nothing
// for cut short. A sum is told where no single expression is.
func (r *Result) reportCosts(s *anyPolicy) {
	told := map[string]bool{}
	for _, c := range r.Cost {
		if told[c.Field] {
			continue
		}
		e := s.expression(c.Field)
		switch {
		case c.Measured > c.Limit:
			r.reportIn(0, e, 0, 0, overLimit(c, s.fails))
		case c.Measured > near(c.Limit) && (c.Driver != "" || e.text == ""):
			r.reportIn(0, e, 0, 0, nearLimit(c, s.fails))
		default:
			continue
		}
		if e.text != "" {
			for _, group := range groupsOf(e, s) {
				told[group] = true
			}
		}
	}
}
