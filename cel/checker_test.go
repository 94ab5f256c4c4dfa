package cel

import "testing"

// Reads of what the checker does not see, and comparisons of what it takes for
// two types, go through dyn; nothing else does.
func TestSettle(t *testing.T) {
	quantity := &form{}
	probe := &form{}
	container := &form{sometimes: map[string]*form{
		"resources":     {sometimes: map[string]*form{"limits": {elem: quantity}}},
		"livenessProbe": probe, "readinessProbe": probe,
	}}
	limits := container.sometimes["resources"].sometimes["limits"]
	object := &form{always: map[string]*form{"containers": {elem: container}, "first": container, "size": quantity}}
	c := Checker{
		Roots:  []Root{{Name: "object", Shape: object}, {Name: "oldObject", Shape: object}},
		Hidden: func(s Shape) bool { return s == limits || s == quantity },
		Struct: func(s Shape) bool { return s == probe || s == container },
	}
	for _, tt := range []struct{ text, want string }{
		{`object.size == '1'`, `dyn(object).size == '1'`},
		{`object['size'] == '1'`, `dyn(object)['size'] == '1'`},
		{`object.?size.orValue('0') == '1'`, `dyn(object).?size.orValue('0') == '1'`},
		{`has(object.first.resources.limits)`, `has(dyn(object.first.resources).limits)`},
		{`object.first.resources.limits.memory == '1'`, `dyn(object.first.resources).limits.memory == '1'`},
		{`object.first.?resources.?limits.?memory.hasValue()`, `dyn(object.first.?resources).?limits.?memory.hasValue()`},
		{`dyn(object).size == '1'`, `dyn(object).size == '1'`},
		{`variables.object.size == '1'`, `variables.object.size == '1'`},
		{`object.containers.all(c, has(c.resources.limits))`, `object.containers.all(c, has(dyn(c.resources).limits))`},
		{`object.containers.all(i, c, has(c.resources.limits) && i > 0)`, `object.containers.all(i, c, has(dyn(c.resources).limits) && i > 0)`},
		{`(object.containers + dyn(oldObject.containers)).exists(c, has(c.resources.limits))`,
			`(object.containers + dyn(oldObject.containers)).exists(c, has(dyn(c.resources).limits))`},
		{`object.containers.filter(c, has(c.resources)).all(c, has(c.resources.limits))`,
			`object.containers.filter(c, has(c.resources)).all(c, has(dyn(c.resources).limits))`},
		{`[1].all(object, has(object.size))`, `[1].all(object, has(object.size))`},
		{`object.first.livenessProbe == object.first.readinessProbe`, `dyn(object.first.livenessProbe) == object.first.readinessProbe`},
		{`object.containers.all(c, c.livenessProbe != c.readinessProbe)`, `object.containers.all(c, dyn(c.livenessProbe) != c.readinessProbe)`},
		{`object.first == oldObject.first`, `object.first == oldObject.first`},
		{`object.first == object.containers[0]`, `dyn(object.first) == object.containers[0]`},
	} {
		if got := c.Settle(parse(t, tt.text)).String(); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
	if got := (Checker{}).Settle(parse(t, `object.size`)).String(); got != `object.size` {
		t.Errorf("a checker that knows nothing gives %s", got)
	}
}
