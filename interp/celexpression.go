package interp

import celgo "github.com/google/cel-go/cel"

// A celExpression is a text as the API server's compiler takes it, with the types that
// it may have.
type celExpression struct {
	name, text string
	types      []*celgo.Type
}

func celVariable(name, text string) celExpression {
	return celExpression{name, text, []*celgo.Type{celgo.AnyType, celgo.DynType}}
}

func celCheck(text string) celExpression {
	return celExpression{text: text, types: []*celgo.Type{celgo.BoolType}}
}

func celMessage(text string) celExpression {
	return celExpression{text: text, types: []*celgo.Type{celgo.StringType}}
}

// GetName is the name of a variable.
func (e celExpression) GetName() string { return e.name }

// GetExpression is the text.
func (e celExpression) GetExpression() string { return e.text }

// ReturnTypes are the types.
func (e celExpression) ReturnTypes() []*celgo.Type { return e.types }
