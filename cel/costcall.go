package cel

import "math"

// call is the cost and result of functions and methods; a receiver is the first
// argument. See interpreter/runtimecost.go of cel-go and pkg/cel/library/cost.go
// of the API server.
func (c coster) call(n *node) (float64, sizeShape) {
	cost, args := c.all(n.args)
	k, s := callCost(n.name, args)
	return cost + k, s
}

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
