package cel

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// Sizes says how many characters a string, elements a list or entries a map at a
// path has at most; 0 when it has no opinion. A path is a variable with fields,
// as object.spec.containers; [] stands for any element of a list, key of a map
// or value under a key: object.spec.containers[].image.
type Sizes func(path string) int

// Cost is about the most that one evaluation of v costs, in the units of the API
// server's budget, when strings, lists and maps are no larger than sizes says,
// or than is common where it says nothing. It is meant never to be less than
// what the server counts; nothing is taken for short-circuited.
//
// A variable of a policy costs what its selection costs: the expression behind
// it is evaluated once and must be counted once.
func Cost(v Value, sizes Sizes) int64 {
	if v.IsZero() {
		return 0
	}
	cost, _ := newCoster(sizes).of(v.n)
	return saturate(cost)
}

// SizeOf is about the largest size of v's value under the assumptions of Cost,
// so that sizes can speak of a variable that stands for v.
func SizeOf(v Value, sizes Sizes) int {
	if v.IsZero() {
		return 0
	}
	_, s := newCoster(sizes).of(v.n)
	return int(min(saturate(max(s.chars, s.items)), math.MaxInt32))
}

// AssumedSize is how many characters a text at a path is assumed to have, and how
// many elements a list or map, where sizes says nothing of it.
func AssumedSize(path string, sizes Sizes) (chars, items int) {
	p := newPlace(path, sizes)
	return int(p.chars), int(p.items)
}

func saturate(f float64) int64 {
	if f >= 1<<62 {
		return 1 << 62
	}
	return int64(math.Ceil(f))
}

// The unit costs of cel-go and of the API server's libraries.
const (
	costList  = 10
	costMap   = 30
	costCheck = 350_000 // authorizer...check()
	perChar   = 0.1
	perRegex  = 0.25
)

// commonReplaced is how often a text has what replace() looks for, mostly.
const commonReplaced = 4

// A sizeShape is what is assumed of a value: of a string its characters, of a list or
// map its elements. Of a value of unknown type it is both.
type sizeShape struct {
	chars, items float64
	at           *sizedPath   // where it was read, if it was read
	also         []*sizedPath // other places it may have been read at, as in a.?b.orValue(c)
	elem         *sizeShape   // of an element, if that is not what is there
}

func scalar() sizeShape { return sizeShape{chars: 1, items: 1} }

func (s sizeShape) any() float64 { return max(s.chars, s.items) }

// or is a shape for a value that is one or the other.
func (s sizeShape) or(t sizeShape) sizeShape {
	u := s
	switch {
	case u.at == nil && u.elem == nil:
		u.at, u.elem, u.also = t.at, t.elem, t.also
	case u.at != nil && t.at != nil && len(s.also)+len(t.also) < mostPlaces:
		u.also = slices.Concat(s.also, []*sizedPath{t.at}, t.also)
	}
	u.chars, u.items = max(s.chars, t.chars), max(s.items, t.items)
	return u
}

// mostPlaces is at how many more places a value may have been read.
const mostPlaces = 4

// A sizedPath is a path, with what is assumed of the value there.
type sizedPath struct {
	path         string
	chars, items float64
	below        map[string]*sizedPath // by a step of a path: .name or []
}

func newPlace(path string, sizes Sizes) *sizedPath {
	if sizes != nil {
		if n := float64(sizes(path)); n > 0 {
			return &sizedPath{path: path, chars: n, items: n}
		}
	}
	chars, items := commonSize(path[strings.LastIndexByte(path, '.')+1:])
	return &sizedPath{path: path, chars: chars, items: items}
}

func (p *sizedPath) shape() sizeShape { return sizeShape{chars: p.chars, items: p.items, at: p} }

type coster struct {
	sizes  Sizes
	bound  map[string]sizeShape
	places sizeShape // below which the variables are
}

func newCoster(sizes Sizes) coster {
	return coster{sizes: sizes, places: sizeShape{at: &sizedPath{}}}
}

// below is what is read one step below a value. Each place is made once, as expressions
// read the same again and again.
func (c coster) below(s sizeShape, step string) sizeShape {
	switch {
	case s.elem != nil:
		return *s.elem
	case s.at == nil:
		return newPlace(step, c.sizes).shape()
	}
	out := c.place(s.at, step).shape()
	for _, other := range s.also {
		place := c.place(other, step)
		out.also = append(out.also, place)
		out.chars, out.items = max(out.chars, place.chars), max(out.items, place.items)
	}
	return out
}

func (c coster) place(at *sizedPath, step string) *sizedPath {
	if at.below == nil {
		at.below = map[string]*sizedPath{}
	}
	place := at.below[step]
	if place == nil {
		place = newPlace(at.path+step, c.sizes)
		at.below[step] = place
	}
	return place
}

