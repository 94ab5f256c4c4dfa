package registration

// A Table is what a cluster serves, as a list.
type Table []Resource

// Resources are those whose kind matches the patterns.
func (t Table) Resources(group, version, kind string) []Resource {
	var out []Resource
	for _, r := range t {
		if matches(group, r.Group) && matches(version, r.Version) && matches(kind, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

// matches tells whether * (any text) and ? (any character) make the pattern the text.
func matches(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	at, star, mark := 0, -1, 0
	for i := 0; i < len(t); {
		switch {
		case at < len(p) && p[at] == '*':
			star, mark = at, i
			at++
		case at < len(p) && (p[at] == '?' || p[at] == t[i]):
			at++
			i++
		case star >= 0:
			mark++
			at, i = star+1, mark
		default:
			return false
		}
	}
	for at < len(p) && p[at] == '*' {
		at++
	}
	return at == len(p)
}
