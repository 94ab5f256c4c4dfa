package pack

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
)

// A bound is how large the objects are for which the cost of guards is bounded.
type bound struct {
	bytes int // of JSON
	// What a list of it has at most, or lists inside of lists altogether: of
	// containers, of other things in a Pod, and elsewhere. 0 is as many as fit.
	containers, inPods, elsewhere int
}

// boundOf is for a failure policy. Under Fail an object beyond it is refused: hardly
// any that people write is a tenth as large, and no node runs a Pod of hundreds of
// containers. Under Ignore it would pass unjudged, so the bound is what etcd stores.
func boundOf(failurePolicy string) bound {
	if failurePolicy == string(policy.Ignore) {
		return bound{bytes: 1536 << 10}
	}
	return bound{bytes: 256 << 10, containers: 500, inPods: 1_000, elsewhere: 5_000}
}

// guardBudget is what the API server lets one evaluation of an expression cost.
const guardBudget = 1_000_000

// A worst case is the objects of a type within a bound.
type worstCase struct {
	bound
	types map[string]*schema.Type // of what expressions read, by its name
	// sizes are how many elements or characters there are at a path at most, and how
	// many where the bytes are in another place.
	sizes map[string][2]int
}

func newWorstCase(b bound, object, pod *schema.Type) worstCase {
	types := map[string]*schema.Type{"object": object, "oldObject": object, vap.PodName: pod, vap.OldPodName: pod}
	return worstCase{b, types, map[string][2]int{}}
}

// exceeds tells that one evaluation of an expression may cost more than the limit.
func (w worstCase) exceeds(v cel.Value, limit int64) bool {
	places := placesOf(v)
	slices.SortStableFunc(places, func(a, b string) int { return strings.Count(a, "[]") - strings.Count(b, "[]") })
	return w.exceedsAt(v, places, limit)
}

// exceedsAt looks at one of several places being full. Mostly the cost is within the
// limit even if all are at once; where it is not, halves of them are looked at: a list
// and what is in its elements apart, which multiply.
func (w worstCase) exceedsAt(v cel.Value, places []string, limit int64) bool {
	if len(places) == 0 || w.costAt(v, places...) <= limit {
		return false
	}
	half := len(places) / 2
	return half == 0 || w.exceedsAt(v, places[:half], limit) || w.exceedsAt(v, places[half:], limit)
}

// dearest is about the most that one evaluation of an expression costs, and where. The
// cost grows with each list and text as its bytes do, so it is largest where all bytes
// are in one place: in the elements of one list, which are then as small as they can be,
// or in one text.
func (w worstCase) dearest(v cel.Value) (place string, cost int64) {
	for _, p := range placesOf(v) {
		if c := w.costAt(v, p); c > cost {
			place, cost = p, c
		}
	}
	return place, cost
}

// placesOf are the paths of what an expression reads.
func placesOf(v cel.Value) []string {
	var places []string
	seen := map[string]bool{}
	cel.Cost(v, func(path string) int {
		if !seen[path] {
			seen[path] = true
			places = append(places, path)
		}
		return 1
	})
	return places
}

// costAt is what an expression costs where all bytes are in one place, or in each of
// several.
func (w worstCase) costAt(v cel.Value, places ...string) int64 {
	return cel.Cost(v, func(path string) int {
		if slices.Contains(places, path) {
			return w.size(path)[0]
		}
		return w.size(path)[1]
	})
}

func (w worstCase) size(path string) [2]int {
	sizes, known := w.sizes[path]
	if !known {
		sizes = [2]int{w.most(path), 1}
		if t, _ := w.typeAt(path); t != nil && t.Kind == schema.Object && !isRequest(path) {
			sizes[1] = min(2, sizes[0]) // a name, and what it is the name of
		}
		w.sizes[path] = sizes
	}
	return sizes
}

// most is how many elements a value at a path has at most, or characters.
func (w worstCase) most(path string) int {
	if isRequest(path) {
		return longestOfRequest
	}
	t, inPod := w.typeAt(path)
	most, each := w.elsewhere, len(`"",`)
	if inPod {
		most = w.inPods
	}
	switch {
	case t == nil || t.Kind == schema.Any:
	case t.Kind == schema.Object:
		return len(t.Fields)
	case t.Kind == schema.Map:
		each = leastBytes(t)
	case t.Kind == schema.List:
		each = leastBytes(t.Elem)
		if isContainer(t.Elem) {
			most = w.containers
		}
	case t.Kind == schema.IntOrString || t.Format == schema.Quantity:
		return longestNumber
	default:
		return w.bytes
	}
	if fit := w.bytes / each; most == 0 || fit < most {
		return fit
	}
	return most
}

// longestOfRequest is more than the groups that anybody is in, or the characters of
// their names.
const longestOfRequest = 5_000

// longestNumber is how many characters a number has that the API server takes for one.
const longestNumber = 64

// isRequest tells of what is not read from an object under review.
func isRequest(path string) bool {
	root, _, _ := strings.Cut(path, ".")
	switch root {
	case "object", "oldObject", vap.PodName, vap.OldPodName:
		return false
	}
	return true
}

// typeAt is the type of a value at a path of what expressions read, and whether it is
// within a Pod.
func (w worstCase) typeAt(path string) (typ *schema.Type, inPod bool) {
	root, rest, _ := strings.Cut(path, ".")
	typ = w.types[root]
	for _, name := range strings.FieldsFunc(strings.ReplaceAll(rest, "[]", ".[]"), func(r rune) bool { return r == '.' }) {
		inPod = inPod || typ != nil && typ.Fields["containers"] != nil && typ.Fields["dnsPolicy"] != nil
		typ = typeWithin(typ, name)
	}
	return typ, inPod
}

// isContainer tells of the type of containers of any kind.
func isContainer(t *schema.Type) bool { return t != nil && t.Fields["terminationMessagePath"] != nil }

// typeWithin is the type of a field or, for [], of an element.
func typeWithin(typ *schema.Type, name string) *schema.Type {
	switch {
	case typ == nil:
		return nil
	case name == "[]" || typ.Kind == schema.Map:
		return typ.Elem
	}
	if f, ok := typ.Fields[name]; ok {
		return f.Type
	}
	return nil
}

// leastBytes is how much JSON an element of a list takes at least, with its comma.
func leastBytes(typ *schema.Type) int {
	if typ == nil {
		return len(`"",`)
	}
	switch typ.Kind {
	case schema.Map: // an entry: keys differ, so few are shorter than three characters
		return len(`"abc":`) + leastBytes(typ.Elem)
	case schema.Object:
		if isContainer(typ) {
			return len(leastContainer) + len(`,`)
		}
		n := len(`{},`)
		for _, f := range typ.Fields {
			if f.Required || f.Mandatory {
				n += len(f.Name) + len(`"":`) + requiredBytes(f.Type)
			}
		}
		return n
	}
	return len(`"",`)
}

// leastContainer is a container as no policy sees a smaller one: the API server has
// filled in what is not written before it asks.
const leastContainer = `{"image":"a","imagePullPolicy":"Never","name":"a","resources":{},` +
	`"terminationMessagePath":"/","terminationMessagePolicy":"File"}`

// requiredBytes is leastBytes of a required field: names are not empty.
func requiredBytes(typ *schema.Type) int {
	switch typ.Kind {
	case schema.String:
		return len(`"a",`)
	case schema.Map:
		return len(`{},`)
	}
	return leastBytes(typ)
}
