package datum

import "encoding/json"

// JSONSize is about how long the JSON text of data is; something above most where that is
// longer than most. It looks at no more than that: data share their parts, so that a few
// lists can be billions of values.
func JSONSize(v any, most int) int {
	s := sizer{left: most}
	s.add(v)
	return most - s.left
}

type sizer struct{ left int }

func (s *sizer) add(v any) {
	switch v := v.(type) {
	case string:
		s.left -= textSize(v)
	case map[string]any:
		s.left -= 2
		for key, item := range v {
			if s.left < 0 {
				return
			}
			s.left -= textSize(key) + 2
			s.add(item)
		}
	case []any:
		s.left -= 2
		for _, item := range v {
			if s.left < 0 {
				return
			}
			s.left--
			s.add(item)
		}
	case nil, bool:
		s.left -= 5
	default:
		b, _ := json.Marshal(v)
		s.left -= len(b)
	}
}

// textSize is the length of a string in JSON, in which some bytes are escapes.
func textSize(text string) int {
	n := len(text) + 2
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += 5
		}
	}
	return n
}