// commonSize is more than all but the oddest objects have under a field of that name.
func commonSize(field string) (chars, items float64) {
	switch field {
	case "containers", "initContainers", "ephemeralContainers":
		return 1, 30
	case "env", "volumeMounts", "volumes", "command", "args":
		return 1, 100
	case "ports", "envFrom", "capabilities", "add", "drop", "tolerations", "ownerReferences", "imagePullSecrets":
		return 1, 30
	case "labels", "annotations":
		return 1, 100
	case "rules": // of roles, ingresses and network policies
		return 1, 60
	case "verbs", "apiGroups":
		return 1, 20
	case "verbs[]", "apiGroups[]":
		return 63, 1
	case "labels[]", "name", "namespace", "kind", "apiVersion":
		return 253, 1
	case "image", "annotations[]":
		return 1024, 1
	}
	return 256, 100
}

// of is what it costs to evaluate n, and the shape of its value.
func (c coster) of(n *node) (float64, sizeShape) {
	switch n.op {
	case opIdent:
		if s, ok := c.bound[n.name]; ok {
			return 1, s
		}
		return 1, c.below(c.places, n.name)
	case opString, opBytes:
		return 0, sizeShape{chars: float64(len(n.lit.(string)))}
	case opNull, opBool, opInt, opUint, opDouble:
		return 0, scalar()
	case opHas:
		cost, _ := c.of(n.args[0])
		return cost + 1, scalar()
	case opSelect, opOpt:
		cost, s := c.of(n.args[0])
		return cost + 1, c.below(s, "."+n.name)
	case opIndex, opOptIdx:
		cost, s := c.of(n.args[0])
		key, _ := c.of(n.args[1])
		step := "[]"
		if name, ok := n.field(); ok {
			step = "." + name
		}
		return cost + key + 1, c.below(s, step)
	case opMacro:
		return c.macro(n)
	case opCall, opMember: // a receiver is the first argument
		cost, args := c.all(n.args)
		k, s := callCost(n.name, args)
		return cost + k, s
	case opBinary:
		return c.binary(n)
	case opCond:
		cost, _ := c.of(n.args[0])
		k, s := c.of(n.args[1])
		l, t := c.of(n.args[2])
		return cost + max(k, l), s.or(t)
	}
	return c.parts(n)
}

func (c coster) all(ns []*node) (cost float64, shapes []sizeShape) {
	shapes = make([]sizeShape, 0, len(ns))
	for _, n := range ns {
		k, s := c.of(n)
		cost += k
		shapes = append(shapes, s)
	}
	return cost, shapes
}

// parts is for the nodes that cost what their parts do, and something to make.
func (c coster) parts(n *node) (float64, sizeShape) {
	cost, shapes := c.all(n.args)
	switch n.op {
	case opMaybe:
		return cost, shapes[0]
	case opNot, opNeg:
		return cost + 1, scalar()
	case opList, opMap, opStruct:
		made := sizeShape{items: float64(len(shapes)), elem: &sizeShape{}}
		for _, s := range shapes {
			*made.elem = made.elem.or(s)
		}
		if n.op == opList {
			return cost + costList, made
		}
		return cost + costMap + costList, made
	}
	return cost, scalar() // && and ||
}

func (c coster) binary(n *node) (float64, sizeShape) {
	cost, s := c.all(n.args)
	x, y := s[0], s[1]
	switch n.operator() {
	case In:
		return cost + max(1, y.items), scalar()
	case Plus:
		sum := sizeShape{chars: x.chars + y.chars, items: x.items + y.items, at: x.at, elem: x.elem, also: x.or(y).also}
		if e := x.or(y); e.elem != nil && x.elem != nil && y.elem != nil {
			both := x.elem.or(*y.elem)
			sum.elem = &both
		}
		return cost + per(perChar, sum.chars), sum
	case Minus, Times, Over, Modulo:
		return cost + 1, scalar()
	}
	return cost + per(perChar, min(x.any(), y.any())), scalar()
}

// per is the cost of going through n characters, and 1 at least.
func per(factor, n float64) float64 { return max(1, math.Ceil(factor*n)) }

// macro counts the loops that macros expand to.
func (c coster) macro(n *node) (float64, sizeShape) {
	cost, list := c.of(n.args[0])
	inner := c
	inner.bound = map[string]sizeShape{}
	maps.Copy(inner.bound, c.bound)
	elem := c.below(list, "[]")
	for _, x := range n.vars {
		inner.bound[x] = elem
	}
	switch n.macro() {
	case MacroOptMap, MacroOptFlatMap: // the expansion evaluates the optional twice
		inner.bound[n.vars[0]] = list
		body, s := inner.of(n.args[1])
		return 2*cost + body + 20, s
	}
	body, shapes := inner.all(n.args[1:])
	result := shapes[len(shapes)-1]
	made := sizeShape{items: list.items, elem: &result}
	switch n.macro() {
	case MacroFilter:
		return cost + list.items*(body+14) + 2, list
	case MacroMap, MacroTransformList:
		return cost + list.items*(body+13) + 2, made
	case MacroTransformMap, MacroTransformMapEntry:
		return cost + list.items*(body+8) + 2, made
	case MacroSortBy:
		return cost + list.items*(body+13) + quadratic(list.items) + 20, list
	}
	return cost + list.items*(body+5) + 4, scalar()
}

