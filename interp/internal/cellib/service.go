package cellib

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// A client asks services, and trusts the authorities of its bundle.
type client struct{ bundle string }

func clientType() *cel.Type { return cel.OpaqueType("kyverno.http") }

// outsideFunctions ask services, and for what is kept of them. A policy of a namespace
// asks no service.
func outsideFunctions() []libraryFunction {
	with := func(args ...*cel.Type) []*cel.Type { return append([]*cel.Type{textType()}, args...) }
	out := []libraryFunction{
		{names: both("globalContext", "Get"), args: with(), result: cel.DynType, call: globalContext},
		{names: both("globalContext", "Get"), args: with(textType()), result: cel.DynType, call: globalContext},
		{names: both("http", "Client"), args: with(), result: clientType(), has: onlyCluster, call: func(_ asker, args []any) (any, error) {
			return client{args[0].(string)}, nil
		}},
	}
	for _, m := range []struct {
		name string
		args []*cel.Type
		call call
	}{
		{"Get", with(), httpGet}, {"Get", with(pairsType()), httpGet},
		{"Post", with(cel.DynType), httpPost}, {"Post", with(cel.DynType, pairsType()), httpPost},
	} {
		plain := func(w asker, args []any) (any, error) { return m.call(w, append([]any{client{}}, args...)) }
		out = append(out,
			libraryFunction{names: both("http", m.name), args: m.args, result: cel.DynType, has: onlyCluster, call: plain},
			libraryFunction{names: both("", m.name), on: clientType(), args: m.args, result: cel.DynType, has: onlyCluster, call: m.call},
		)
	}
	return out
}

// globalContext is the data of an entry, or of one of its projections; null where there
// is no such entry.
func globalContext(w asker, args []any) (any, error) {
	name := args[0].(string)
	if len(args) > 1 && args[1] != "" {
		name += "." + args[1].(string)
	}
	ctx, cancel := waiting()
	defer cancel()
	value, found, err := w.Global(ctx, name)
	if err != nil || !found {
		return nil, err
	}
	return value, nil
}

func httpGet(w asker, args []any) (any, error) {
	return w.service(Call{URL: args[1].(string), Headers: headers(args[2:]), CABundle: args[0].(client).bundle})
}

func httpPost(w asker, args []any) (any, error) {
	body, err := json.Marshal(args[2])
	if err != nil {
		return nil, err
	}
	return w.service(Call{URL: args[1].(string), Headers: headers(args[3:]), Data: body, CABundle: args[0].(client).bundle})
}

func headers(args []any) map[string]string {
	if len(args) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, value := range args[0].(map[string]any) {
		out[key] = value.(string)
	}
	return out
}

// service is an answer with its status. One that is no JSON object stands in body.
func (w asker) service(c Call) (any, error) {
	ctx, cancel := waiting()
	defer cancel()
	status, answer, err := w.Service(ctx, c)
	if err != nil {
		return nil, err
	}
	var value any
	if kjson.Unmarshal(answer, &value) != nil {
		value = nil
	}
	out, ok := doubles(value).(map[string]any)
	if !ok {
		out = map[string]any{"body": doubles(value)}
	}
	out["statusCode"] = int64(status)
	return out, nil
}
