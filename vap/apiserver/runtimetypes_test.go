package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// At run time objects are maps, and times, quantities and bytes are strings.
func TestRuntimeTypes(t *testing.T) {
	set, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	typed, err := apiserver.NewRuntimeTypes(set).Of(apiserver.Subject{Object: schema.GVK{Version: "v1", Kind: "Pod"}})
	if err != nil {
		t.Fatal(err)
	}
	typed.Declare("spec", "object.spec")
	for _, c := range []struct{ expression, want string }{
		{"object.spec.hostNetwrok == true", "spec lacks hostNetwrok at 1:12"},
		{"has(object.spec.x)", "spec lacks x at 1:4, asked"},
		{"variables.spec.x", "spec lacks x at 1:15"},
		{"object.spec.x.y.z == 1", "spec lacks x at 1:12"},
		{"object.spec.containers.all(c, c.resources.limits['cpu'] == c.imag)", "spec.containers[] lacks imag at 1:61"},
		{"object.spec['nodeName'] == 'a'", ""},
		{"object.spec[?'nodeNam'].orValue('a') == 'a'", "spec lacks nodeNam at 1:12, asked"},
		{"object.metadata.creationTimestamp < timestamp('2020-01-01T00:00:00Z')", "1:35 found no matching overload for '_<_' applied to '(string, timestamp)'"},
		{"object.spec.securityContext == {}", ""},
		{"'a' in object.spec && object.spec.size() > 1", ""},
		{"object.spec == null", ""},
		{"object.spec.priority == 1.0", ""},
		{"object.metadata.namespace == 1", "1:27 found no matching overload for '_==_' applied to '(string, int)'"},
		{"object.metadata.__namespace__ == ''", "metadata lacks __namespace__ at 1:16"},
		{"object.spec.?securityContext.?runAsNonRot.orValue(false)", "spec.securityContext lacks runAsNonRot at 1:29, asked"},
		// What CEL's evaluator takes although its checker wants one type.
		{"(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image != '')", ""},
		{"object.spec.containers + object.spec.initContainers + object.spec.ephemeralContainers == []", ""},
		{"(object.spec.ephemeralContainers + object.spec.containers + object.spec.initContainers).all(c, !has(c.targetContainerName))", ""},
		{"(object.spec.ephemeralContainers + (object.spec.containers + object.spec.initContainers)).all(c, !has(c.targetContainerName))", ""},
		{"object.spec.containers + object.spec.initContainer == []", "spec lacks initContainer at 1:37"},
		{"object.spec.containers + object.spec.nodeName == []", "1:24 found no matching overload for '_+_' applied to '(list(Pod.spec.containers[]), string)'"},
		{"object.spec + object.metadata == {}", "1:13 found no matching overload for '_+_' applied to '(Pod.spec, Pod.metadata)'"},
		{"object.spec.tolerations.map(t, t.key) + object.spec.containers.map(c, c.ports) == []", ""},
		{"(has(object.spec.nodeName) ? object.spec : object.metadata).x == 1", ""},
		{"(object.spec.nodeName ? object.spec : object.metadata).x == 1", "1:23 found no matching overload for '_?_:_' applied to '(string, Pod.spec, Pod.metadata)'"},
		{"object.?spec.orValue(object.metadata) == 1", ""},
		{"object.?spec.or(object.?metadata).orValue(1) == 1", ""},
		{"object.spec.nodeName.orValue('') == ''", "1:29 found no matching overload for 'orValue' applied to 'string.(string)'"},
		{"[object.spec.containers, object.spec.initContainers].all(l, l.all(c, c.image != ''))", ""},
		{"[?object.spec.nodeName] == []", "1:14 expected type 'optional_type(string)' but found 'string'"},
		{"object.spec == object.metadata.nam", "metadata lacks nam at 1:31"},
		{"request.userInfo.foo", "1:17 undefined field 'foo'"},
	} {
		checked := typed.Check(c.expression)
		var got []string
		for _, p := range checked.Problems {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Message))
		}
		for _, m := range checked.Misses {
			asked := ""
			if m.Tested {
				asked = ", asked"
			}
			got = append(got, fmt.Sprintf("%s lacks %s at %d:%d%s", m.Path, m.Field, m.Line, m.Col, asked))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, text, c.want)
		}
	}
}
