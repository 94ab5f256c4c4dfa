package merge

// A mergeSchema is what the table knows of a value: the fields of a map, or how a list
// merges. Nil is a value of which nothing is known.
type mergeSchema struct {
	fields map[string]*mergeSchema
	// keys are the fields that tell the elements of a list apart; none for a list
	// that is replaced.
	keys []string
	// set tells of a list of scalars that are united.
	set     bool
	element *mergeSchema
}

func (s *mergeSchema) field(key string) *mergeSchema {
	if s == nil {
		return nil
	}
	return s.fields[key]
}

func (s *mergeSchema) elements() *mergeSchema {
	if s == nil {
		return nil
	}
	return s.element
}

// shapeOf is the shape of an object by its type.
func shapeOf(object map[string]any) *mergeSchema {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return builtin(apiVersion, kind)
}
