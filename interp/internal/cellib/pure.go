package cellib

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
)

// pure is the functions that look at their arguments only, and at the clock.
func pure(w World) []cel.EnvOption {
	text, object := []*cel.Type{cel.StringType}, cel.MapType(cel.StringType, cel.DynType)
	same := func(name, id string, result *cel.Type, function string) cel.EnvOption {
		return overload(name, id, text, result, func(args []any) (any, error) { return w.Call(function, args...) })
	}
	return []cel.EnvOption{
		same("md5", "md5_string", cel.StringType, "md5"),
		same("sha1", "sha1_string", cel.StringType, "sha1"),
		same("sha256", "sha256_string", cel.StringType, "sha256"),
		same("json.unmarshal", "json_unmarshal_string", cel.DynType, "parse_json"),
		same("yaml.parse", "yaml_parse_string", cel.DynType, "parse_yaml"),
		same("x509.decode", "x509_decode_string", object, "x509_decode"),
		same("random", "random_string", cel.StringType, "random"),
		overload("random", "random_default", nil, cel.StringType, func([]any) (any, error) { return w.Call("random", "[0-9a-zA-Z]{8}") }),
		overload("math.round", "math_round_double_int", []*cel.Type{cel.DoubleType, cel.IntType}, cel.DoubleType, round),
		overload("parseServiceAccount", "parse_service_account_string", text, cel.MapType(cel.StringType, cel.StringType), serviceAccount),
		overload("listObjToMap", "list_obj_to_map", []*cel.Type{cel.ListType(object), cel.ListType(object), cel.StringType, cel.StringType}, object, listsToMap),
		overload("time.now", "time_now", nil, cel.TimestampType, func([]any) (any, error) { return w.Now(), nil }),
		overload("time.truncate", "time_truncate_timestamp_duration", []*cel.Type{cel.TimestampType, cel.DurationType}, cel.TimestampType,
			func(args []any) (any, error) { return args[0].(time.Time).Truncate(args[1].(time.Duration)), nil }),
		overload("time.toCron", "time_to_cron_timestamp", []*cel.Type{cel.TimestampType}, cel.StringType,
			func(args []any) (any, error) { return w.Call("time_to_cron", args[0].(time.Time).Format(time.RFC3339)) }),
	}
}

func round(args []any) (any, error) {
	places := args[1].(int64)
	if places < 0 || places > 300 {
		return nil, fmt.Errorf("the number of places must be between 0 and 300, not %d", places)
	}
	shift := math.Pow(10, float64(places))
	return math.Round(args[0].(float64)*shift) / shift, nil
}

// serviceAccount takes the name of a user apart. The parts are empty if it is not
// that of a service account.
func serviceAccount(args []any) (any, error) {
	out := map[string]string{"Name": "", "Namespace": ""}
	parts := strings.Split(args[0].(string), ":")
	if len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		out["Namespace"], out["Name"] = parts[2], parts[3]
	}
	return out, nil
}

// listsToMap makes a map of the keys in one list of maps and the values in another.
func listsToMap(args []any) (any, error) {
	keys, values := args[0].([]any), args[1].([]any)
	if len(keys) != len(values) {
		return nil, fmt.Errorf("the lists have %d and %d elements; they must have as many", len(keys), len(values))
	}
	out := map[string]any{}
	for i := range keys {
		k, _ := keys[i].(map[string]any)
		v, _ := values[i].(map[string]any)
		key, ok := k[args[2].(string)].(string)
		value, found := v[args[3].(string)]
		if !ok || !found {
			return nil, fmt.Errorf("element %d has no key or no value", i)
		}
		out[key] = value
	}
	return out, nil
}
