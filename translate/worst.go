package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// largestObject is how many bytes of JSON an object has at most for which the cost
// of guards is bounded. What etcd stores may be six times as large, but hardly any
// object that people write is a tenth of it.
const largestObject = 256 << 10

// longestList is how many elements a list of it has at most, or lists inside of
// lists altogether: twice as many as containers fit, and more capabilities,
// arguments or variables of the environment than anybody has.
const longestList = 5_000

// guardBudget is what the API server lets one evaluation of an expression cost.
const guardBudget = 1_000_000

// worstCost is about the most that one evaluation of a guard costs on an object of
// a target that has as many bytes as size. The cost grows with each list and text
// as its bytes do, so it is largest where all bytes are in one place: in the
// elements of one list, which are then as small as they can be, or in one text.
func worstCost(guard cel.Bool, typ *schema.Type, size int) int64 {
	var worst int64
	for _, place := range placesOf(guard) {
		worst = max(worst, costAt(guard, typ, place, size))
	}
	return worst
}

// placesOf are the paths of what a guard reads.
func placesOf(guard cel.Bool) []string {
	var places []string
	seen := map[string]bool{}
	cel.Cost(guard.Value, func(path string) int {
		if !seen[path] {
			seen[path] = true
			places = append(places, path)
		}
		return 1
	})
	return places
}

// costAt is what a guard costs where all bytes are in one place.
func costAt(guard cel.Bool, typ *schema.Type, place string, size int) int64 {
	part := elementAt(typ, place)
	many := size / leastBytes(part)
	if part != nil {
		many = min(many, longestList)
	}
	return cel.Cost(guard.Value, func(path string) int {
		if path == place {
			return many
		}
		return 1
	})
}

// elementAt is the type of what a value at a path of the object, or of the old
// one, is made of: of a list its elements, of a text its characters.
func elementAt(typ *schema.Type, path string) *schema.Type {
	root, rest, _ := strings.Cut(path, ".")
	if root != "object" && root != "oldObject" {
		return &schema.Type{Kind: schema.String} // a text of the request is part of none
	}
	for _, name := range strings.FieldsFunc(strings.ReplaceAll(rest, "[]", ".[]"), func(r rune) bool { return r == '.' }) {
		typ = typeWithin(typ, name)
	}
	if typ == nil || typ.Kind == schema.Any {
		return &schema.Type{Kind: schema.Any}
	}
	if typ.Kind == schema.Map {
		return typ
	}
	return typ.Elem
}

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
// nil is a character of a text.
func leastBytes(typ *schema.Type) int {
	if typ == nil {
		return 1
	}
	switch typ.Kind {
	case schema.Map: // an entry: keys differ, so few are shorter than three characters
		return len(`"abc":`) + leastBytes(typ.Elem)
	case schema.Object:
		if typ.Fields["terminationMessagePath"] != nil {
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