// quadratic is for the list functions that compare each element with each.
func quadratic(items float64) float64 { return 3*items*items + items + costList + 1 }

// callCost is the cost and result of functions and methods. See interpreter/runtimecost.go
// of cel-go and pkg/cel/library/cost.go of the API server.
func callCost(name string, args []sizeShape) (float64, sizeShape) {
	if len(args) == 0 {
		return 1, scalar()
	}
	x, y := args[0], args[len(args)-1]
	switch name {
	case "startsWith", "endsWith":
		return per(perChar, y.chars), scalar()
	case "contains":
		return per(perChar, x.chars) * per(perChar, y.chars), scalar()
	case "matches", "find":
		return regexCost(x.chars, y.chars), sizeShape{chars: x.chars}
	case "findAll":
		return regexCost(x.chars, args[1].chars), listOf(x.chars, x)
	case "validate":
		return regexCost(y.chars, longestFormat), sizeShape{chars: y.chars, items: 2}
	case "orValue", "or", "value":
		return 1, x.or(y)
	case "optional.of", "optional.ofNonZeroValue", "dyn":
		return 1, x
	case "check":
		return costCheck, scalar()
	case "fieldSelector", "labelSelector":
		return per(2*perChar, y.chars) + 1, scalar()
	case "sets.contains", "sets.equivalent", "sets.intersects":
		return 2*max(1, x.items)*max(1, y.items) + 1, scalar()
	case "lowerAscii", "upperAscii", "trim", "substring", "charAt",
		"url", "quantity", "isQuantity", "ip", "isIP", "cidr", "isCIDR", "semver", "isSemver", "isURL",
		"string", "bytes", "int", "uint", "double", "bool", "duration", "timestamp", "jsonpatch.escapeKey":
		return per(perChar, x.chars), sizeShape{chars: max(64, 2*x.chars)}
	case "ip.isCanonical", "containsIP", "containsCIDR":
		sum := 0.0
		for _, a := range args {
			sum += a.any()
		}
		return per(perChar, 8*sum) + 3, scalar()
	case "strings.quote":
		return per(perChar, x.chars), sizeShape{chars: 4*x.chars + 2}
	case "format": // every argument may be there more than once, but mostly is not
		return per(perChar, x.chars), sizeShape{chars: x.chars + 2*y.items*y.elemAny()}
	case "replace":
		times := min(x.chars, commonReplaced)
		if args[1].chars == 0 { // which is around each character
			times = x.chars + 1
		}
		return per(2*perChar, x.chars), sizeShape{chars: x.chars + times*y.chars}
	case "split":
		return per(2*perChar, x.chars), listOf(x.chars+1, sizeShape{chars: x.chars})
	case "join":
		n := x.items * (x.elemAny() + y.chars)
		if len(args) == 1 {
			n = x.items * x.elemAny()
		}
		return per(2*perChar, n), sizeShape{chars: n}
	case "isSorted", "sum", "min", "max", "indexOf", "lastIndexOf", "includes":
		return x.items*max(1, perChar*x.elemAny()) + perChar*x.chars + 1, x.anElem()
	case "slice", "reverse", "lists.range":
		return x.items + x.chars + costList + 1, x
	case "flatten":
		inner := max(1, x.elemAny())
		return 2*x.items*inner + costList + 1, sizeShape{items: x.items * inner, at: x.at, elem: x.elem}
	case "sort", "distinct":
		return quadratic(x.items), x
	case "first", "last", "unwrapOpt", "optional.unwrap":
		return 1 + x.items, x.or(x.anElem())
	}
	return 1, scalar()
}

// longestFormat is the longest regex behind a named format, the one of URIs.
const longestFormat = 2048

func regexCost(chars, regex float64) float64 {
	return math.Ceil(perChar*(chars+1)) * max(1, math.Ceil(perRegex*regex))
}

func listOf(items float64, elem sizeShape) sizeShape { return sizeShape{items: items, elem: &elem} }

// anElem is the shape of an element, where it is known, else of a common string.
func (s sizeShape) anElem() sizeShape {
	if s.elem != nil {
		return *s.elem
	}
	path := "[]"
	if s.at != nil {
		path = s.at.path + path
	}
	return sizeShape{chars: 256, items: 1, at: &sizedPath{path: path}}
}

func (s sizeShape) elemAny() float64 { return s.anElem().any() }
