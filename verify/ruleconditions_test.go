package verify

// constant is a value that a condition compares with.
func (m *ruleMaker) constant() any {
	switch m.of(9) {
	case 0, 1, 2:
		return m.word("abc", "a*", "5", "1Gi", "1h", "*", "", "1.10", "true", "60s", "?*", "nginx:latest", "default", "0", "1.10.0")
	case 3:
		return one(m.choice, 0, 1, 5, 100, 1000000)
	case 4:
		return m.of(2) == 0
	case 5:
		return one[any](m.choice, 0.5, 1.5, nil)
	case 6, 7:
		out := arr{}
		for range m.of(4) {
			out = append(out, one[any](m.choice, "abc", "a*", "5", "web", "*", 5, "", "default", "nginx:latest", true, "?b*", 1.5))
		}
		return out
	}
	return m.word("1-10", "1!-10", "[\"abc\",\"web\"]", "[\"a*\"]", "[1,2]", "123", "{}", "-5-10", "500m-2Gi", "1h-2h", ">5", "true")
}

// operand is a key or value of a condition.
func (m *ruleMaker) operand() any {
	switch m.of(12) {
	case 10:
		return arr{"{{ " + m.expression(1) + " }}", m.operand()}
	case 11:
		return "{{ " + m.word("request.object.metadata.labels", "request.object.metadata.annotations.app", "request.object.spec.m") + one(m.choice, ".\"{{ "+m.expression(1)+" }}\"", " || '{{ "+m.expression(1)+" }}'") + " }}"
	case 8:
		return m.constant()
	case 9:
		return one(m.choice, "a-{{ "+m.expression(1)+" }}", "{{ "+m.expression(1)+" }}:{{ "+m.expression(1)+" }}")
	}
	if len(m.vars) > 0 && m.percent(40) {
		return m.variable()
	}
	return "{{ " + m.expression(2) + " }}"
}

func (m *ruleMaker) variable() string {
	return "{{ " + one(m.choice, m.vars...) + m.word("", "", ".a", "[0]", " || 'abc'", ".name") + " }}"
}

func (m *ruleMaker) conditions() any {
	list := func() arr {
		out := arr{}
		for range one(m.choice, 1, 1, 2, 2, 0, 3) {
			out = append(out, m.condition())
		}
		return out
	}
	switch m.of(7) {
	case 0, 1, 2:
		return obj{"all": list()}
	case 3, 4:
		return obj{"any": list()}
	case 5:
		return obj{"any": list(), "all": list()}
	}
	return list()
}

func (m *ruleMaker) condition() obj {
	operator := m.word("Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals",
		"In", "NotIn", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationGreaterThanOrEquals", "DurationLessThan", "Equals", "NotEquals", "AnyIn", "AnyNotIn")
	c := obj{"key": m.operand(), "operator": operator, "value": m.constant()}
	if m.percent(20) {
		c["value"] = m.operand()
	}
	if m.percent(5) {
		c["message"] = "not {{ request.operation }}"
	}
	return c
}
