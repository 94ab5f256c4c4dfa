package cellib

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
)

// pureFunctions look at their arguments only, at the clock, and at chance.
func pureFunctions() []libraryFunction {
	lists := []*cel.Type{cel.ListType(objectType()), cel.ListType(objectType()), textType(), textType()}
	return []libraryFunction{
		{names: []string{"random", "random.random"}, result: textType(), call: func(w asker, _ []any) (any, error) { return w.Call("random", "[0-9a-z]{8}") }},
		{names: []string{"random", "random.random"}, args: []*cel.Type{textType()}, result: textType(), call: same("random")},
		{names: []string{"math.round"}, args: []*cel.Type{cel.DoubleType, cel.IntType}, result: cel.DoubleType, call: round},
		{names: []string{"listObjToMap", "transform.listObjToMap"}, args: lists, result: objectType(), call: listsToMap},
		{names: []string{"time.now"}, result: cel.TimestampType, call: func(w asker, _ []any) (any, error) { return w.Now(), nil }},
		{names: []string{"time.truncate"}, args: []*cel.Type{cel.TimestampType, cel.DurationType}, result: cel.TimestampType,
			call: func(_ asker, args []any) (any, error) {
				return args[0].(time.Time).Truncate(args[1].(time.Duration)), nil
			}},
		{names: []string{"time.toCron"}, args: []*cel.Type{cel.TimestampType}, result: textType(), call: func(_ asker, args []any) (any, error) {
			t := args[0].(time.Time).UTC()
			return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), t.Month(), t.Weekday()), nil
		}},
		{names: []string{"parseServiceAccount", "user.parseServiceAccount"}, args: []*cel.Type{textType()}, result: pairsType(), has: notGenerating, call: serviceAccount},
	}
}

// same is a function that JMESPath has too.
func same(function string) call {
	return func(w asker, args []any) (any, error) { return w.Call(function, args...) }
}

// round rounds half away from zero; less than no places round to tens and more.
func round(_ asker, args []any) (any, error) {
	places := args[1].(int64)
	if places < -300 || places > 300 {
		return nil, fmt.Errorf("the number of places must be between -300 and 300, not %d", places)
	}
	shift := math.Pow(10, float64(places))
	return math.Round(args[0].(float64)*shift) / shift, nil
}

// serviceAccount takes the name of a user apart. The parts are empty if it is not
// that of a service account.
func serviceAccount(_ asker, args []any) (any, error) {
	out := map[string]string{"Name": "", "Namespace": ""}
	parts := strings.Split(args[0].(string), ":")
	if len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		out["Namespace"], out["Name"] = parts[2], parts[3]
	}
	return out, nil
}

// listsToMap makes a map of the keys in one list of maps and the values in another. What
// has no value has null.
func listsToMap(_ asker, args []any) (any, error) {
	keys, values := args[0].([]any), args[1].([]any)
	if len(keys) != len(values) {
		return nil, fmt.Errorf("the lists have %d and %d elements; they must have as many", len(keys), len(values))
	}
	out := map[string]any{}
	for i := range keys {
		key, ok := keys[i].(map[string]any)[args[2].(string)].(string)
		if !ok {
			return nil, fmt.Errorf("element %d has no key that is a text", i)
		}
		out[key] = values[i].(map[string]any)[args[3].(string)]
	}
	return out, nil
}
