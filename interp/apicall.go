package interp

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/policy"
)

// An apiCall is an apiCall entry, read once.
type apiCall struct {
	policy    *policy.Policy
	source    *policy.APICallEntry
	path, url *text
	headers   []headerText
	data      []templateField
	query     *query
	otherwise *template // nil when absent
}

type headerText struct {
	key   string
	value *text
}

func readAPICall(p *policy.Policy, e *policy.APICallEntry) loading {
	c := &apiCall{policy: p, source: e, path: readText(e.URLPath.Value, e.URLPath.Pos), query: readQuery(e.JMESPath)}
	if e.Service != nil {
		c.url = readText(e.Service.URL.Value, e.Service.URL.Pos)
		for _, h := range e.Service.Headers {
			c.headers = append(c.headers, headerText{h.Key, readText(h.Value, h.Pos)})
		}
	}
	for _, d := range e.Data {
		c.data = append(c.data, templateField{key: d.Key, value: readDocument(d.Value)})
	}
	if e.Default != nil {
		c.otherwise = readDocument(e.Default)
	}
	return c.load
}

// load makes the call. The default takes the place of an answer that does not
// come, as it is; it does not help where the query fails.
func (c *apiCall) load(v *vars, a *preparedRequest) (expr.Value, error) {
	call, urlPath, err := c.fill(v)
	if err != nil {
		return expr.Value{}, err
	}
	var otherwise expr.Value
	if c.otherwise != nil {
		if otherwise, err = v.fill(c.otherwise); err != nil {
			return expr.Value{}, err
		}
	}
	if c.policy.Namespaced() && !inNamespace(urlPath, c.policy.Namespace) {
		return expr.Value{}, fmt.Errorf("the policy of namespace %s cannot ask for %q; only paths below that namespace are allowed", c.policy.Namespace, urlPath)
	}
	answer, err := c.ask(v, a, call, urlPath)
	if err != nil {
		if otherwise.Data != nil {
			return otherwise, nil
		}
		return expr.Value{}, fmt.Errorf("failed to execute the apiCall: %w", err)
	}
	data, err := jsonValue(answer)
	if err != nil {
		return expr.Value{}, err
	}
	return c.query.apply(v, data)
}

// fill puts the values of variables into the call.
func (c *apiCall) fill(v *vars) (call ServiceCall, urlPath string, err error) {
	if urlPath, err = v.fillString(c.path); err != nil {
		return call, "", err
	}
	if urlPath, err = cleanPath(urlPath); err != nil {
		return call, "", err
	}
	call.Method = c.source.Method
	if c.url != nil {
		if call.URL, err = v.fillString(c.url); err != nil {
			return call, "", err
		}
		call.CABundle = c.source.Service.CABundle
		call.Headers = map[string]string{}
	}
	for _, h := range c.headers {
		if call.Headers[h.key], err = v.fillString(h.value); err != nil {
			return call, "", err
		}
	}
	if call.Method != "POST" {
		return call, urlPath, nil
	}
	body := map[string]any{}
	for _, d := range c.data {
		value, err := v.fill(d.value)
		if err != nil {
			return call, "", err
		}
		body[d.key] = value.Data
	}
	call.Data, err = json.Marshal(body)
	return call, urlPath, err
}

// cleanPath is a path as it is sent, with one slash for many. Dots in place of a name
// lead up, and so to what the policy does not ask for: only what a variable holds has
// them (deviation 5).
func cleanPath(urlPath string) (string, error) {
	if urlPath == "" {
		return "", nil
	}
	at, query, found := strings.Cut(urlPath, "?")
	for _, s := range strings.Split(at, "/") {
		if s == "." || s == ".." {
			return "", fmt.Errorf("the path %q has dots in place of a name", urlPath)
		}
	}
	if at = path.Clean(at); found {
		at += "?" + query
	}
	return at, nil
}

func (c *apiCall) ask(v *vars, a *preparedRequest, call ServiceCall, urlPath string) ([]byte, error) {
	var answer []byte
	var err error
	switch {
	case urlPath != "":
		answer, err = a.world.API(v.ctx, urlPath, call.Data)
	case c.url != nil:
		var said ServiceAnswer
		if said, err = a.world.Service(v.ctx, call); err == nil {
			answer, err = said.Success()
		}
	default:
		return nil, fmt.Errorf("the apiCall has neither a path nor a service")
	}
	if limit := a.limits.response(); err == nil && limit >= 0 && len(answer) > limit {
		return nil, fmt.Errorf("the answer has %d bytes, more than the limit of %d", len(answer), limit)
	}
	return answer, err
}
